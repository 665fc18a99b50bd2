// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbers as tensors of a type store them, in host memory, for tests on hosts.

#include <cstring>

#include "core/base/bfloat16.hpp"
#include "core/model/tensor_format.hpp"
#include "tests/layers/device.hpp"

namespace carousel::test {

[[nodiscard]] inline std::vector<std::byte> stored(const Numbers& numbers, DataType type) {
  std::vector<std::byte> bytes(numbers.size() * static_cast<std::size_t>(size_of(type)));
  if (type == DataType::full) {
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
    return bytes;
  }
  auto* to = reinterpret_cast<Bfloat16*>(bytes.data());
  for (const real number : numbers) *to++ = to_bfloat16(static_cast<float>(number));
  return bytes;
}

[[nodiscard]] inline Numbers restored(const std::vector<std::byte>& bytes, DataType type) {
  Numbers numbers(bytes.size() / static_cast<std::size_t>(size_of(type)));
  if (type == DataType::full) {
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }
  const auto* from = reinterpret_cast<const Bfloat16*>(bytes.data());
  for (real& number : numbers) number = static_cast<real>(to_float(*from++));
  return numbers;
}

/// Those that the type has.
[[nodiscard]] inline Numbers rounded_to(const Numbers& numbers, DataType type) {
  return restored(stored(numbers, type), type);
}

}  // namespace carousel::test
