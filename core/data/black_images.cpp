// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/black_images.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace carousel {

std::string black_images(const Dataset& dataset) {
  constexpr std::int64_t most = 64;
  constexpr std::int64_t expected = 20;  // one of so many
  const Split& split = dataset.train();
  if (split.encoded()) return "";
  std::vector<std::uint8_t> image(static_cast<std::size_t>(dataset.shape().size()));
  const std::int64_t looks = std::min(most, split.samples());
  std::int64_t black = 0;
  for (std::int64_t k = 0; k < looks; ++k) {
    split.read(k * split.samples() / looks, image);
    black += std::ranges::all_of(image, [](std::uint8_t value) { return value == 0; }) ? 1 : 0;
  }
  if (black * expected <= looks) return "";
  return fmt::format(
      "warning: {} of {} training images looked at are black; were all of them written?", black,
      looks);
}

}  // namespace carousel
