// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sums over all pixels of one channel of a micro-batch, by one team. In double, and in an order
// that depends on nothing but the shape.

#include "core/base/view.hpp"
#include "core/model/model.hpp"

namespace carousel::detail {

/// Two sums that are made in one pass.
struct TwoSums {
  double first = 0;
  double second = 0;

  KOKKOS_FUNCTION TwoSums& operator+=(const TwoSums& other) {
    first += other.first;
    second += other.second;
    return *this;
  }
};

/// The pixels of one channel in [n, c, h, w].
struct ChannelPixels {
  int n;
  std::int64_t image_stride;  // c h w
  std::int64_t begin;         // of the channel in the first image
  int pixels;                 // h w

  KOKKOS_FUNCTION ChannelPixels(int images, const SampleShape& shape, int channel)
      : n(images),
        image_stride(shape.size()),
        begin(channel * shape.pixels()),
        pixels(static_cast<int>(shape.pixels())) {}
};

/// Calls visit(offset) for every pixel of the channel; the team shares the work.
template <class Visit>
KOKKOS_FUNCTION void for_each_pixel(const Team& team, const ChannelPixels& at, const Visit& visit) {
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, at.n), [&](int image) {
    const std::int64_t first = image * at.image_stride + at.begin;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, at.pixels),
                         [&](int p) { visit(first + p); });
  });
}

/// The sums of term(offset), a TwoSums, over the channel; every thread of the team gets them.
template <class Term>
KOKKOS_FUNCTION TwoSums sum_channel(const Team& team, const ChannelPixels& at, const Term& term) {
  TwoSums sums;
  if constexpr (runs_on_host) {  // a team is one thread; neighbours fill its vector registers
    constexpr int lanes = 16;
    double first[lanes] = {};
    double second[lanes] = {};
    for (int image = 0; image < at.n; ++image) {
      const std::int64_t begin = image * at.image_stride + at.begin;
      int p = 0;
      for (; p + lanes <= at.pixels; p += lanes) {
        for (int l = 0; l < lanes; ++l) {
          const TwoSums here = term(begin + p + l);
          first[l] += here.first;
          second[l] += here.second;
        }
      }
      for (; p < at.pixels; ++p) sums += term(begin + p);
    }
    for (int l = 0; l < lanes; ++l) sums += {first[l], second[l]};
  } else {
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(team, std::int64_t{at.n} * at.pixels),
        [&](std::int64_t i, TwoSums& sum) {
          sum += term(i / at.pixels * at.image_stride + at.begin + i % at.pixels);
        },
        Kokkos::Sum<TwoSums>(sums));
  }
  return sums;
}

/// One team per channel.
[[nodiscard]] inline TeamPolicy channel_teams(const ExecutionSpace& exec, int channels) {
  return runs_on_host ? TeamPolicy(exec, channels, 1) : TeamPolicy(exec, channels, 8, 32);
}

}  // namespace carousel::detail

template <>
struct Kokkos::reduction_identity<carousel::detail::TwoSums> {
  KOKKOS_FUNCTION static carousel::detail::TwoSums sum() { return {}; }
};
