// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/plan_text.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/base/version.hpp"
#include "core/draw/grid.hpp"
#include "core/forecast/estimate.hpp"
#include "core/forecast/routes.hpp"
#include "core/model/kernels.hpp"

namespace carousel {

std::string describe(const PreparedRun& run, std::int64_t checkpoint, bool layers) {
  const ParallelConfig& parallel = run.schedule.parallel();
  const std::vector<Route> routes = routes_of(run.schedule);
  const Baselines baselines = activation_baselines(run.memory.stages, parallel.micro_batches);
  std::string text = fmt::format(
      "{}, {}: N = {} micro-batches{}, S = {} stages{}{} on {} device{}\n\n",
      to_string(parallel.rule), to_string(parallel.placement), parallel.micro_batches,
      parallel.passes > 1 ? fmt::format(" in k = {} passes", parallel.passes) : "", parallel.stages,
      parallel.slack > 0 ? fmt::format(", slack {}", parallel.slack) : "",
      parallel.predict > 0 ? fmt::format(", predict {}", parallel.predict) : "",
      run.schedule.devices(), run.schedule.devices() == 1 ? "" : "s");
  if (layers)
    text += to_string(run.model) + "\n";
  else
    text += fmt::format("{}: {} layers (--layers lists them)\n", run.model.name,
                        run.model.layers.size());
  if (const std::string frozen = run.model.told_frozen(); !frozen.empty())
    text += fmt::format("{} parameters{}\n", human_count(run.model.parameter_size()), frozen);
  const bool on_gpu = !build_info().cuda.empty();
  if (const std::string slow = slow_kernels(run.model, run.basis.vendor, on_gpu); !slow.empty())
    text += wrapped(fmt::format("slow kernels: {}", slow), 0);
  if (const std::string layers_by = vendor_layers(run.model); !layers_by.empty())
    text += fmt::format("kernels of vendors: layers {}\n", layers_by);
  if (std::ranges::any_of(run.model.layers, may_be_slow))
    text += "gradients of weights: train tells at its start where cuDNN has slow ones alone\n";
  if (const int queues = run.memory.devices.front().queues(); queues > 1)
    text += fmt::format("compute queues: {}\n", queues);
  text += to_string(run.partition, run.model) + "\n";
  text += draw_grid(run.schedule) + "\n";
  text += to_string(run.memory) + "\n";
  if (!routes.empty()) text += to_string(routes, run.schedule) + "\n";

  const auto held = [&](const char* heading, const char* plan, std::int64_t bytes) {
    text += fmt::format("{:<20}{:<20}{:>12}\n", heading, plan, human_bytes(bytes));
  };
  held("activations at once", "this plan", held_at_once(run.schedule, run.memory.stages));
  held("", "dp, all at once", baselines.together);
  held("", "dp, accumulating", baselines.accumulate);
  const Traffic sent = sum_of(routes);
  text += fmt::format("sent per step       {} messages, {} in all\n", sent.messages,
                      human_bytes(sent.bytes));
  text += fmt::format("checkpoint          {}; each device writes what it owns, without a copy\n",
                      human_bytes(checkpoint));
  return text;
}

}  // namespace carousel
