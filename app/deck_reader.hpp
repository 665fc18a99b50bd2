// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// From the keys of a deck to typed structs: names, types, ranges, and which keys have an effect. It
// goes by the rows of the schema and knows no key but those.

#include "app/deck.hpp"
#include "app/run_config.hpp"

namespace carousel {

/// Checks every table and key of `deck`, and adds the defaults. Throws Error(usage) naming the
/// place, the key, what is allowed, and the name that was probably meant.
[[nodiscard]] RunConfig read_config(const Deck& deck);

}  // namespace carousel
