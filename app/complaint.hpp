// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one line that front end and engine say when they fail. Which error it is and who may speak is
// theirs to know.

#include <string_view>

namespace carousel {

/// Prints "carousel: TEXT" on standard error, on one line whatever a user's file made of the text.
void complain(std::string_view text);

}  // namespace carousel
