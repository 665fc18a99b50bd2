// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Cyclic rules where stages travel in pieces: rings of S devices side by side, one for each device
// of a slot. Used by `replicated` alone.

#include "core/plan/placements/layout.hpp"

namespace carousel::placements {

/// Slot s has R = N / S devices, of which replica r has micro-batch R s + r and the pieces of shard
/// r. Inside a slot, everybody sends everybody else his pieces of a gradient (a reduce-scatter, as
/// R - 1 messages that are added in index order); between slots, partial sums and new parameters go
/// round R rings of S devices, each with the pieces of one shard; and what arrives there everybody
/// sends to the others of his slot (an all-gather). Device `slot R + r` of the slot that owns a
/// stage updates its pieces, so that R devices share optimizer state as ZeRO-1 does (Rajbhandari et
/// al. 2020, doi 10.1109/SC41405.2020.00024).
[[nodiscard]] Layout lay_out_slots(const Rule& rule, const ScheduleSpec& spec);

}  // namespace carousel::placements
