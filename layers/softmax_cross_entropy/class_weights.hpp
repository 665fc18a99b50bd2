// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// task.weights as kernels are given them.

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/view.hpp"
#include "core/model/task.hpp"

namespace carousel::kernels {

/// What classes count for, where they do not count alike.
struct ClassWeights {
  double of[most_weights] = {};  // NOLINT(modernize-avoid-c-arrays): kernels are given all of it
  bool differ = false;
  double sum = 0;

  explicit ClassWeights(const std::vector<double>& weights) : differ(!weights.empty()) {
    CAROUSEL_CHECK(weights.size() <= most_weights, "{} weights", weights.size());
    std::ranges::copy(weights, of);
    sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  }
  [[nodiscard]] KOKKOS_FUNCTION double operator[](int c) const { return differ ? of[c] : 1.0; }
};

}  // namespace carousel::kernels
