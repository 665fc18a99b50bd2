// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the kernels of a metric are told: the outputs that a loss reads, and where the sums of a
// micro-batch go. One function for each kind, of its name, which only enqueues.

#include <span>
#include <string>

#include "core/base/range.hpp"
#include "core/engine/layer.hpp"
#include "layers/stored.hpp"

namespace carousel {

/// Borrowed device memory.
struct MetricArguments {
  int n = 0;        // samples
  int outputs = 0;  // of a sample
  DataType type = DataType::full;
  const real* values = nullptr;  // [n, outputs], stored in that type
  const int* labels = nullptr;   // [n]
  double* sums = nullptr;        // to be overwritten
};

struct MetricKernels {
  const char* name;
  void (*compute)(const ExecutionSpace& exec, const MetricArguments& arguments);
};
[[nodiscard]] std::span<const MetricKernels> all_metric_kernels();

/// Counts samples for which `holds(values of the sample, outputs, label)`. Counts are whole
/// numbers, which add up to the same in any order.
template <class Stored, class Holds>
struct SampleCount {
  MetricArguments arguments;
  Holds holds;

  KOKKOS_FUNCTION void operator()(std::int64_t i, double& count) const {
    const auto* values = reinterpret_cast<const Stored*>(arguments.values);
    if (holds(values + i * arguments.outputs, arguments.outputs, arguments.labels[i])) count += 1;
  }
  KOKKOS_FUNCTION void final(double& count) const { *arguments.sums = count; }
};

template <class Holds>
void count_samples(const std::string& label, const ExecutionSpace& exec,
                   const MetricArguments& arguments, const Holds& holds) {
  with_stored(arguments.type, [&]<class Stored>() {
    Kokkos::parallel_reduce(label, range(exec, arguments.n),
                            SampleCount<Stored, Holds>{arguments, holds});
  });
}

}  // namespace carousel
