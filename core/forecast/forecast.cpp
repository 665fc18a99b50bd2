// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/forecast/forecast.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"

namespace carousel {
namespace {

double end_of(const Simulation& simulation, std::int64_t step) {
  const auto found = std::ranges::find(simulation.steps, step, &StepEnd::step);
  CAROUSEL_CHECK(found != simulation.steps.end(), "step {} was not simulated", step);
  return found->end;
}

/// Fraction of the bins in which a device computes.
double computing_fraction(const std::vector<Action>& list, const std::vector<Interval>& intervals,
                          const TimeBins& bins) {
  const double end = bins.begin + bins.width * bins.count;
  double seconds = 0;
  for (std::size_t k = 0; k < list.size(); ++k) {
    if (computes(list[k]))
      seconds +=
          std::max(0.0, std::min(intervals[k].end, end) - std::max(intervals[k].begin, bins.begin));
  }
  return seconds / (end - bins.begin);
}

/// Most bytes held in every bin.
std::vector<std::int64_t> most_held(const std::vector<MemoryPoint>& points, const TimeBins& bins) {
  std::vector<std::int64_t> most(bins.count, 0);
  for (std::size_t k = 0; k < points.size(); ++k) {
    const double until = k + 1 < points.size() ? points[k + 1].seconds : points[k].seconds;
    for (int bin = 0; bin < bins.count; ++bin) {
      const double begin = bins.begin + bin * bins.width;
      if (points[k].seconds < begin + bins.width && until > begin)
        most[bin] = std::max(most[bin], points[k].bytes);
    }
  }
  return most;
}

double pace(const Schedule& schedule, const Speeds& speeds, const SteadySteps& steps) {
  const std::vector<std::vector<Action>> lists = schedule.lists(steps.segment());
  return simulate(simulation_of(schedule, lists, speeds)).seconds_per_step(steps.first, steps.last);
}

}  // namespace

SimulationInput simulation_of(const Schedule& schedule,
                              const std::vector<std::vector<Action>>& lists, const Speeds& speeds) {
  const Machine& machine = speeds.machine;
  std::vector<double> slowness(schedule.devices(), 1);
  if (machine.slow_device < schedule.devices()) slowness[machine.slow_device] = machine.slow_factor;
  return {.lists = lists,
          .groups = schedule.groups(),
          .seconds = speeds.seconds,
          .machine = machine,
          .slowness = std::move(slowness),
          .jitter = machine.jitter};
}

SteadySteps steady_steps(const Schedule& schedule, const Speeds& speeds) {
  if (speeds.machine.jitter > 0) return {20, 60};
  SteadySteps steady;
  for (double before = pace(schedule, speeds, steady); steady.first < 64;) {
    const SteadySteps later{2 * steady.first, 2 * steady.last};
    const double after = pace(schedule, speeds, later);
    if (std::abs(after - before) <= 1e-3 * after) return steady;
    before = after;
    steady = later;
  }
  return steady;
}

double step_seconds(const Schedule& schedule, const Speeds& speeds) {
  return pace(schedule, speeds, steady_steps(schedule, speeds));
}

Forecast forecast(const Schedule& schedule, const std::vector<StageMemory>& stages,
                  const Speeds& speeds) {
  const SteadySteps steady = steady_steps(schedule, speeds);
  const std::vector<std::vector<Action>> lists = schedule.lists(steady.segment());
  SimulationInput input = simulation_of(schedule, lists, speeds);
  Forecast result{.seconds = exposed_communication(input, steady.first, steady.last)};
  input.keep_actions = input.keep_transfers = true;
  const Simulation simulation = simulate(input);
  const double begin = end_of(simulation, steady.first);
  const int bins = static_cast<int>(schedule.period_time());
  result.bins = {begin, (end_of(simulation, steady.first + 1) - begin) / bins, bins};
  for (int d = 0; d < schedule.devices(); ++d)
    result.computing.push_back(computing_fraction(lists[d], simulation.actions[d], result.bins));
  result.links = link_loads(simulation.transfers, result.bins);
  std::vector<std::int64_t> bytes;
  for (const StageMemory& stage : stages) bytes.push_back(align_up(stage.frame_bytes));
  result.activations =
      most_held(activations_over_time(lists, simulation.actions, bytes), result.bins);
  return result;
}

}  // namespace carousel
