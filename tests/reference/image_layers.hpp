// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Layers of images as plain loops over plain vectors, one formula each: what the kernels of layers/
// must compute. Slow on purpose, and without a line of engine code.

#include <vector>

#include "core/model/model.hpp"
#include "tests/reference/layers.hpp"

namespace carousel::reference {

/// n images through a convolution or a pooling.
struct Windows {
  int n = 1;
  SampleShape input;
  SampleShape output;
  Window window;
};

/// y[i][o][r][s] = b[o] + sum_{c,u,v} w[o][c][u][v] x[i][c][stride r + u - padding][stride s + v -
/// padding], where pixels outside of the image are zero; `b` may be empty.
[[nodiscard]] Numbers convolution(const Windows& windows, const Numbers& x, const Numbers& w,
                                  const Numbers& b);

struct ConvolutionGradients {
  Numbers d_x;  // [n, in, h, w]
  Numbers d_w;  // [out, in, kernel, kernel]
  Numbers d_b;  // [out]
};
[[nodiscard]] ConvolutionGradients convolution_gradients(const Windows& windows, const Numbers& x,
                                                         const Numbers& w, const Numbers& d_y);

/// Padding never wins; NaN does.
[[nodiscard]] Numbers max_pool(const Windows& windows, const Numbers& x);
/// Of equal pixels the first one has the gradient.
[[nodiscard]] Numbers max_pool_gradient(const Windows& windows, const Numbers& x,
                                        const Numbers& d_y);

/// Without padding; a window of kernel 0 is the whole image.
[[nodiscard]] Numbers average_pool(const Windows& windows, const Numbers& x);
[[nodiscard]] Numbers average_pool_gradient(const Windows& windows, const Numbers& d_y);

/// Of every channel over images and pixels.
struct Statistics {
  std::vector<double> mean;
  std::vector<double> variance;  // divided by the count
  std::vector<double> unbiased;  // divided by the count less one
};
[[nodiscard]] Statistics statistics(int n, const SampleShape& shape, const Numbers& x);

/// (x - mean) / sqrt(variance + epsilon) w + b, w and b being numbers of a channel.
[[nodiscard]] Numbers batch_norm(int n, const SampleShape& shape, const Numbers& x,
                                 const Statistics& statistics, const Numbers& w, const Numbers& b);

struct BatchNormGradients {
  Numbers d_x;  // [n, c, h, w]
  Numbers d_w;  // [c]
  Numbers d_b;  // [c]
};
/// In training: mean and variance are functions of x.
[[nodiscard]] BatchNormGradients batch_norm_gradients(int n, const SampleShape& shape,
                                                      const Numbers& x, const Numbers& w,
                                                      const Numbers& d_y);

}  // namespace carousel::reference
