// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What devices do between segments, when all of them have complete parameters: they learn of the
// last steps, evaluate, and collect what a checkpoint needs.

#include <cstdint>
#include <vector>

#include "core/plan/schedule.hpp"

namespace carousel {

/// [lane][S] devices that run the stages of an evaluation, one batch after the other. Batch k is
/// for lane k mod lanes. A lane is a device that runs all stages, a pipeline, or a row of `model`.
[[nodiscard]] std::vector<std::vector<int>> evaluation_lanes(const Schedule& schedule);
/// How many results of batches a device keeps: device 0 collects those of all.
[[nodiscard]] std::int64_t evaluation_share(const Schedule& schedule, std::int64_t batches,
                                            int device);
/// Where the results of a batch lie on device 0, lane by lane.
[[nodiscard]] std::int64_t evaluation_position(const Schedule& schedule, std::int64_t batches,
                                               std::int64_t batch);

/// Actions of an evaluation with theta_version, [device]; `batches` counts micro-batches of the
/// test set. `source` of a forward says where on its device results go. In `sharded`, the
/// parameters of every stage pass from device to device before each round of batches.
[[nodiscard]] std::vector<std::vector<Action>> evaluation_actions(const Schedule& schedule,
                                                                  std::int64_t batches,
                                                                  std::int64_t version,
                                                                  std::int64_t bytes_per_batch);

/// Actions at the end of a segment that ended before step `last`: devices without stage 0 hear from
/// its owner how the last steps went. Empty where nobody needs it.
[[nodiscard]] std::vector<std::vector<Action>> closing_actions(const Schedule& schedule,
                                                               std::int64_t last);

/// Actions that bring parameters of all versions, and `state_bytes` of optimizer state, of all
/// stages to device 0 and save them there. What comes from elsewhere comes in pieces that fit into
/// a gradient buffer, which between segments is free; `source` is the number of the piece.
[[nodiscard]] std::vector<std::vector<Action>> collection_actions(
    const Schedule& schedule, const std::vector<std::int64_t>& state_bytes, std::int64_t step);
/// Bytes of all pieces but the last.
[[nodiscard]] std::int64_t piece_bytes(const Schedule& schedule);

}  // namespace carousel
