// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How often each class is predicted and right, predicted, and a label: ClassCounts, one behind the
// other.

#include "layers/metrics/largest.hpp"
#include "layers/metrics/metric_kernels.hpp"

namespace carousel {

/// Counts are whole numbers, which add up to the same in any order.
template <class Stored>
struct ClassCounting {
  MetricArguments arguments;

  KOKKOS_FUNCTION void operator()(std::int64_t at) const {
    visit_label<Stored>(arguments, at, [&](const Strided<Stored>& outputs, int label) {
      const int predicted = index_of_largest(outputs, arguments.targets.channels);
      if (predicted == label) Kokkos::atomic_add(arguments.sums + 3 * label, 1.0);
      Kokkos::atomic_add(arguments.sums + 3 * predicted + 1, 1.0);
      Kokkos::atomic_add(arguments.sums + 3 * label + 2, 1.0);
    });
  }
};

struct Zero {
  double* sums;

  KOKKOS_FUNCTION void operator()(std::int64_t k) const { sums[k] = 0; }
};

inline void count_classes(const std::string& label, const ExecutionSpace& exec,
                          const MetricArguments& arguments) {
  static const std::string begin_label = "carousel::layers::begin_counts";
  Kokkos::parallel_for(begin_label, range(exec, std::int64_t{3} * arguments.targets.channels),
                       Zero{arguments.sums});
  with_stored(arguments.type, [&]<class Stored>() {
    Kokkos::parallel_for(label, range(exec, arguments.n * arguments.targets.pixels),
                         ClassCounting<Stored>{arguments});
  });
}

}  // namespace carousel
