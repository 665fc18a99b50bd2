// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a plan would run on a machine, simulated: how long a training step takes and, over the time
// of one, which devices compute, what every link carries and what activations are held.

#include <functional>
#include <vector>

#include "core/forecast/simulation_views.hpp"
#include "core/forecast/simulator.hpp"
#include "core/plan/machine.hpp"
#include "core/plan/schedule.hpp"
#include "core/plan/stage_memory.hpp"

namespace carousel {

/// How a machine runs the actions of a plan.
struct Speeds {
  Machine machine;
  std::function<double(int, const Action&)> seconds;  // see SimulationInput
};

/// Training steps between which the pace is taken. The first steps settle, and the last updates of
/// a list come too early (see Simulation).
struct SteadySteps {
  std::int64_t first = 4;
  std::int64_t last = 8;

  [[nodiscard]] Segment segment() const { return {0, last + 4}; }
};
/// As many as it takes until twice as many have the same pace to a thousandth, at most 64 .. 128.
/// With jitter there is no such pace; it is taken from 20 .. 60.
[[nodiscard]] SteadySteps steady_steps(const Schedule& schedule, const Speeds& speeds);

/// The lists of a segment that begins with step 0, at these speeds. Keeps a reference to them.
[[nodiscard]] SimulationInput simulation_of(const Schedule& schedule,
                                            const std::vector<std::vector<Action>>& lists,
                                            const Speeds& speeds);

/// Simulated seconds of a training step in the steady state.
[[nodiscard]] double step_seconds(const Schedule& schedule, const Speeds& speeds);

/// One steady training step. Its time is cut into as many bins as it has time steps.
struct Forecast {
  Exposure seconds = {};
  TimeBins bins = {};                  // from the end of one training step to that of the next
  std::vector<double> computing = {};  // [device] fraction of the time in computing actions
  std::vector<LinkLoad> links = {};    // those that carry something
  std::vector<std::int64_t> activations = {};  // [bin] most bytes held on all devices at once
};
[[nodiscard]] Forecast forecast(const Schedule& schedule, const std::vector<StageMemory>& stages,
                                const Speeds& speeds);

}  // namespace carousel
