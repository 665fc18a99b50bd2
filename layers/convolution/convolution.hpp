// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Convolution, torch.nn.Conv2d with square windows, or Conv1d. Vendor libraries are not used here.

#include "layers/convolution/products.hpp"

namespace carousel {

/// Parameters: weight [out, in / groups, taps], then, if the spec has one, bias [out]. A linear
/// layer of tokens is a convolution of pixels.
class Convolution final : public Layer {
 public:
  /// The outputs of a channel lie behind `before` pixels that others write.
  explicit Convolution(const LayerSpec& spec, int before = 0);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  WindowProducts products_;
  std::int64_t weights_;
  int before_;
  bool has_bias_;
  bool learns_;
};

}  // namespace carousel
