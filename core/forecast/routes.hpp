// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who sends to whom in a training step, summed up for people.

#include <string>
#include <vector>

#include "core/plan/schedule.hpp"

namespace carousel {

/// Messages from one device to another, or a kind of collective within a group.
struct Route {
  int from = -1;  // with a group: the owner whose collectives these are, or -1
  int to = -1;
  int group = -1;
  ActionKind kind = ActionKind::send;
  Traffic sent;  // collectives as rings and chains of messages
};

/// Hops of a collective over some devices, one after the other: there and back around the ring for
/// an all-reduce, once along it for a broadcast or a reduction.
[[nodiscard]] int hops_of(ActionKind kind, std::size_t devices);

/// Of one training step in some lists, ordered by devices. A ring all-reduce of b bytes over p
/// devices counts as 2 p (p - 1) messages of b / p bytes, a broadcast or a reduction as p - 1 of b.
[[nodiscard]] std::vector<Route> routes_of(const Schedule& schedule,
                                           const std::vector<std::vector<Action>>& lists,
                                           std::int64_t step);
/// Of a training step in the steady state; where devices take turns, another step has the same
/// routes between others of their teams.
[[nodiscard]] std::vector<Route> routes_of(const Schedule& schedule);

[[nodiscard]] Traffic sum_of(const std::vector<Route>& routes);

/// A table of the first routes, at 80 columns; "" when nothing is sent.
[[nodiscard]] std::string to_string(const std::vector<Route>& routes, const Schedule& schedule);

}  // namespace carousel
