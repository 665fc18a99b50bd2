// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <filesystem>
#include <span>

#include "app/commands.hpp"
#include "app/prepared_run.hpp"
#include "core/base/check.hpp"
#include "core/base/descriptor.hpp"
#include "core/data/dataset.hpp"
#include "core/io/plan_json.hpp"
#include "core/io/schedule_file.hpp"
#include "core/plan/comparison.hpp"
#include "core/plan/costs.hpp"
#include "core/plan/estimate.hpp"
#include "core/plan/picture.hpp"

namespace carousel {
namespace {

Estimate estimate_of(const RunConfig& config, const PreparedRun& run) {
  std::optional<Speeds> speeds;
  if (config.machine) {
    const int states = config.train.optimizer.momentum != 0 ? 1 : 0;
    speeds = {*config.machine, action_seconds(stage_costs(run.model, run.partition,
                                                          config.train.micro_batch_size, states),
                                              *config.machine)};
  }
  return estimate(run.schedule, run.memory, speeds);
}

void print_comparison(const RunConfig& config) {
  const PreparedRun own = prepare_run(config, Dataset(config.data_file), config.transport);
  std::vector<Estimate> estimates;
  for (const ParallelConfig& parallel : alternatives(config.parallel)) {
    RunConfig other = config;
    other.parallel = parallel;
    estimates.push_back(estimate_of(other, prepare_run(other, own.basis)));
  }
  std::int64_t model_bytes = 0;
  for (int j = 0; j < own.schedule.rule().stages(); ++j)
    model_bytes += own.schedule.message_bytes(j);
  const Baselines baselines =
      activation_baselines(own.memory.stages, own.schedule.rule().micro_batches());
  fmt::print("{}", compare(estimates, model_bytes, baselines.accumulate));
}

void print_sweep(const PlanArguments& arguments) {
  const std::string& sweep = arguments.sweep;
  const std::size_t equals = sweep.find('=');
  if (equals == std::string::npos || equals + 1 == sweep.size())
    fail(ExitCode::usage, "--sweep {}: give a key and its values: parallel.stages=1,2,4", sweep);
  const std::string key = sweep.substr(0, equals);
  std::vector<LabelledEstimate> rows;
  for (std::size_t begin = equals + 1; begin <= sweep.size();) {
    const std::size_t end = std::min(sweep.find(',', begin), sweep.size());
    const std::string value = sweep.substr(begin, end - begin);
    std::vector<std::string> overrides = arguments.overrides;
    overrides.push_back(fmt::format("{}={}", key, value));
    const RunConfig config = load_run_config(arguments.deck, overrides);
    const PreparedRun run = prepare_run(config, Dataset(config.data_file), config.transport);
    rows.push_back({value, estimate_of(config, run)});
    begin = end + 1;
  }
  fmt::print("{}\n{}", key, tabulate("value", rows));
}

void write_new(const std::string& path, const std::string& text, const char* what) {
  if (std::filesystem::exists(path))
    fail(ExitCode::usage, "{}: exists already; remove it or choose another name", path);
  replace_file(path, std::as_bytes(std::span(text)), Durability::process);
  fmt::print("{}: {}\n", path, what);
}

}  // namespace

void plan_command(const PlanArguments& arguments) {
  if (!arguments.sweep.empty()) return print_sweep(arguments);
  const RunConfig config = load_run_config(arguments.deck, arguments.overrides);
  if (arguments.compare) return print_comparison(config);
  if (!arguments.json && arguments.emit.empty() && arguments.svg.empty()) return print_plan(config);
  const PreparedRun run = prepare_run(config, Dataset(config.data_file), config.transport);
  if (!arguments.svg.empty())
    write_new(arguments.svg, draw_svg(run.schedule, {}), "the picture of the schedule");
  if (!arguments.emit.empty())
    write_new(arguments.emit, schedule_text(run.schedule), "the schedule");
  if (!arguments.json) return;
  fmt::print("{}", plan_json(run.schedule, run.memory, arguments.steps));
}

void print_plan(const RunConfig& config) {
  const Dataset dataset(config.data_file);
  const PreparedRun run = prepare_run(config, dataset, config.transport);
  check_batch_norm(config, run);
  fmt::print("{}", describe(run));
  if (!config.machine) return;
  const Estimate costs = estimate_of(config, run);
  fmt::print("simulated           {:.6f} s per step, of which {:.6f} s is communication\n",
             costs.seconds->step, costs.seconds->exposed());
}

}  // namespace carousel
