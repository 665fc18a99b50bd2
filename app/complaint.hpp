// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one line that front end and engine print when they fail, and remarks of those that go on.
// They decide what it says, and which rank prints it. Nothing fails because nobody can read it.

#include <string_view>

namespace carousel {

/// Prints "carousel: TEXT" on standard error, on one line whatever a user's file made of the text.
void complain(std::string_view text);
/// The same, "note: TEXT", where nothing fails.
void note(std::string_view text);

/// Prints text as it is on standard error.
void tell(std::string_view text);

}  // namespace carousel
