// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/source.hpp"

#include <fmt/core.h>

namespace carousel {

std::string to_string(const TensorSpec& tensor) {
  return fmt::format("{} {}", to_string(tensor.type), to_string(tensor.shape));
}

}  // namespace carousel
