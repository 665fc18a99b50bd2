// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a device must have done in a segment, action by action, and the activations in use after
// each: the plan walked as an executor walks it. It says what should be, not what was.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/plan/schedule.hpp"
#include "core/plan/stage_memory.hpp"

namespace carousel {

/// [S] bytes that a frame takes on a device. Where the next stage is on another device, room behind
/// it for what passes the stage by and for a rider makes the end of the frame the message.
[[nodiscard]] std::vector<std::int64_t> frame_bytes(const Schedule& schedule,
                                                    std::span<const StageMemory> stages,
                                                    int device);

struct AccountedAction {
  Action action;
  std::int64_t activation_bytes = 0;  // in use after it
};

/// The actions of `device` in a segment, in order; those of steps that `selected` does not take are
/// walked, since they hold memory, but left out.
[[nodiscard]] std::vector<AccountedAction> account(
    const Schedule& schedule, std::span<const StageMemory> stages, int device,
    const Segment& segment, const std::function<bool(std::int64_t)>& selected);

/// What `device` sends in a segment. Devices of a team, which take turns, may send more in one than
/// in another.
[[nodiscard]] Traffic sent_in(const Schedule& schedule, int device, const Segment& segment);

/// The devices that `device` exchanges messages with while it trains, ascending; it is one of
/// theirs.
[[nodiscard]] std::vector<int> peers_of(const Schedule& schedule, int device);

/// The most activation bytes that `device` has in use at once in a segment.
[[nodiscard]] std::int64_t peak_activations(const Schedule& schedule,
                                            std::span<const StageMemory> stages, int device,
                                            const Segment& segment);

}  // namespace carousel
