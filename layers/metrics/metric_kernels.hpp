// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the kernels of a metric are told: the outputs that a loss reads, the targets, and where the
// sums of a micro-batch go. One function for each kind, of its name, which only enqueues.

#include <span>
#include <string>

#include "core/base/range.hpp"
#include "core/engine/layer.hpp"
#include "layers/sample_sums.hpp"
#include "layers/stored.hpp"
#include "layers/targets.hpp"

namespace carousel {

/// Borrowed device memory.
struct MetricArguments {
  int n = 0;  // samples
  DataType type = DataType::full;
  const real* values = nullptr;  // [n, channels, pixels], stored in that type
  Targets targets;
  double* sums = nullptr;  // to be overwritten
};

struct MetricKernels {
  const char* name;
  void (*compute)(const ExecutionSpace& exec, const MetricArguments& arguments);
};
[[nodiscard]] std::span<const MetricKernels> all_metric_kernels();

/// Calls visit(outputs of the pixel, label) for label number `at` of a micro-batch, unless it
/// counts for nothing.
template <class Stored, class Visit>
KOKKOS_FUNCTION void visit_label(const MetricArguments& arguments, std::int64_t at,
                                 const Visit& visit) {
  const Targets& targets = arguments.targets;
  const std::int64_t i = at / targets.pixels;
  const std::int64_t p = at % targets.pixels;
  const int label = targets.label(i, p);
  if (label == targets.ignored) return;
  const auto* values = reinterpret_cast<const Stored*>(arguments.values);
  visit(Strided<Stored>{values + i * targets.outputs() + p, targets.pixels}, label);
}

/// Counts labels for which `holds(outputs of the pixel, classes, label)`. Counts are whole numbers,
/// which add up to the same in any order.
template <class Stored, class Holds>
struct LabelCount {
  MetricArguments arguments;
  Holds holds;

  KOKKOS_FUNCTION void operator()(std::int64_t at, double& count) const {
    visit_label<Stored>(arguments, at, [&](const Strided<Stored>& outputs, int label) {
      if (holds(outputs, arguments.targets.channels, label)) count += 1;
    });
  }
  KOKKOS_FUNCTION void final(double& count) const { *arguments.sums = count; }
};

/// Of all labels that count for anything.
struct HoldsAlways {
  template <class Numbers>
  KOKKOS_FUNCTION bool operator()(const Numbers& /*values*/, int /*classes*/, int /*label*/) const {
    return true;
  }
};

template <class Holds>
void count_labels(const std::string& label, const ExecutionSpace& exec,
                  const MetricArguments& arguments, const Holds& holds) {
  with_stored(arguments.type, [&]<class Stored>() {
    const auto labels = range(exec, arguments.n * arguments.targets.pixels);
    Kokkos::parallel_reduce(label, labels, LabelCount<Stored, Holds>{arguments, holds});
    if (arguments.targets.ignored < 0) return;
    MetricArguments behind = arguments;
    ++behind.sums;
    Kokkos::parallel_reduce(label, labels, LabelCount<Stored, HoldsAlways>{behind, {}});
  });
}

/// Sums over the samples of what a metric of numbers is made of, a team for each channel, whose K
/// sums lie behind those of the channel before.
template <int K, class Stored, class Terms>
struct ChannelSums {
  MetricArguments arguments;
  Terms terms;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const int c = team.league_rank();
    const Targets& targets = arguments.targets;
    const auto* values = reinterpret_cast<const Stored*>(arguments.values);
    add_in_lanes<K>(
        team, arguments.n,
        [&](const Team& own, int i, Sums<K>& sums) {
          const std::int64_t first = i * targets.outputs() + c * targets.pixels;
          terms(own, values + first, static_cast<const real*>(targets.values) + first,
                targets.pixels, sums);
        },
        [&](const Sums<K>& sums) {
          for (int k = 0; k < K; ++k) arguments.sums[c * K + k] = sums.of[k];
        });
  }
};

/// `terms(team, outputs, targets, pixels, sums)` adds what one channel of one sample does.
template <int K, class Terms>
void sum_channels(const std::string& label, const ExecutionSpace& exec,
                  const MetricArguments& arguments, const Terms& terms) {
  with_stored(arguments.type, [&]<class Stored>() {
    Kokkos::parallel_for(label, sum_policy<K>(exec, arguments.targets.channels),
                         ChannelSums<K, Stored, Terms>{arguments, terms});
  });
}

}  // namespace carousel
