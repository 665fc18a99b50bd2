// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbers in equal parts, as far as that goes.

#include <cstdint>

namespace carousel::blocked {

/// So many neighbours.
struct Segment {
  int first;
  int size;
};
/// Parts of at most `most` numbers.
[[nodiscard]] constexpr int segments(int count, int most) {
  return (count + most - 1) / most;
}
/// Part `index` of so many.
[[nodiscard]] constexpr Segment segment(int count, int parts, int index) {
  const auto begin = [&](std::int64_t part) { return static_cast<int>(count * part / parts); };
  return {begin(index), begin(index + 1) - begin(index)};
}

}  // namespace carousel::blocked
