// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a schedule is made of, and what a placement makes of it: what every device does in one
// training step. Schedule alone joins the two.

#include <cstdint>
#include <vector>

#include "core/plan/program.hpp"
#include "core/plan/rule.hpp"

namespace carousel {

/// Bytes of a piece of a stage: of its gradients, with what rides there, and of its parameters.
struct PieceBytes {
  std::int64_t gradients = 0;
  std::int64_t parameters = 0;
  std::int64_t norms = 0;  // of its blocks, where updates need the norm of their stage
};

/// What a schedule is a function of, beside the rule. Bytes are those of one message.
struct ScheduleSpec {
  ParallelConfig parallel;
  std::vector<std::int64_t> message_bytes = {};       // [S] a stage's gradient
  std::vector<std::int64_t> parameter_bytes = {};     // [S] its parameters; empty: the same
  std::vector<std::vector<PieceBytes>> pieces = {};   // [S][piece]; empty: stages go whole
  std::vector<std::int64_t> activation_bytes = {};    // [S] what crosses the cut behind a stage
  std::vector<std::int64_t> d_activation_bytes = {};  // [S] its gradients
  // The norms of all stages, where no update may begin before they are known; dp only. 0: none.
  std::int64_t norm_bytes = 0;
  std::int64_t rider_bytes = 0;  // of what rides with stage 0, where it travels alone
  bool rounds = false;           // messages are exchanged in rounds, see core/plan/rounds.hpp
};

namespace placements {

/// The devices of a placement.
struct Layout {
  std::int64_t period_time = 0;  // time steps
  int turns = 1;                 // micro-batches that a team takes per training step
  std::vector<Program> programs = {};
  std::vector<int> owner = {};                // [S] the device that reports on a stage
  std::vector<std::vector<int>> groups = {};  // devices of each group of the collectives
};

}  // namespace placements
}  // namespace carousel
