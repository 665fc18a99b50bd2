// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a tensor of activations looks like in memory: its shape, the type of its numbers and their
// order.

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/real.hpp"
#include "core/base/words.hpp"

namespace carousel {

/// Shape of one sample, without the batch dimension: [c, h, w], or of a volume [c, d, h, w], whose
/// slices are images. Features of a linear layer are channels with h = w = 1; tokens are channels =
/// features, h = tokens, w = 1.
struct SampleShape {
  int channels = 0;
  int height = 1;
  int width = 1;
  int depth = 1;  // slices

  /// Of one channel.
  [[nodiscard]] constexpr std::int64_t pixels() const {
    return std::int64_t{depth} * height * width;
  }
  [[nodiscard]] constexpr std::int64_t size() const { return channels * pixels(); }
  /// Axes of space: 1 where an image is one column, 3 where it is a volume.
  [[nodiscard]] int axes() const { return depth > 1 ? 3 : width == 1 && height > 1 ? 1 : 2; }
  /// As PyTorch has it, [c, h, w] or [c, d, h, w].
  [[nodiscard]] std::vector<int> extents() const {
    if (depth == 1) return {channels, height, width};
    return {channels, depth, height, width};
  }
  /// The same pixels of other channels.
  [[nodiscard]] SampleShape with_channels(int count) const { return {count, height, width, depth}; }
  auto operator<=>(const SampleShape&) const = default;
};
[[nodiscard]] std::string to_string(const SampleShape& shape);

enum class DataType : std::uint8_t { full, bfloat16 };  // full: `real` of the build
constexpr auto words_of(DataType) {
  return all_words<DataType>("fp32", "bf16");
}
[[nodiscard]] constexpr std::int64_t size_of(DataType type) {
  return type == DataType::full ? std::int64_t{sizeof(real)} : 2;
}

/// Numbers lie as [n][c / block][d][h][w][block], the last block filled up. block = 1 is PyTorch's
/// contiguous NCHW; block = c is NHWC, and [n, tokens, features] for tokens.
struct TensorFormat {
  DataType type = DataType::full;
  int block = 1;

  bool operator==(const TensorFormat&) const = default;
};
[[nodiscard]] std::string to_string(const TensorFormat& format);

/// Bytes of n samples.
[[nodiscard]] constexpr std::int64_t tensor_bytes(const SampleShape& shape,
                                                  const TensorFormat& format, int n) {
  const std::int64_t blocks = (shape.channels + format.block - 1) / format.block;
  return n * blocks * format.block * shape.pixels() * size_of(format.type);
}

}  // namespace carousel
