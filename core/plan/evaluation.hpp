// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What devices do between segments, when all of them have complete parameters: they learn of the
// last steps and evaluate.

#include <cstdint>
#include <functional>
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
/// parameters of every stage pass from device to device before each round of batches, which makes
/// lists of many devices long: those that `of` does not ask for may be left empty.
[[nodiscard]] std::vector<std::vector<Action>> evaluation_actions(
    const Schedule& schedule, std::int64_t batches, std::int64_t version,
    std::int64_t bytes_per_batch, const std::function<bool(int)>& of = {});

/// Actions at the end of a segment that ended before step `last`: devices without stage 0 hear from
/// its owner how the last steps went. Empty where nobody needs it.
[[nodiscard]] std::vector<std::vector<Action>> closing_actions(const Schedule& schedule,
                                                               std::int64_t last);

}  // namespace carousel
