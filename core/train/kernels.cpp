// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/kernels.hpp"

#include "core/base/range.hpp"

namespace carousel {

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
