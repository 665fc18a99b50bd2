// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one floating-point type of a build: float, or double in the `double` preset, which the
// oracle tests use. Storage types of mixed precision are not decided here.

namespace carousel {

#ifdef CAROUSEL_REAL_DOUBLE
using real = double;
#else
using real = float;
#endif

}  // namespace carousel
