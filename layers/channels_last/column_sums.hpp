// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sums over all rows of every channel, in double: of chunks of rows that follow from shapes alone,
// then of the chunks, always in one order.

#include <algorithm>

#include "core/model/workspace.hpp"
#include "layers/channels_last/rows.hpp"

namespace carousel::channels_last {

struct Sums {
  double first = 0;
  double second = 0;

  KOKKOS_FUNCTION Sums& operator+=(const Sums& other) {
    first += other.first;
    second += other.second;
    return *this;
  }
};

/// A team adds up a slab of channels of a chunk of rows: a thread takes a pack of channels of every
/// `stride`-th row.
struct SumTeams {
  static constexpr int threads = 256;
  static constexpr int most_across = 32;
  static constexpr std::int64_t least_rows = 64;  // of a chunk

  int across;  // threads beside each other
  int stride;
  int slab;
  int slabs;
  int chunks;
  std::int64_t chunk_rows;

  SumTeams(std::int64_t rows, int channels, int width)
      : across(std::min(most_across, (channels + width - 1) / width)),
        stride(threads / across),
        slab(across * width),
        slabs((channels + slab - 1) / slab),
        chunks(static_cast<int>(std::clamp<std::int64_t>(
            norm_teams / slabs, 1, std::max<std::int64_t>(1, rows / least_rows)))),
        chunk_rows((rows + chunks - 1) / chunks) {
    static_assert(most_across * pack_width <= norm_slab);
  }
};

namespace detail {

using SumScratch = Kokkos::View<Sums*, ExecutionSpace::scratch_memory_space,
                                Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

[[nodiscard]] inline TeamPolicy sum_teams(const ExecutionSpace& exec, int teams, int scratch) {
  TeamPolicy policy(exec, teams, runs_on_host ? 1 : SumTeams::threads);
  policy.set_scratch_size(0, Kokkos::PerTeam(SumScratch::shmem_size(scratch)));
  return policy;
}

/// Leaves the sums of each chunk: partial [chunk][c].
template <int Width, class Adder>
void add_chunks(const ExecutionSpace& exec, const std::string& label, std::int64_t rows,
                int channels, const SumTeams& teams, const Adder& adder, Sums* partial) {
  constexpr int room = SumTeams::threads * Width;
  Kokkos::parallel_for(
      label, sum_teams(exec, teams.chunks * teams.slabs, room), KOKKOS_LAMBDA(const Team& team) {
        const int chunk = team.league_rank() / teams.slabs;
        const int first = team.league_rank() % teams.slabs * teams.slab;
        const std::int64_t begin = chunk * teams.chunk_rows;
        const std::int64_t end = Kokkos::min(begin + teams.chunk_rows, rows);
        const SumScratch scratch(team.team_scratch(0), room);
        const int lanes = teams.across * teams.stride;
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, lanes), [&](int lane) {
          const int c = first + lane % teams.across * Width;
          Sums sums[Width];  // NOLINT(modernize-avoid-c-arrays): registers
          if (c < channels)
            adder.template add<Width>(c, begin + lane / teams.across, teams.stride, end, sums);
          for (int l = 0; l < Width; ++l) scratch(lane * Width + l) = sums[l];
        });
        team.team_barrier();
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, teams.slab), [&](int column) {
          if (first + column >= channels) return;
          Sums sum;
          for (int part = 0; part < teams.stride; ++part)
            sum += scratch(part * teams.slab + column);
          partial[std::int64_t{chunk} * channels + first + column] = sum;
        });
      });
}

/// Calls finish(c, sums) with the sums of all chunks.
template <class Finish>
void add_partial(const ExecutionSpace& exec, const std::string& label, int channels, int chunks,
                 const Sums* partial, const Finish& finish) {
  constexpr int across = 8;  // channels of a team: a cache line
  constexpr int parts = SumTeams::threads / across;
  Kokkos::parallel_for(
      label, sum_teams(exec, (channels + across - 1) / across, SumTeams::threads),
      KOKKOS_LAMBDA(const Team& team) {
        const int first = team.league_rank() * across;
        const SumScratch scratch(team.team_scratch(0), SumTeams::threads);
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, SumTeams::threads), [&](int lane) {
          const int c = first + lane % across;
          Sums sum;
          if (c < channels) {
            for (int chunk = lane / across; chunk < chunks; chunk += parts)
              sum += partial[std::int64_t{chunk} * channels + c];
          }
          scratch(lane) = sum;
        });
        team.team_barrier();
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, across), [&](int column) {
          if (first + column >= channels) return;
          Sums sum;
          for (int part = 0; part < parts; ++part) sum += scratch(part * across + column);
          finish(first + column, sum);
        });
      });
}

}  // namespace detail

/// What two kernels of a sum are called, in profilers.
struct SumLabels {
  const std::string& chunks;
  const std::string& total;
};

/// Calls finish(c, sums) for every channel, with two sums over all rows: those that
/// adder.add<Width>(c, row, stride, end, sums) adds of rows row, row + stride and so on before end,
/// for channel c and those behind it. `partial` has norm_workspace bytes.
template <class Adder, class Finish>
void add_up(const ExecutionSpace& exec, const SumLabels& labels, std::int64_t rows, int channels,
            const Adder& adder, double* partial, const Finish& finish) {
  const bool packed = channels % pack_width == 0;
  const SumTeams teams(rows, channels, packed ? pack_width : 1);
  auto* const sums = reinterpret_cast<Sums*>(partial);
  if (packed)
    detail::add_chunks<pack_width>(exec, labels.chunks, rows, channels, teams, adder, sums);
  else
    detail::add_chunks<1>(exec, labels.chunks, rows, channels, teams, adder, sums);
  detail::add_partial(exec, labels.total, channels, teams.chunks, sums, finish);
}

}  // namespace carousel::channels_last
