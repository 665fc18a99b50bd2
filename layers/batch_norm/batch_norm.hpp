// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Batch normalisation, torch.nn.BatchNorm2d (Ioffe & Szegedy 2015): in training with the statistics
// of the micro-batch, in evaluation with running ones, which the update keeps, not this layer.

#include "core/engine/layer.hpp"

namespace carousel {

/// Parameters: weight [c], then bias [c]. Buffers: running mean [c], then running variance [c].
/// Saved for backward: mean, 1 / standard deviation, and the unbiased variance, [c] each.
class BatchNorm final : public Layer {
 public:
  explicit BatchNorm(const LayerSpec& spec);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  double epsilon_;
};

}  // namespace carousel
