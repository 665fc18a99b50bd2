// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/source.hpp"

#include <fmt/core.h>

namespace carousel {

const char* to_string(NumberType type) {
  return type == NumberType::uint8 ? "uint8" : "int32";
}

std::optional<NumberType> number_type(std::string_view name) {
  for (const NumberType type : {NumberType::uint8, NumberType::int32})
    if (name == to_string(type)) return type;
  return std::nullopt;
}

std::string to_string(const TensorSpec& tensor) {
  return fmt::format("{} {}", to_string(tensor.type), to_string(tensor.shape));
}

}  // namespace carousel
