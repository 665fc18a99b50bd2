// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a simulation says about links and memory over time. It only reads the result; nothing is
// simulated here.

#include <cstdint>
#include <span>
#include <vector>

#include "core/forecast/simulator.hpp"

namespace carousel {

/// Bytes on their way from one device to another, per bin of time.
struct LinkLoad {
  int from = 0;
  int to = 0;
  std::vector<double> bytes;  // [bin]
};

/// Equal bins of time.
struct TimeBins {
  double begin = 0;
  double width = 1;  // seconds
  int count = 1;
};

/// The load of every link that carries bytes within the bins, by sender and receiver. The bytes of
/// a transfer are spread evenly over its time.
[[nodiscard]] std::vector<LinkLoad> link_loads(std::span<const Transfer> transfers,
                                               const TimeBins& bins);

struct MemoryPoint {
  double seconds = 0;
  std::int64_t bytes = 0;  // from then on
};

/// Activation bytes of all devices of the spans together, from the begin of a forward to the end of
/// its release; stage_bytes [S] are those of one micro-batch. One point per change.
[[nodiscard]] std::vector<MemoryPoint> activations_over_time(
    std::span<const std::vector<Action>> lists, std::span<const std::vector<Interval>> intervals,
    std::span<const std::int64_t> stage_bytes);

}  // namespace carousel
