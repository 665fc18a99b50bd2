// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a loss reports of a micro-batch: the mean over its samples, whose order of addition depends
// on their number alone.

#include <string>

#include "core/base/view.hpp"
#include "core/model/metric.hpp"

namespace carousel {
namespace detail {

// Sample i belongs to lane i mod lanes. Each lane adds its samples in ascending order, then the
// lanes are added in order, whoever computes them.
inline constexpr int loss_lanes = 16;

// Losses of micro-batches are added up as such numbers as gradients; no more of them in a step.
inline constexpr double most_added = 65536;

template <class SampleLoss>
struct MeanLoss {
  int n;
  SampleLoss loss_of;
  double* report;  // [report_head]

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    auto* sums = static_cast<double*>(
        team.team_scratch(0).get_shmem_aligned(loss_lanes * sizeof(double), alignof(double)));
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, loss_lanes), [&](int lane) {
      double sum = 0;
      for (int i = lane; i < n; i += loss_lanes) sum += loss_of(team, i);
      Kokkos::single(Kokkos::PerThread(team), [&] { sums[lane] = sum; });
    });
    team.team_barrier();
    Kokkos::single(Kokkos::PerTeam(team), [&] {
      static_assert(report_head == 3);
      double all = 0;
      for (int lane = 0; lane < loss_lanes; ++lane) all += sums[lane];
      report[0] = all / n;
      report[1] = Kokkos::isfinite(static_cast<real>(report[0] * most_added)) ? 0.0 : 1.0;
      report[2] = n;
    });
  }
};

}  // namespace detail

/// Vector lanes that compute the loss of one sample.
inline constexpr int loss_vector = runs_on_host ? 1 : 32;

/// Writes the head of a report: the mean of `loss_of(team, i)` over n samples, a double for which
/// the vector lanes of a thread work together.
template <class SampleLoss>
void report_mean(const std::string& label, const ExecutionSpace& exec, int n,
                 const SampleLoss& loss_of, double* report) {
  // One team computes all samples: the outputs of a network are few beside its layers.
  TeamPolicy policy(exec, 1, runs_on_host ? 1 : detail::loss_lanes, loss_vector);
  policy.set_scratch_size(0,
                          Kokkos::PerTeam(detail::loss_lanes * sizeof(double) + alignof(double)));
  Kokkos::parallel_for(label, policy, detail::MeanLoss<SampleLoss>{n, loss_of, report});
}

}  // namespace carousel
