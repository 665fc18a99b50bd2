// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/kernels.hpp"

#include "core/base/check.hpp"
#include "core/base/range.hpp"

namespace carousel {

void add(const ExecutionSpace& exec, const Vector& destination, const ConstVector& source) {
  static const std::string label = "carousel::train::add_gradient";
  CAROUSEL_CHECK(destination.size() == source.size(), "{} += {} numbers", destination.size(),
                 source.size());
  real* to = destination.data();
  const real* from = source.data();
  Kokkos::parallel_for(
      label, range(exec, static_cast<std::int64_t>(destination.size())),
      KOKKOS_LAMBDA(std::int64_t i) { to[i] += from[i]; });
}

void add(const ExecutionSpace& exec, Metrics* destination, const Metrics* source) {
  static const std::string label = "carousel::train::add_metrics";
  Kokkos::parallel_for(
      label, range(exec, 1), KOKKOS_LAMBDA(int) {
        destination->loss += source->loss;
        destination->correct += source->correct;
        destination->non_finite += source->non_finite;
        destination->samples += source->samples;
      });
}

}  // namespace carousel
