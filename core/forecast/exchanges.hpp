// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds which sends, posts, collectives and waits of several lists belong together. It says nothing
// about when anything happens, and proves less than the checker does.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/plan/action.hpp"

namespace carousel {

/// One message or one collective.
struct Exchange {
  ActionKind kind = ActionKind::send;  // otherwise that of the collective
  int from = -1;                       // of a collective: its root, or its first participant
  int to = -1;                         // of a message
  int group = -1;                      // of a collective
  std::int64_t bytes = 0;
  int started = 0;        // devices whose lists start it: both ends, or all participants
  std::size_t index = 0;  // of the action that starts it, in the list of `from`
};

struct Exchanges {
  std::vector<Exchange> all;
  std::vector<std::vector<int>> of;      // [device][action] into `all`; -1 for computing actions
  std::vector<std::vector<int>> groups;  // [group] devices in rising order
};

/// Ends of a message agree in payload, stage, step, micro-batch and version; messages that agree in
/// all of these, and the collectives of a group, keep their order. A wait is for the oldest such
/// start of its own device. Time does not matter, and a hash table makes the effort proportional to
/// the number of actions. `groups` are the devices of the collectives; empty: one group of all.
/// Throws Error(internal) naming device and action where an end is impossible or differs from the
/// other end; an end without another one is left alone.
[[nodiscard]] Exchanges match_exchanges(std::span<const std::vector<Action>> lists,
                                        std::vector<std::vector<int>> groups);

/// "device 3, action 17: t=2 step 0 forward ...": how messages about lists name an action.
[[nodiscard]] std::string action_name(int device, std::size_t index, const Action& action);

}  // namespace carousel
