// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The update of one stage over its flat parameters, by whatever optimizer the deck names. It keeps
// no state: buffers are borrowed, and the learning rate comes with every call.

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/view.hpp"
#include "core/plan/stage_memory.hpp"
#include "core/train/config.hpp"

namespace carousel {

/// One update of a training.
struct OptimizerStep {
  OptimizerConfig config;
  double learning_rate = 0;
  std::int64_t number = 0;  // updates before it; before the first one, states are unset
};

/// The vectors of parameters first .. first + size - 1 of a stage. Borrowed device memory.
struct UpdateVectors {
  std::int64_t first = 0;
  std::int64_t size = 0;
  const real* theta = nullptr;
  const real* gradient_sum = nullptr;
  real scale = 1;              // the gradient is scale * gradient_sum
  const real* clip = nullptr;  // and shortened by this factor, if there is one
  real* states = nullptr;      // as the optimizer names them, one after the other
  real* average = nullptr;     // the last of them, of parameters; null: there is none
  real* next = nullptr;        // may be `theta`
  std::uint64_t* digest = nullptr;
  bool adds_digest = false;             // to that of other parameters of the stage
  std::span<std::byte> workspace = {};  // as many as the optimizer asks for
};

/// What an optimizer is told: computes theta_{t+1} of parameters of `stage`, and what they add to
/// the digest of theta_{t+1} (core/base/digest.hpp) in the same pass.
struct StageUpdate {
  const ExecutionSpace& exec;
  const OptimizerStep& step;
  const StageMemory& stage;
  const UpdateVectors& vectors;
};

/// Rounds as PyTorch does: in `real`, with fused multiply-add; but square roots, which PyTorch does
/// not round correctly, are.
void update(const ExecutionSpace& exec, const OptimizerStep& step, const StageMemory& stage,
            const UpdateVectors& vectors);

/// The running statistics of one stage, behind its parameters. Borrowed device memory.
struct StatisticsVectors {
  const real* running = nullptr;
  const real* batch_sums = nullptr;
  real scale = 1;
  real* next = nullptr;
  std::int64_t parameters = 0;      // numbers before them in the digest
  std::uint64_t* digest = nullptr;  // is added to; null: not wanted
};

/// Running statistics: next = (1 - m) running + m scale batch_sums, m being the momentum of each
/// range.
void update_statistics(const ExecutionSpace& exec, std::span<const StatisticsRange> ranges,
                       const StatisticsVectors& vectors);

}  // namespace carousel
