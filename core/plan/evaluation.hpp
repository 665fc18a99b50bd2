// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What devices do between segments, when all of them have complete parameters: evaluations, and the
// collection of optimizer state for a checkpoint.

#include <cstdint>
#include <vector>

#include "core/plan/schedule.hpp"

namespace carousel {

/// Batches of an evaluation are dealt to the devices in turn: how many a device has, and where the
/// results of a batch lie on device 0, which collects them sender by sender.
[[nodiscard]] std::int64_t evaluation_share(const Schedule& schedule, std::int64_t batches,
                                            int device);
[[nodiscard]] std::int64_t evaluation_position(const Schedule& schedule, std::int64_t batches,
                                               std::int64_t batch);

/// Actions of an evaluation with theta_version, [device]; `batches` counts micro-batches of the
/// test set. Results travel to device 0.
[[nodiscard]] std::vector<std::vector<Action>> evaluation_actions(const Schedule& schedule,
                                                                  std::int64_t batches,
                                                                  std::int64_t version,
                                                                  std::int64_t bytes_per_batch);

/// Actions that bring the optimizer state of all stages to device 0 and save it there.
[[nodiscard]] std::vector<std::vector<Action>> collection_actions(
    const Schedule& schedule, const std::vector<std::int64_t>& state_bytes, std::int64_t step);

}  // namespace carousel
