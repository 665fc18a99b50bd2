// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where stages travel in pieces: rings of S devices side by side, one for each device of a slot.
// Used by placements alone.

#include "core/plan/placements/layout.hpp"

namespace carousel::placements {

/// Slot s has R = W / S devices, of which replica r has worker R s + r and the pieces of shard r.
/// Inside a slot, everybody sends everybody else his pieces of a gradient (a reduce-scatter, as
/// R - 1 messages that are added in index order); between slots, partial sums and new parameters go
/// round R rings of S devices, each with the pieces of one shard; and what arrives there everybody
/// sends to the others of his slot (an all-gather). Device `slot R + r` of the slot that owns a
/// stage updates its pieces, so that R devices share optimizer state as ZeRO-1 does (Rajbhandari et
/// al. 2020, doi 10.1109/SC41405.2020.00024).
[[nodiscard]] Layout lay_out_slots(const Rule& rule, const ScheduleSpec& spec);

/// The same sums where nobody keeps more of a stage than his pieces of those that his slot owns.
/// Whole stages pass by, for forward and again for backward: under cyclic rules pieces go from slot
/// to slot and are gathered in each a time step before they are read; dp, all of whose devices are
/// one slot, gathers two passes ahead, which is fully sharded data parallelism (Zhao et al. 2023,
/// arXiv 2304.11277; ZeRO-3).
[[nodiscard]] Layout lay_out_sharded_slots(const Rule& rule, const ScheduleSpec& spec);

}  // namespace carousel::placements
