// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which windows a convolution of square windows, or of cubes, has, for its outputs and for the
// gradients of its inputs.

#include <vector>

#include "layers/blocked/windows.hpp"

namespace carousel::blocked {

/// Of outputs of that shape. `channels` are those of a pixel where images of files are read, whose
/// row of a window is one tap; 0: blocks are read.
[[nodiscard]] Windows output_windows(const Window& window, const SampleShape& out,
                                     int channels = 0);

/// Of inputs of that shape, a grid for each pixel of a square, or a cube, of strides. One whose
/// pixels no output meets has no taps.
[[nodiscard]] std::vector<Windows> input_grids(const Window& window, const SampleShape& in);

/// The same with each plane as one long row, where one pixel meets one pixel.
[[nodiscard]] Windows flattened(Windows windows);

}  // namespace carousel::blocked
