// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/deck/kinds.hpp"

#include <fmt/ranges.h>

namespace carousel {

void join_kind(RowText& joined, const DeckValue& standard, const RowText& own,
               const DeckValue& own_standard, const char* kind) {
  std::vector<std::string>& kinds = joined.traits.only_with.front().values;
  CAROUSEL_CHECK(joined.type == own.type && joined.allowed == own.allowed,
                 "{} of {} takes other values than that of {}", own.name, kind, kinds.front());
  if (joined.doc != own.doc) joined.doc += fmt::format(" {}: {}", kind, own.doc);
  if (!joined.defaults.empty() || standard != own_standard) {
    if (joined.defaults.empty())
      joined.defaults = fmt::format("{} ({})", to_toml(standard), fmt::join(kinds, ", "));
    joined.defaults += fmt::format(", {} ({})", to_toml(own_standard), kind);
  }
  kinds.emplace_back(kind);
}

}  // namespace carousel
