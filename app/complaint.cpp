// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/complaint.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "app/deck.hpp"

namespace carousel {

void complain(std::string_view text) {
  tell(fmt::format("carousel: {}\n", printable(text)));
}

void note(std::string_view text) {
  tell(fmt::format("note: {}\n", printable(text)));
}

void tell(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace carousel
