// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Predicts when the actions of several lists would begin and end on a machine, before they run. It
// knows neither rules nor placements, and takes it as proven that the lists are right
// (checker.hpp).
//
// Between two waits a device depends on nobody, so it runs ahead along its list, and messages that
// need no port are plain maxima over times. Only for what occupies ports does the order in time
// matter: these alone pass through a binary heap, one event for each and one for each time that a
// port with a queue becomes free, which is exact and O(log) per message.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/plan/action.hpp"
#include "core/plan/machine.hpp"

namespace carousel {

/// What is simulated. Lists and costs must outlive the call.
struct SimulationInput {
  std::span<const std::vector<Action>> lists;  // [device]
  std::vector<std::vector<int>> groups = {};   // devices of collectives; empty: one group of all
  std::function<double(int, const Action&)> seconds;  // of a computing action on a device
  Machine machine;                                    // its links
  std::vector<double> slowness = {};  // [device] factor of all its seconds; empty: 1
  /// Relative standard deviation of the seconds of an action, 0 .. 1: they are multiplied by
  /// 1 - jitter + jitter x, x exponential of mean 1, a pure function of seed, device and index.
  double jitter = 0;
  std::uint64_t seed = 1;
  bool keep_actions = false;    // memory: 16 bytes per action
  bool keep_transfers = false;  // 32 bytes per message
};

struct Interval {
  double begin = 0;
  double end = 0;
};

/// Bytes on the way from one device to another while they occupy both ports; they have arrived one
/// latency after `end`. A collective leaves one record for every link of its ring, and what
/// occupies ports for no time leaves none.
struct Transfer {
  double begin = 0;
  double end = 0;
  int from = 0;
  int to = 0;
  double bytes = 0;
};

struct DeviceTimes {
  double busy = 0;     // seconds in computing actions
  double blocked = 0;  // seconds in waits
  double end = 0;      // of the last action
};

struct StepEnd {
  std::int64_t step = 0;
  double end = 0;  // of its last update, over all devices
};

struct Simulation {
  double seconds = 0;          // until all devices are done
  std::vector<StepEnd> steps;  // in order
  std::vector<DeviceTimes> devices;
  std::vector<std::vector<Interval>> actions;  // [device][action], when kept
  std::vector<Transfer> transfers;             // in the order they begin, when kept

  /// Mean seconds per training step from the end of step `first` to the end of step `last`. The
  /// steady state needs some steps to settle, and the last updates of a list come too early, since
  /// they no longer wait for passes of later steps.
  [[nodiscard]] double seconds_per_step(std::int64_t first, std::int64_t last) const;
};

/// Runs every device through its list in order. Load, forward, backward, accumulate, update,
/// release and save take their seconds; post, send and the start of a collective take none; a wait
/// takes until its exchange is complete. A message occupies the outgoing port of its sender and the
/// incoming port of its receiver for bytes / bandwidth, and is complete one latency later. It
/// begins once send and post have been started and both ports are free; of several that could, the
/// one that was ready first, then that of the first sender, then the first in its list. Messages
/// that occupy ports for no time, such as tokens, do not queue. A collective begins once all
/// participants have started it and occupies all their ports until it is complete. Throws
/// Error(internal) naming device and action when nothing moves and lists are not over.
[[nodiscard]] Simulation simulate(const SimulationInput& input);

/// A training step on the links of the machine and on links that cost nothing, in seconds.
struct Exposure {
  double step = 0;
  double ideal_step = 0;

  [[nodiscard]] double exposed() const { return step - ideal_step; }
};

/// Simulates twice; the steps are those of Simulation::seconds_per_step.
[[nodiscard]] Exposure exposed_communication(SimulationInput input, std::int64_t first,
                                             std::int64_t last);

}  // namespace carousel
