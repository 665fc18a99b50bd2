// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Schedules as files, so that any program may write or change the order in which devices work and
// talk. A file is read strictly, and says nothing about whether its schedule is right: the checker
// does that.

#include <string>
#include <string_view>

#include "core/plan/schedule.hpp"

namespace carousel {

/// One object: `format` "carousel schedule 1", `rule`, `placement`, `N`, `S`, `slack`, `order`,
/// `reduction`, `devices`, `steps` (training steps that its actions repeat after) and `actions` by
/// device in the order in which it executes them, as plan_json() has them, but with steps, versions
/// and times relative to the first of these steps, and without buffers that are taken in turn.
/// Throws Error(usage) where devices take turns for so long that there are more than
/// `most_actions`.
inline constexpr std::int64_t most_actions = 2'000'000;
[[nodiscard]] std::string schedule_text(const Schedule& schedule);

/// What a file says, and where in its `actions` each action of a device stands.
struct ScheduleFile {
  Period period;
  std::vector<std::vector<std::size_t>> places;  // [device][action of the period]
};

/// Reads such a text for the rule, N, S, slack, order, reduction and devices of `schedule`. Throws
/// Error(bad_data) naming `path` and the action and key that is missing or impossible.
[[nodiscard]] ScheduleFile read_schedule(std::string_view text, const std::string& path,
                                         const Schedule& schedule);

}  // namespace carousel
