// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds images of zeros alone, as arrays leave them of which a part was never written:
// where an array is one piece, HDF5 does not know. It looks at few of them and refuses nothing.

#include <string>

#include "core/data/dataset.hpp"

namespace carousel {

/// A warning, if of the images that are looked at, evenly spread, more than a twentieth are black
/// throughout; otherwise nothing. Throws as Split::read().
[[nodiscard]] std::string black_images(const Dataset& dataset);
/// The same of test images alone.
[[nodiscard]] std::string black_test_images(const Dataset& dataset);

}  // namespace carousel
