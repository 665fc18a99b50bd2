// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Messages in rounds, for transports without tags, whose calls block until all of their peers have
// called: NCCL's groups. A device has one group for each of its rounds and starts them in ascending
// order. The round of a message is not before the time step in which its ends start it, and behind
// that of every message that either end waits for before. So whoever waits for something of a round
// has started all of that round and of those before it, and no two devices wait for each other.

#include <cstdint>
#include <vector>

#include "core/plan/action.hpp"
#include "core/plan/program.hpp"

namespace carousel {

/// Gives every start of a message or a collective in the lists of all devices the first round that
/// it can have, and puts an `exchange` where the last start of a round is over. Throws
/// Error(internal) where the lists wait for ever.
void add_rounds(std::vector<std::vector<Action>>& lists,
                const std::vector<std::vector<int>>& groups);

/// An action as it stands in the list of a device, and the action of a program that it is made of,
/// `later` time steps after it.
struct ProgramStep {
  Action action;
  Action* origin = nullptr;
  std::int64_t later = 0;
};

/// The same for programs, from lists that follow from them without rounds. In the lists, the period
/// that begins at time step `period` stands for all: what its messages meet is in the lists, too.
/// Rounds of a program are relative to its period, as times are; an exchange is the turn of the
/// device whose start it follows.
void add_rounds(std::vector<std::vector<ProgramStep>>& lists,
                const std::vector<std::vector<int>>& groups, std::int64_t period,
                std::vector<Program>& programs);

}  // namespace carousel
