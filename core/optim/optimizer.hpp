// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// `[train.optimizer]`: how gradients change parameters. Each kind is a struct of its own, whose
// kernels are in core/train/updates.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/optim/optimizers/adamw.hpp"
#include "core/optim/optimizers/lamb.hpp"
#include "core/optim/optimizers/lion.hpp"
#include "core/optim/optimizers/sgd.hpp"

namespace carousel {

/// Every kind; the first one is the standard.
using Optimizer = std::variant<Sgd, AdamW, Lion, Lamb>;

/// Which norm is clipped: none, that of a stage's gradient, that of the whole model's.
enum class Clipping : std::uint8_t { none, stage, model };

/// The name of averages of parameters among the states.
inline constexpr const char* average_state = "ema";

struct OptimizerConfig {
  Optimizer kind = {};
  double learning_rate = 0.1;
  double weight_decay = 0;
  bool decay_norm_and_bias = true;  // false: weight decay leaves out what is one number per feature
  // Most that the norm of a gradient may be, of the whole model or of a stage; 0: anything.
  double clip_norm = 0;  // dp only, and instead of the other
  double clip_stage_norm = 0;
  // Of averages of the parameters, what the one before counts for: after the first update they are
  // the parameters, then ema average + (1 - ema) parameters. 0: there are none.
  double ema = 0;

  [[nodiscard]] static std::vector<Row<OptimizerConfig>> rows();
  /// The row of `ema`, which is no optimizer's: it stands in [train].
  [[nodiscard]] static Row<OptimizerConfig> average_row();
  [[nodiscard]] std::vector<NoEffect> without_effect() const;
  /// Error(usage) for values that contradict each other.
  void check() const;

  [[nodiscard]] const char* name() const;
  /// Names of the numbers that it keeps beside each parameter; PyTorch's where PyTorch has it.
  /// Averages come last.
  [[nodiscard]] std::vector<std::string> states() const;
  /// Bytes that an update works with, where no tensor of a stage has more numbers than that.
  [[nodiscard]] std::int64_t workspace_bytes(std::int64_t largest_tensor) const;
  /// Whether an update works with sums over all numbers of a tensor.
  [[nodiscard]] bool needs_whole_tensors() const { return workspace_bytes(1) > 0; }
  [[nodiscard]] Clipping clipping() const;
};

}  // namespace carousel
