// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The update of one stage, torch.optim.SGD, as one kernel over its flat parameters. It keeps no
// state: buffers are borrowed, and the learning rate comes with every call.

#include <cstdint>

#include "core/base/view.hpp"
#include "core/train/config.hpp"

namespace carousel {

/// The numbers of one update.
struct SgdStep {
  double learning_rate = 0;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool first = false;  // the momentum buffer is unset and becomes the gradient
};

[[nodiscard]] SgdStep sgd_step(const OptimizerConfig& config, double learning_rate, bool first);

/// Computes theta_{t+1} from theta_t and the gradient `scale * gradient_sum`, and the digest of
/// theta_{t+1} (core/base/digest.hpp) in the same pass. `next` may be `theta`; `momentum` is empty
/// when step.momentum is zero. Rounds as PyTorch does: in `real`, with fused multiply-add.
void update(const ExecutionSpace& exec, const SgdStep& step, const ConstVector& theta,
            const ConstVector& gradient_sum, real scale, const Vector& momentum, const Vector& next,
            std::uint64_t* digest);

}  // namespace carousel
