// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/start_text.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "app/deck.hpp"
#include "core/base/text.hpp"
#include "core/base/version.hpp"
#include "core/model/kernel_choice.hpp"
#include "core/model/kernels.hpp"
#include "core/plan/pieces.hpp"

namespace carousel {
namespace {

std::string counted(int count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string describe_devices(const NodeUse& node, int devices, int processes) {
  std::string text = std::to_string(devices);
  if (processes > 1)
    text = counted(processes, "rank");
  else if (devices > 1)
    text += " in one process";
  text += ", " + node.space;
  if (node.threads > 0) text += " with " + counted(node.threads, "thread");
  return text + (node.threads > 0 && processes > 1 ? " each" : "");
}

/// Of the device that needs most.
std::string describe_memory(const MemoryPlan& memory) {
  const auto most = std::ranges::max_element(memory.devices, {}, &DeviceMemoryPlan::total);
  const auto least = std::ranges::min_element(memory.devices, {}, &DeviceMemoryPlan::total);
  const std::int64_t activations = most->bytes[static_cast<std::size_t>(Category::activations)];
  return fmt::format("{}{} per device, {} of it activations",
                     most->total() == least->total() ? "" : "at most ", human_bytes(most->total()),
                     human_bytes(activations));
}

}  // namespace

std::string describe_start(const RunConfig& config, const PreparedRun& run, const Agenda& agenda,
                           const NodeUse& node, int processes, const std::string& classes) {
  const ParallelConfig& parallel = run.schedule.parallel();
  std::string text =
      fmt::format("{}: {}, {} parameters{}\n", printable(config.run.name), run.model.name,
                  human_count(run.model.parameter_size()), run.model.told_frozen());
  const auto add = [&text](const char* name, const std::string& fact) {
    text += fmt::format("  {:<8} {}\n", name, fact);
  };
  add("data",
      fmt::format("{} training and {} test samples, {}", human_count(run.basis.train_samples),
                  human_count(run.basis.test_samples), to_string(run.basis.source.input.shape)));
  add(run.model.target.has_labels() ? "labels" : "targets", printable(classes));
  add("rule",
      fmt::format("{}, {}: N = {}{}, S = {}{}{}", to_string(parallel.rule),
                  to_string(parallel.placement), parallel.micro_batches,
                  parallel.passes > 1 ? fmt::format(", k = {}", parallel.passes) : "",
                  parallel.stages,
                  parallel.slack > 0 ? fmt::format(", slack {}", parallel.slack) : "",
                  parallel.predict > 0 ? fmt::format(", predict {}", parallel.predict) : ""));
  const int queues = run.memory.devices.front().queues();
  add("devices", describe_devices(node, run.schedule.devices(), processes) +
                     (queues > 1 ? ", " + counted(queues, "compute queue") : ""));
  if (node.gpu >= 0 || !node.place.empty()) add("rank 0", describe_place(node));
  add("memory", describe_memory(run.memory));
  const bool converts = run.basis.vendor == VendorKernels::none;
  if (config.engine.precision == DataType::bfloat16)
    add("numbers", converts ? "bf16, computed in fp32" : "bf16");
  const bool on_gpu = !build_info().cuda.empty();
  if (const std::string slow = slow_kernels(run.model, run.basis.vendor, on_gpu); !slow.empty())
    add("kernels", "slow: " + slow);
  if (const std::string layers = vendor_layers(run.model); !layers.empty())
    add("vendors", "layers " + layers);
  const int samples = parallel.micro_batches * config.train.micro_batch_size;
  add("steps", fmt::format("{} of {} each, in {} epoch{}", human_count(agenda.total_steps),
                           counted(samples, "sample"), human_count(agenda.epochs()),
                           agenda.epochs() == 1 ? "" : "s"));
  add("folder", printable(config.run.output));
  return text;
}

std::string describe_place(const NodeUse& node) {
  std::string text;
  if (node.gpu >= 0)
    text = fmt::format("GPU {} ({})", node.gpu, node.gpu_name);
  else
    text = node.threads > 0 ? counted(node.threads, "thread") : node.space;
  if (!node.place.empty()) text += (node.gpu >= 0 ? ", " : " on ") + node.place;
  return text;
}

std::string slow_gradients(std::uint64_t layers) {
  if (layers == 0) return "";
  return fmt::format(
      "warning: cuDNN has the gradient of the weights of {} layer{} in full numbers alone, which "
      "takes several times as long as a rounded one; try another version of cuDNN",
      layers, layers == 1 ? "" : "s");
}

std::string scattering(const ParallelConfig& parallel, const NodeUse& node) {
  const int shards = shards_of(parallel);
  if (node.in_order || shards == 1 || shards == parallel.workers()) return "";
  return fmt::format(
      "warning: ranks of this node do not follow each other, and the {} of a slot "
      "(parallel.shards) should be of one node; use srun --distribution=block or mpiexec -ppn",
      shards);
}

std::string crowding(const NodeUse& node) {
  if (node.gpu_ranks > 1)
    return fmt::format(
        "warning: {} ranks of this node share GPU {}; start one rank for each GPU, as with srun "
        "--ntasks-per-node and mpiexec -ppn, and leave out engine.device",
        node.gpu_ranks, node.gpu);
  if (node.cores == 0 || node.ranks * node.threads <= node.cores) return "";
  const std::string cores = counted(node.cores, "core");
  const std::string threads = counted(node.threads, "thread");
  if (node.ranks == 1)
    return fmt::format("warning: {} share {}; use engine.threads={}", threads, cores, node.cores);
  if (const int fitting = node.cores / node.ranks; fitting > 0)
    return fmt::format("warning: {} ranks of {} share {}; use engine.threads={}", node.ranks,
                       threads, cores, fitting);
  // Even one thread each is too many.
  const std::string remedy =
      node.threads > 1 ? "use engine.threads=1" : counted(node.cores, "rank") + " would not";
  return fmt::format("warning: {} ranks of {} take turns on {}; {}", node.ranks, threads, cores,
                     remedy);
}

}  // namespace carousel
