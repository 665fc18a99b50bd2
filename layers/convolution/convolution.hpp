// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// 2-D convolution, torch.nn.Conv2d with square windows and groups = 1, as products of the weights
// and the windows of the image (implicit im2col). Vendor libraries are not used here.

#include "core/engine/layer.hpp"

namespace carousel {

/// Parameters: weight [out, in, kernel, kernel], then, if the spec has one, bias [out]. A linear
/// layer of tokens is a convolution of pixels.
class Convolution final : public Layer {
 public:
  /// The outputs of a channel lie behind `before` pixels that others write.
  explicit Convolution(const LayerSpec& spec, int before = 0);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  SampleShape in_;
  SampleShape out_;
  Window window_;
  int taps_;  // of one channel
  int in_pixels_;
  int out_pixels_;
  int before_;
  bool has_bias_;
};

}  // namespace carousel
