// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a tensor of activations looks like in memory: its shape, the type of its numbers and their
// order.

#include <compare>
#include <cstdint>
#include <string>

#include "core/base/real.hpp"
#include "core/base/words.hpp"

namespace carousel {

/// Shape of one sample, without the batch dimension: [c, h, w]. Features of a linear layer are
/// channels with h = w = 1; tokens are channels = features, h = tokens, w = 1.
struct SampleShape {
  int channels = 0;
  int height = 1;
  int width = 1;

  [[nodiscard]] std::int64_t size() const {
    return static_cast<std::int64_t>(channels) * height * width;
  }
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

/// Numbers lie as [n][c / block][h][w][block], the last block filled up. block = 1 is PyTorch's
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
  return n * blocks * format.block * shape.height * shape.width * size_of(format.type);
}

}  // namespace carousel
