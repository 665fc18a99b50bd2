// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The targets of a micro-batch as kernels of losses and metrics read them, beside outputs
// [n, c, pixels].

#include "core/base/view.hpp"
#include "core/model/target.hpp"

namespace carousel {

struct Targets {
  const void* values = nullptr;  // labels, int [n, pixels], or numbers, real [n, c, pixels]
  bool are_labels = true;
  int channels = 1;
  int ignored = -1;
  std::int64_t pixels = 1;

  Targets() = default;
  Targets(const void* of, const TargetSpec& spec)
      : values(of),
        are_labels(spec.has_labels()),
        channels(spec.channels()),
        ignored(spec.ignored),
        pixels(spec.pixels()) {}

  /// Outputs of a sample.
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t outputs() const { return channels * pixels; }
  /// The label of pixel p of sample i.
  [[nodiscard]] KOKKOS_FUNCTION int label(std::int64_t i, std::int64_t p) const {
    return static_cast<const int*>(values)[i * pixels + p];
  }
  /// Whether output k of sample i is compared with anything.
  [[nodiscard]] KOKKOS_FUNCTION bool counts(std::int64_t i, std::int64_t k) const {
    if (are_labels) return label(i, k % pixels) != ignored;
    return !Kokkos::isnan(static_cast<const real*>(values)[i * outputs() + k]);
  }
  /// What output k of sample i is to be: of labels 1 for its class, 0 for all others.
  [[nodiscard]] KOKKOS_FUNCTION real number(std::int64_t i, std::int64_t k) const {
    if (!are_labels) return static_cast<const real*>(values)[i * outputs() + k];
    if (pixels == 1) return label(i, 0) == k ? real(1) : real(0);
    return label(i, k % pixels) == k / pixels ? real(1) : real(0);
  }
};

/// Numbers that lie so far from each other, such as the outputs of all classes for one pixel.
template <class Stored>
struct Strided {
  const Stored* values;
  std::int64_t stride;

  KOKKOS_FUNCTION const Stored& operator[](std::int64_t c) const { return values[c * stride]; }
};

}  // namespace carousel
