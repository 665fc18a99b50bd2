// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Layers of features as plain loops over plain vectors, one formula each: what the kernels of
// layers/ must compute. Slow on purpose, and without a line of engine code.

#include <vector>

#include "core/base/real.hpp"

namespace carousel::reference {

using Numbers = std::vector<real>;

/// y[i][o] = b[o] + sum_k x[i][k] w[o][k]
[[nodiscard]] Numbers linear(const Numbers& x, const Numbers& w, const Numbers& b, int n);

struct LinearGradients {
  Numbers d_x;  // [n, in]
  Numbers d_w;  // [out, in]
  Numbers d_b;  // [out]
};
[[nodiscard]] LinearGradients linear_gradients(const Numbers& x, const Numbers& w,
                                               const Numbers& d_y, int n);

[[nodiscard]] Numbers relu(const Numbers& x);
/// The gradient of the input, from the output.
[[nodiscard]] Numbers relu_gradient(const Numbers& y, const Numbers& d_y);

/// The first term of a residual addition and the second one.
[[nodiscard]] Numbers add(const Numbers& a, const Numbers& b);

struct Loss {
  Numbers probabilities;  // [n, classes]
  double mean = 0;
  int correct = 0;
};
/// The target of a sample is 1 - smoothing for its label and smoothing / classes more for all.
[[nodiscard]] Loss softmax_cross_entropy(const Numbers& logits, const std::vector<int>& labels,
                                         double smoothing = 0);
/// The gradient of the mean loss with respect to the logits.
[[nodiscard]] Numbers softmax_cross_entropy_gradient(const Numbers& probabilities,
                                                     const std::vector<int>& labels,
                                                     double smoothing = 0);

}  // namespace carousel::reference
