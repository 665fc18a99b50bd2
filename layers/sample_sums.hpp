// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sums of doubles over the samples of a micro-batch, whose order of addition depends on their
// number alone.

#include <string>

#include "core/base/view.hpp"

namespace carousel {

// Sample i belongs to lane i mod lanes. Each lane adds its samples in ascending order, then the
// lanes are added in order, whoever computes them.
inline constexpr int sum_lanes = 16;

/// Vector lanes that compute what one sample adds.
inline constexpr int sample_vector = runs_on_host ? 1 : 32;

template <int K>
struct Sums {
  double of[K] = {};  // NOLINT(modernize-avoid-c-arrays): kernels write it
};

/// Adds K numbers of n samples: `terms(team, i, sums)`, for which the vector lanes of a thread work
/// together, adds those of sample i to its sums. Then calls `finish(sums)` once.
template <int K, class Terms, class Finish>
KOKKOS_FUNCTION void add_in_lanes(const Team& team, int n, const Terms& terms,
                                  const Finish& finish) {
  auto* lanes = static_cast<Sums<K>*>(
      team.team_scratch(0).get_shmem_aligned(sum_lanes * sizeof(Sums<K>), alignof(double)));
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, sum_lanes), [&](int lane) {
    Sums<K> sums;
    for (int i = lane; i < n; i += sum_lanes) terms(team, i, sums);
    Kokkos::single(Kokkos::PerThread(team), [&] { lanes[lane] = sums; });
  });
  team.team_barrier();
  Kokkos::single(Kokkos::PerTeam(team), [&] {
    Sums<K> all;
    for (int lane = 0; lane < sum_lanes; ++lane)
      for (int k = 0; k < K; ++k) all.of[k] += lanes[lane].of[k];
    finish(all);
  });
}

/// Teams that call add_in_lanes() with K numbers.
template <int K>
[[nodiscard]] TeamPolicy sum_policy(const ExecutionSpace& exec, int teams) {
  TeamPolicy policy(exec, teams, runs_on_host ? 1 : sum_lanes, sample_vector);
  policy.set_scratch_size(0, Kokkos::PerTeam(sum_lanes * sizeof(Sums<K>) + alignof(double)));
  return policy;
}

}  // namespace carousel
