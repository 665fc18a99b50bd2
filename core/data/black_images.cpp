// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/black_images.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace carousel {

namespace {

std::string black_images(const Split& split, const SampleShape& shape, const char* what) {
  constexpr std::int64_t most = 64;
  constexpr std::int64_t expected = 20;  // one of so many
  if (split.encoded()) return "";
  std::vector<std::uint8_t> image(static_cast<std::size_t>(shape.size()));
  const std::int64_t looks = std::min(most, split.samples());
  std::int64_t black = 0;
  for (std::int64_t k = 0; k < looks; ++k) {
    split.read(k * split.samples() / looks, image);
    black += std::ranges::all_of(image, [](std::uint8_t value) { return value == 0; }) ? 1 : 0;
  }
  if (black * expected <= looks) return "";
  return fmt::format("warning: {} of {} {} images looked at are black; were all of them written?",
                     black, looks, what);
}

}  // namespace

std::string black_images(const Dataset& dataset) {
  std::string training = black_images(dataset.train(), dataset.shape(), "training");
  return training.empty() ? black_test_images(dataset) : training;
}

std::string black_test_images(const Dataset& dataset) {
  return black_images(dataset.test(), dataset.shape(), "test");
}

}  // namespace carousel
