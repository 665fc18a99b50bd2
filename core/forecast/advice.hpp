// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which plan of a model is the fastest one that fits a machine. Rules and placements are told apart
// to the end, since they train differently and need different things; all else is searched.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/model/model.hpp"
#include "core/plan/machine.hpp"
#include "core/plan/memory_plan.hpp"
#include "core/plan/rule.hpp"

namespace carousel {

struct AdviceQuestion {
  std::int64_t samples = 1;          // of a training step, N times a micro-batch; stays as it is
  std::vector<int> micro_batches;    // sizes to try, each of which divides `samples`
  int passes = 1;                    // where the placement has them and they divide N
  double predict = 0;                // likewise, where has_prediction()
  OptimizerConfig optimizer = {};    // Clipping::model leaves dp alone
  std::int64_t largest_message = 0;  // bytes that one message may have
  Machine machine;                   // memory 0: no limit; devices: at most
  std::function<MemorySpec(int)> memory = {};  // for micro-batches of this size
};

struct Candidate {
  ParallelConfig parallel;
  int micro_batch_size = 0;
  int devices = 0;
  std::int64_t fullest = 0;  // bytes of the device that has most
  bool fits = false;
  double seconds = 0;  // per training step, where it fits
};

struct Advice {
  /// Per rule and placement the fastest plan that fits, fastest first; behind them, where none
  /// fits, the one that needs least.
  std::vector<Candidate> best;
  std::int64_t plans = 0;      // that there are
  std::int64_t simulated = 0;  // others do not fit, or cannot be faster than the best

  /// The fastest one, but that of dp where a delay would save less than a hundredth of a step.
  [[nodiscard]] const Candidate& to_take() const;
};

/// Searches all S up to 16 or that divide N, balances, v2's slack up to 2, orders and reductions
/// (`fast`; model's `local`), and stages that are cut into shards, in 16 chunks or none, by `fast`
/// sums where there are any, with late ones, too. Cyclic rules are searched with two stages and two
/// micro-batches or more, since with fewer nothing is cyclic. All placements but `single` need two
/// devices, and `model` and `pipeline` two stages. What could be faster by less than a thousandth
/// is left out.
[[nodiscard]] Advice advise(const Model& model, const AdviceQuestion& question);

/// A table for people, at 80 columns, and what a delay is worth.
[[nodiscard]] std::string to_string(const Advice& advice, const AdviceQuestion& question);

}  // namespace carousel
