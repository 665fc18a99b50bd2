// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/engine.hpp"

#include <fmt/core.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "app/binding.hpp"
#include "app/complaint.hpp"
#include "app/schema.hpp"
#include "core/base/range.hpp"

namespace carousel {
namespace {

/// Cores this process may use, as Slurm or taskset left them to it. Where threads have places,
/// OpenMP has bound this one to the first of them, and knows how many cores they have.
int available_cores() {
  auto cores = static_cast<int>(allowed_threads().size());
#ifdef KOKKOS_ENABLE_OPENMP
  const bool shares_one = omp_get_proc_bind() == omp_proc_bind_master;
  if (const int places = omp_get_num_places(); places > 0 && !shares_one) {
    cores = 0;
    for (int k = 0; k < places; ++k) cores += omp_get_place_num_procs(k);
  }
#endif
  return std::max(1, cores);
}

/// The number of threads that the environment asks for, the first of a list; 0 if it does not ask.
/// Kokkos would end the process over anything else, and write out of bounds beyond `most`.
int environment_threads(const char* name, bool list, int most) {
  const char* text = std::getenv(name);
  if (text == nullptr) return 0;
  const std::string_view view(text);
  int threads = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), threads);
  const bool whole = end == view.data() + view.size() || (list && *end == ',');
  if (error != std::errc{} || !whole || threads < 1 || threads > most)
    fail(ExitCode::usage, "{}={}: must be a number of threads from 1 to {}; correct or unset it",
         name, in_quotes(text), most);
  return threads;
}

/// Whether OpenMP was told where threads go. It then binds this very thread to one core before
/// main(), and whoever says where has counted cores.
bool threads_are_placed() {
  const char* bind = std::getenv("OMP_PROC_BIND");
  if (bind != nullptr && *bind != 'f' && *bind != 'F') return true;  // not "false"
  return std::getenv("OMP_PLACES") != nullptr || std::getenv("GOMP_CPU_AFFINITY") != nullptr;
}

/// Threads that really come where so many are asked for: OMP_THREAD_LIMIT, for one, may leave
/// fewer. Kokkos shares work among all it asked for, so that the part of one that stays away would
/// not be computed.
int threads_given(int asked) {
#ifdef KOKKOS_ENABLE_OPENMP
  omp_set_dynamic(0);  // or any kernel may get fewer
  omp_set_max_active_levels(std::max(1, omp_get_max_active_levels()));
  int given = 1;
#pragma omp parallel num_threads(asked)
#pragma omp single
  given = omp_get_num_threads();
  return given;
#else
  return asked;
#endif
}

/// Addresses of the GPUs that this process sees, in the order in which it counts them; empty where
/// CUDA does not say, which is no error yet.
std::vector<std::string> visible_gpus() {
  std::vector<std::string> addresses(static_cast<std::size_t>(std::max(0, Kokkos::num_devices())));
#ifdef KOKKOS_ENABLE_CUDA
  for (std::size_t k = 0; k < addresses.size(); ++k) {
    int domain = 0;
    int bus = 0;
    int device = 0;
    const auto learn = [gpu = static_cast<int>(k)](int& value, cudaDeviceAttr attribute) {
      return cudaDeviceGetAttribute(&value, attribute, gpu) == cudaSuccess;
    };
    if (learn(domain, cudaDevAttrPciDomainId) && learn(bus, cudaDevAttrPciBusId) &&
        learn(device, cudaDevAttrPciDeviceId))
      addresses[k] = fmt::format("{:04x}:{:02x}:{:02x}.0", domain, bus, device);
  }
#endif
  return addresses;
}

/// What the ranks of this node look for, and which of them this one is.
struct NodeSeekers {
  std::vector<GpuSeeker> ranks;
  int own = 0;
};
NodeSeekers seekers_of_node(const GpuSeeker& seeker, const MpiSession* session) {
  if (session == nullptr) return {{seeker}, 0};
  const MpiSession::NodeTexts told = session->texts_of_node(to_text(seeker));
  NodeSeekers all{.ranks = {}, .own = told.own};
  for (const std::string& text : told.texts) all.ranks.push_back(seeker_from(text));
  return all;
}

}  // namespace

EngineArguments parse_engine_arguments(const std::vector<std::string>& words) {
  constexpr std::string_view watchdog_word = "--watchdog-seconds=";
  constexpr std::string_view split_word = "--split=";
  EngineArguments arguments;
  for (const std::string& word : words) {
    if (arguments.command.empty())
      arguments.command = word;
    else if (word == "--overwrite")
      arguments.overwrite = true;
    else if (word == "--as-trained")
      arguments.as_trained = true;
    else if (word == "--confusion")
      arguments.confusion = true;
    else if (word == "--without-ema")
      arguments.without_ema = true;
    else if (arguments.command == "sample" && arguments.sample.take(word))
      continue;
    else if (word.starts_with(split_word))
      arguments.split = word.substr(split_word.size());
    else if (word.starts_with(watchdog_word))
      arguments.watchdog_seconds = std::strtod(word.c_str() + watchdog_word.size(), nullptr);
    else if (!arguments.operands.empty() && arguments.command == "train")
      arguments.overrides.push_back(word);
    else
      arguments.operands.push_back(word);
  }
  const std::string& command = arguments.command;
  const std::size_t given = arguments.operands.size();
  const bool known = (command == "train" && given == 1) ||
                     (command == "eval" && (given == 1 || given == 2)) ||
                     (command == "predict" && given == 3) || (command == "sample" && given == 1);
  if (!known) fail(ExitCode::usage, "carousel-engine is started by carousel; see carousel --help");
  return arguments;
}

Kokkos::InitializationSettings kokkos_settings(const EngineConfig& config, const Launcher& launcher,
                                               const MpiSession* session) {
  Node node = this_node(visible_gpus());
  // OpenMP has bound this thread to one core, which says something only within those of a rank.
  if (threads_are_placed() && !launcher.binds) node.whole = true;
  // Before anything fails on one rank of the node alone.
  const NodeSeekers seekers = seekers_of_node(seeker_of(node, config.device), session);
  Kokkos::InitializationSettings settings;
  // Kokkos complains when threads are not bound; binding is the launcher's business.
  settings.set_disable_warnings(true);
  const auto most = static_cast<int>(find_key("engine.threads")->allowed.max);
  int threads = config.threads;
  // Kokkos reads its own variable in any case.
  const int of_kokkos = environment_threads("KOKKOS_NUM_THREADS", false, most);
  if (threads == 0) threads = of_kokkos;
  if (threads == 0) threads = environment_threads("OMP_NUM_THREADS", true, most);
  if (threads == 0) {
    // Ranks have cores of their own, or share those of all.
    const int own = available_cores();
    const int share =
        session == nullptr ? own : session->cores_on_node() / session->ranks_on_node();
    threads = std::clamp(std::min(own, share), 1, most);
  }
  const int given = threads_given(threads);
  if (given < threads && (session == nullptr || session->rank() == 0))
    note(
        fmt::format("computing with {} thread{} of the {} asked for: OpenMP starts no more here; "
                    "OMP_THREAD_LIMIT is a reason",
                    given, given == 1 ? "" : "s", threads));
  settings.set_num_threads(given);
  const int gpu = choose_gpu(node, config.device, seekers.ranks, seekers.own);
  if (gpu >= 0) settings.set_device_id(gpu);
  return settings;
}

void check_threads(const ExecutionSpace& exec) {
  if constexpr (!runs_on_host) return;
  const int threads = concurrency(exec);
  int came = 0;
  int* const count = &came;
  // One each, if all come.
  Kokkos::parallel_for(
      "carousel::app::check_threads", RangePolicy(exec, 0, threads, Kokkos::ChunkSize(1)),
      KOKKOS_LAMBDA(std::int64_t) { Kokkos::atomic_inc(count); });
  CAROUSEL_CHECK(came == threads, "{} of {} threads compute", came, threads);
}

NodeUse node_use(const ExecutionSpace& exec, const MpiSession* session) {
  NodeUse node{.space = ExecutionSpace::name()};
  node.threads = runs_on_host ? concurrency(exec) : 0;
  if (session != nullptr) {
    node.ranks = session->ranks_on_node();
    const auto [first, last] = session->ends_on_node();
    node.in_order = last - first + 1 == node.ranks;
  }
  if (!threads_are_placed()) {
    node.cores = session == nullptr ? available_cores() : session->cores_on_node();
    node.place = describe_cores(this_node({}));
  }
#ifdef KOKKOS_ENABLE_CUDA
  const cudaDeviceProp& gpu = exec.cuda_device_prop();
  node.gpu = exec.cuda_device();
  node.gpu_name = gpu.name;
  if (session != nullptr)
    node.gpu_ranks = session->ranks_on_node_with(
        fmt::format("{} {} {}", gpu.pciDomainID, gpu.pciBusID, gpu.pciDeviceID));
#endif
  return node;
}

ExitCode run_engine(const EngineArguments& arguments, const Launcher& launcher,
                    const MpiSession* session, const RunClock& clock) {
  if (arguments.command == "eval")
    return evaluate(arguments.operands[0],
                    arguments.operands.size() > 1 ? arguments.operands[1] : std::string(),
                    arguments.split, arguments.as_trained, arguments.confusion,
                    arguments.without_ema);
  if (arguments.command == "sample") {
    SampleArguments sample_arguments = arguments.sample;
    sample_arguments.checkpoint = arguments.operands[0];
    sample_arguments.without_ema = arguments.without_ema;
    return sample(sample_arguments);
  }
  if (arguments.command == "predict")
    return predict(arguments.operands[0], arguments.operands[1], arguments.operands[2],
                   arguments.split, arguments.without_ema, launcher, session);
  const RunConfig config = load_run_config(arguments.operands[0], arguments.overrides);
  return train(config, arguments.overwrite, launcher, session, clock);
}

}  // namespace carousel
