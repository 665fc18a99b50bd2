// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every placement as one struct, which its own file makes: names, texts, formulas, facts, and what
// its devices do. All that decks, help, plans and schedules know of placements follows from these.

#include <span>
#include <string>
#include <vector>

#include "core/plan/placements/traits.hpp"
#include "core/plan/rule.hpp"

namespace carousel {

struct ScheduleSpec;
namespace placements {
struct Layout;
}

/// What a number is under dp and under cyclic rules.
struct Formulas {
  const char* dp;
  const char* cyclic;
};

/// What `carousel plan --compare` prints beside its numbers. N = R S; a_j and p_j are the bytes of
/// activations and parameters of stage j, A and P their sums, C those of both ways over all cuts, L
/// those of the stages that the last device updates. They hold for N > 1 and S > 1, and those of
/// cyclic rules where S divides N.
struct PlacementFormulas {
  Formulas devices;
  Formulas busy;                 // part of the time steps in which a device computes
  Formulas largest_activations;  // on the device that has most
  Formulas held_activations;     // in use at once on all devices
  Formulas parameter_copies;     // on all devices, in copies of the model
  Formulas optimizer_state;      // on all devices
  Formulas sent;                 // by all devices in a training step
  Formulas longest;              // messages in a row between two time steps that compute, at most
};

/// A compiler refuses one that leaves out what has no standard value.
struct PlacementKind {
  Placement placement;
  const char* name;
  const char* doc;   // a sentence for the key of a deck
  const char* help;  // for `carousel help placements`: how many devices, and what happens on them
  PlacementFormulas formulas;
  int (*devices)(const ParallelConfig& parallel);  // of whole slots where those are needed
  placements::Layout (*layout)(const Rule& rule, const ScheduleSpec& spec);
  PlacementTraits traits = {};
};

/// All of them in the order of the enum, in which they are shown.
[[nodiscard]] std::span<const PlacementKind> placement_kinds();
/// Error(internal) where there is none.
[[nodiscard]] const PlacementKind& kind_of(Placement placement);
/// Names of those that have a trait, as conditions of other keys take them.
[[nodiscard]] std::vector<std::string> placements_with(bool PlacementTraits::*trait);

}  // namespace carousel
