// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Proves that a schedule is right before it runs, by executing it on symbols instead of numbers:
// every buffer holds a statement of what it contains. It repairs nothing and knows no placement.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/schedule.hpp"

namespace carousel {

/// The first action that cannot be executed as the rule demands.
struct Fault {
  int device = 0;
  std::size_t index = 0;  // into the device's list
  std::string text;       // names the action and what is wrong with it
};

/// Executes the lists of all devices for one segment, sends completing only once their receive is
/// posted. Checks: no deadlock; every message has its other end with equal bytes, and all are
/// waited for; no more messages at once than planned; no buffer is overwritten while it is read,
/// sent or landing, and each is the one the executor takes; versions are the rule's, stated here a
/// second time; each stage of each micro-batch runs forward and backward exactly once per step;
/// gradients are added in index order and complete at the update, which knows the norms of all
/// stages where it waits for them; activations are released once, gradients of activations read
/// once; each loss is reported before the next one, in order; tokens let each device begin when the
/// one before is as far ahead as the rule says; a decision taken at the end of step t is known
/// everywhere before any action of step t + 3; collectives only for what `reduction` and placement
/// have them, among devices that mean the same; where there are rounds, that both ends of a message
/// are of one round, behind all that was waited for, and no wait stands before its round; both
/// versions of all parameters are complete at the end.
[[nodiscard]] std::optional<Fault> check_actions(const Schedule& schedule, const Segment& segment,
                                                 const std::vector<std::vector<Action>>& lists);

/// Checks segments that stand for all, since lists repeat by construction: the window() of the
/// schedule, and one step by itself. From these follows every other begin and end: what a step
/// leaves behind, its own actions alone have then been proven to complete.
[[nodiscard]] std::optional<Fault> find_fault(const Schedule& schedule);

/// Checks a schedule that Carousel made. Throws Error(internal) on a fault.
void check_schedule(const Schedule& schedule);

}  // namespace carousel
