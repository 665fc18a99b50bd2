// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a loss reports of a micro-batch: the mean over its samples, or over all of their labels or
// numbers that count.

#include <string>

#include "core/model/layer_spec.hpp"
#include "core/model/metric.hpp"
#include "layers/sample_sums.hpp"

namespace carousel {
namespace detail {

// Losses of micro-batches are added up as such numbers as gradients; no more of them in a step.
inline constexpr double most_added = 65536;

KOKKOS_INLINE_FUNCTION void write_report(double loss, double weight, double* report) {
  static_assert(report_head == 3);
  report[0] = loss;
  report[1] = Kokkos::isfinite(static_cast<real>(loss * most_added)) ? 0.0 : 1.0;
  report[2] = weight;
}

template <class SampleLoss>
struct MeanLoss {
  int n;
  SampleLoss loss_of;
  double* report;  // [report_head]

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    add_in_lanes<1>(
        team, n, [&](const Team& own, int i, Sums<1>& sums) { sums.of[0] += loss_of(own, i); },
        [&](const Sums<1>& sums) { write_report(sums.of[0] / n, n, report); });
  }
};

template <class SampleTerms>
struct WeightedLoss {
  int n;
  SampleTerms terms_of;
  double* report;  // [report_head]
  double* weight;  // of all that counts

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    add_in_lanes<2>(team, n, terms_of, [&](const Sums<2>& sums) {
      *weight = sums.of[1];
      write_report(sums.of[1] > 0 ? sums.of[0] / sums.of[1] : 0.0, sums.of[1], report);
    });
  }
};

}  // namespace detail

/// Writes the head of a report: the mean of `loss_of(team, i)` over n samples, a double for which
/// the vector lanes of a thread work together.
template <class SampleLoss>
void report_mean(const std::string& label, const ExecutionSpace& exec, int n,
                 const SampleLoss& loss_of, double* report) {
  // One team computes all samples: the outputs of a network are few beside its layers.
  Kokkos::parallel_for(label, sum_policy<1>(exec, 1),
                       detail::MeanLoss<SampleLoss>{n, loss_of, report});
}

/// The same where not all counts: `terms_of(team, i, sums)` adds losses and weights of sample i.
/// The mean of nothing is 0. Leaves the weight to backward, too.
template <class SampleTerms>
void report_weighted(const std::string& label, const ExecutionSpace& exec, int n,
                     const SampleTerms& terms_of, double* report, double* weight) {
  Kokkos::parallel_for(label, sum_policy<2>(exec, 1),
                       detail::WeightedLoss<SampleTerms>{n, terms_of, report, weight});
}

/// One over what a gradient of the mean is divided by.
struct MeanScale {
  const double* weight;  // as report_weighted() left it; null where all counts
  double count;          // of what is added, where all counts

  [[nodiscard]] KOKKOS_FUNCTION real operator()() const {
    if (weight == nullptr) return static_cast<real>(1.0 / count);
    return *weight > 0 ? static_cast<real>(1.0 / *weight) : real(0);
  }
};

/// Where the weight of a loss lies for which not all targets count alike.
inline double* weight_in(std::byte* saved, const TargetSpec& target) {
  return target.is_weighted() ? reinterpret_cast<double*>(saved) : nullptr;
}
inline const double* weight_in(const std::byte* saved, const TargetSpec& target) {
  return target.is_weighted() ? reinterpret_cast<const double*>(saved) : nullptr;
}

}  // namespace carousel
