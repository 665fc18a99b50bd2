// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sums over all rows of every channel, in double: of chunks of rows that follow from shapes alone,
// then of the chunks in order.

#include <algorithm>

#include "core/base/view.hpp"
#include "core/model/vendor.hpp"

namespace carousel::channels_last {

/// A team adds up so many channels of a chunk of rows, of which its threads take every `stride`-th.
inline constexpr int slab = norm_slab;
inline constexpr int stride = 8;
inline constexpr std::int64_t least_rows = 64;

struct Sums {
  double first = 0;
  double second = 0;
};

[[nodiscard]] constexpr int slabs_of(int channels) {
  return (channels + slab - 1) / slab;
}

/// Chunks of so many rows that are added up apart, in norm_workspace bytes.
[[nodiscard]] constexpr std::int64_t sum_chunks(std::int64_t rows, int channels) {
  const std::int64_t most = std::max<std::int64_t>(1, rows / least_rows);
  return std::clamp<std::int64_t>(norm_teams / slabs_of(channels), 1, most);
}

/// Sums of `value(row, c)`, which are two, over the rows of each chunk: partial [chunk][c].
template <class Value>
void add_up(const ExecutionSpace& exec, const std::string& label, std::int64_t rows, int channels,
            const Value& value, double* partial) {
  const auto chunks = static_cast<int>(sum_chunks(rows, channels));
  const int slabs = slabs_of(channels);
  const std::int64_t chunk_rows = (rows + chunks - 1) / chunks;
  constexpr int lanes = slab * stride;
  using Scratch = Kokkos::View<Sums*, ExecutionSpace::scratch_memory_space,
                               Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  TeamPolicy policy(exec, chunks * slabs, runs_on_host ? 1 : lanes);
  policy.set_scratch_size(0, Kokkos::PerTeam(Scratch::shmem_size(lanes)));
  auto* sums = reinterpret_cast<Sums*>(partial);
  Kokkos::parallel_for(
      label, policy, KOKKOS_LAMBDA(const Team& team) {
        const int chunk = team.league_rank() / slabs;
        const int first = team.league_rank() % slabs * slab;
        const std::int64_t begin = chunk * chunk_rows;
        const std::int64_t end = Kokkos::min(begin + chunk_rows, rows);
        const Scratch scratch(team.team_scratch(0), lanes);
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, lanes), [&](int lane) {
          const int c = first + lane % slab;
          Sums sum;
          if (c < channels) {
            for (std::int64_t row = begin + lane / slab; row < end; row += stride) {
              const Sums one = value(row, c);
              sum.first += one.first;
              sum.second += one.second;
            }
          }
          scratch(lane) = sum;
        });
        team.team_barrier();
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, slab), [&](int lane) {
          if (first + lane >= channels) return;
          Sums sum;
          for (int part = 0; part < stride; ++part) {
            sum.first += scratch(part * slab + lane).first;
            sum.second += scratch(part * slab + lane).second;
          }
          sums[static_cast<std::int64_t>(chunk) * channels + first + lane] = sum;
        });
      });
}

/// The sums of all chunks of a channel, in order; they take the place of the first chunk's.
KOKKOS_INLINE_FUNCTION Sums total(double* partial, int chunks, int channels, int c) {
  auto* sums = reinterpret_cast<Sums*>(partial);
  Sums sum = sums[c];
  for (int chunk = 1; chunk < chunks; ++chunk) {
    const Sums& one = sums[static_cast<std::int64_t>(chunk) * channels + c];
    sum.first += one.first;
    sum.second += one.second;
  }
  sums[c] = sum;
  return sum;
}

}  // namespace carousel::channels_last
