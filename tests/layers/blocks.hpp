// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Images in blocks of channels from and to PyTorch's order, one number at a time, for tests.

#include "core/model/tensor_format.hpp"
#include "tests/layers/device.hpp"

namespace carousel::test {

/// Calls visit(in PyTorch's order, in blocks) for the places of every number.
template <class Visit>
void for_each_place(const SampleShape& shape, int block, int n, const Visit& visit) {
  const std::int64_t pixels = shape.pixels();
  for (std::int64_t i = 0; i < n * shape.size(); ++i) {
    const std::int64_t plane = i / pixels;  // of one channel of one image
    const std::int64_t image = plane / shape.channels;
    const std::int64_t c = plane % shape.channels;
    const std::int64_t blocks = shape.channels / block;
    visit(i, ((image * blocks + c / block) * pixels + i % pixels) * block + c % block);
  }
}

[[nodiscard]] inline Numbers in_blocks(const Numbers& numbers, const SampleShape& shape,
                                       const TensorFormat& format, int n) {
  Numbers result(numbers.size());
  for_each_place(shape, format.block, n,
                 [&](std::int64_t i, std::int64_t at) { result[at] = numbers[i]; });
  return result;
}

[[nodiscard]] inline Numbers from_blocks(const Numbers& numbers, const SampleShape& shape,
                                         const TensorFormat& format, int n) {
  Numbers result(numbers.size());
  for_each_place(shape, format.block, n,
                 [&](std::int64_t i, std::int64_t at) { result[i] = numbers[at]; });
  return result;
}

}  // namespace carousel::test
