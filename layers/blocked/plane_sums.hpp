// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sums over the pixels of a plane, for every channel of a block: what batch norms, group norms and
// biases need of images. What is added up is theirs to say.

#include <algorithm>
#include <cstring>
#include <utility>

#include "layers/blocked/lanes.hpp"

namespace carousel::blocked {

/// Sums of a block of channels.
template <int Count>
struct PlaneSums {
  Wide of[Count] = {};
};

namespace detail {

/// A register of doubles, and how many of them a block takes: compilers keep a Wide in memory,
/// where every number that is added would wait for the one before.
using Doubles = double __attribute__((vector_size(vector_bytes)));
inline constexpr int parts = sizeof(double) / sizeof(real);

template <int Part>
[[gnu::always_inline]] inline Doubles part_of(const Lanes& from) {
  constexpr int size = lanes / parts;
  const auto take = [&]<int... J>(std::integer_sequence<int, J...>) __attribute__((always_inline)) {
    return __builtin_convertvector(__builtin_shufflevector(from, from, (Part * size + J)...),
                                   Doubles);
  };
  return take(std::make_integer_sequence<int, size>());
}

/// Calls visit(std::integral_constant<int, part>()).
template <class Visit>
[[gnu::always_inline]] inline void for_each_part(const Visit& visit) {
  const auto call = [&]<int... K>(std::integer_sequence<int, K...>) __attribute__((always_inline)) {
    (visit(std::integral_constant<int, K>()), ...);
  };
  call(std::make_integer_sequence<int, parts>());
}

/// Numbers of a plane whose sums are made as they are before they go to doubles: so few that this
/// loses no more than what made them.
inline constexpr std::int64_t run = 16 * lanes;

/// Sums of terms over the pixels from `begin` to `end`, even and odd ones apart, so that none waits
/// for the one before.
template <int Count, class Terms>
[[gnu::always_inline]] inline void sum_run(std::int64_t begin, std::int64_t end, const Terms& terms,
                                           Lanes (&sums)[Count]) {
  Lanes odd[Count] = {};
  const auto add = [&](std::int64_t p, Lanes(&to)[Count]) __attribute__((always_inline)) {
    Lanes of[Count];
    terms(p, of);
    for (int k = 0; k < Count; ++k) to[k] += of[k];
  };
  std::int64_t p = begin;
  for (; p + lanes < end; p += 2 * lanes) {
    add(p, sums);
    add(p + lanes, odd);
  }
  if (p < end) add(p, sums);
  for (int k = 0; k < Count; ++k) sums[k] += odd[k];
}

}  // namespace detail

/// Adds to `sums` those of `Count` terms over the pixels of a plane of `size` numbers: terms(p, of)
/// sets of[k] to the k-th one for the block that begins at number p.
template <int Count, class Terms>
[[gnu::always_inline]] inline void add_pixels(std::int64_t size, PlaneSums<Count>& sums,
                                              const Terms& terms) {
  detail::Doubles total[Count][detail::parts];
  std::memcpy(total, sums.of, sizeof(total));
  for (std::int64_t begin = 0; begin < size; begin += detail::run) {
    Lanes of_run[Count] = {};
    detail::sum_run(begin, std::min(begin + detail::run, size), terms, of_run);
    detail::for_each_part([&](auto part) __attribute__((always_inline)) {
      for (int k = 0; k < Count; ++k) total[k][part] += detail::part_of<part>(of_run[k]);
    });
  }
  std::memcpy(sums.of, total, sizeof(total));
}

/// Sums of x - pivot and of its squares over a plane of `size` numbers. Each run is taken about its
/// own first pixel, so that a pivot far from most of them costs digits of doubles alone: by the
/// square of (distance / deviation).
template <class Stored>
[[gnu::always_inline]] inline PlaneSums<2> squares_about(const Lanes& pivot, const Stored* plane,
                                                         std::int64_t size) {
  detail::Doubles first[detail::parts] = {};
  detail::Doubles second[detail::parts] = {};
  for (std::int64_t begin = 0; begin < size; begin += detail::run) {
    const std::int64_t end = std::min(begin + detail::run, size);
    const std::int64_t pixels = (end - begin) / lanes;
    const auto count = static_cast<double>(pixels);
    const Lanes center = load(plane + begin);
    Lanes of_run[2] = {};
    detail::sum_run(
        begin, end,
        [&](std::int64_t p, Lanes(&of)[2]) __attribute__((always_inline)) {
          of[0] = load(plane + p) - center;
          of[1] = of[0] * of[0];
        },
        of_run);
    detail::for_each_part([&](auto part) __attribute__((always_inline)) {
      const detail::Doubles away = detail::part_of<part>(center) - detail::part_of<part>(pivot);
      const detail::Doubles sum = detail::part_of<part>(of_run[0]);
      first[part] += sum + count * away;
      second[part] += detail::part_of<part>(of_run[1]) + away * (2 * sum + count * away);
    });
  }
  PlaneSums<2> sums;
  std::memcpy(&sums.of[0], first, sizeof(first));
  std::memcpy(&sums.of[1], second, sizeof(second));
  return sums;
}

}  // namespace carousel::blocked
