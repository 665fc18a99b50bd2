// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The categories that every byte of device memory belongs to; the plan predicts them, the engine
// measures them and the run file shows both.

#include <array>
#include <cstdint>

namespace carousel {

enum class Category : std::uint8_t {
  parameters,
  previous_parameters,
  gradients,
  optimizer,
  activations,
  boundary,
  scratch,
  workspace,
  communication,
  data,
};
inline constexpr int category_count = 10;

using CategoryBytes = std::array<std::int64_t, category_count>;

/// Bytes of communication where no message may be empty, as with NCCL: one that tokens send and one
/// that they are received in.
inline constexpr int token_bytes = 2;

constexpr const char* to_string(Category category) {
  constexpr std::array<const char*, category_count> names = {
      "parameters", "previous_parameters", "gradients",     "optimizer", "activations", "boundary",
      "scratch",    "workspace",           "communication", "data"};
  return names[static_cast<std::size_t>(category)];
}

}  // namespace carousel
