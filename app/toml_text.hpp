// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Looks over TOML text before the TOML library does, and refuses what that library does not
// survive. It is no parser: it knows strings, comments and brackets just well enough for that.

#include <cstddef>
#include <string>
#include <string_view>

namespace carousel {

inline constexpr std::size_t max_deck_bytes = 64 * 1024;

/// Throws Error(usage) naming `path`, line and column for text that is too long, nests too deeply,
/// or holds control characters, or bytes beyond ASCII outside strings and comments.
void check_toml_text(std::string_view text, const std::string& path);

/// Whether text is UTF-8, as all text of a deck must be.
[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace carousel
