// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a factor of a product has of its own.

#include <array>
#include <cstdint>

namespace carousel::op {

/// Whether a factor has a number for each number of the product, or one for all pixels of a
/// channel, or one for all channels of a pixel.
enum class Spread : std::uint8_t { number, channel, pixel };

struct Multiply {
  std::array<Spread, 2> spreads = {};  // [input]
};

}  // namespace carousel::op
