// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/complaint.hpp"

#include <fmt/core.h>

#include <cstdio>

#include "app/deck.hpp"

namespace carousel {

void complain(std::string_view text) {
  fmt::print(stderr, "carousel: {}\n", printable(text));
}

void note(std::string_view text) {
  fmt::print(stderr, "note: {}\n", printable(text));
}

}  // namespace carousel
