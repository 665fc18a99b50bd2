// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What convolutions and transposed convolutions are made of, as products of weights and the windows
// of images (implicit im2col), or tap by tap where a group is one channel. Vendor libraries are not
// used here.

#include <string>

#include "core/engine/layer.hpp"

namespace carousel {

/// Windows move over the channels of `wide`, in groups, and leave the pixels of `small`: a
/// convolution makes small of wide, a transposed one wide of small. Weights are [channels of small,
/// channels of wide / groups, taps].
struct WindowProducts {
  SampleShape wide;
  SampleShape small;
  Window window;
  int groups = 1;

  /// Weights that meet one channel of small.
  [[nodiscard]] int taps() const { return wide.channels / groups * window.taps(); }
};

/// small = wide seen through the windows [+ bias]; the pixels of a channel of small lie behind
/// `before` that others write. With `adds`, to what is there.
void look_through(const ExecutionSpace& exec, const std::string& label, const WindowProducts& of,
                  const ConstTensor& wide, const real* weights, const real* bias, real* small,
                  int before, bool adds);
/// wide = small sent back through the windows [+ bias]: the transposed product.
void send_back(const ExecutionSpace& exec, const std::string& label, const WindowProducts& of,
               const ConstTensor& small, const real* weights, const real* bias, real* wide,
               bool adds);
/// d_weights = what wide and small have in common, summed over images and pixels.
void correlate(const ExecutionSpace& exec, const std::string& label, const WindowProducts& of,
               const ConstTensor& wide, const ConstTensor& small, int before, real* d_weights);
/// sums[c] = sum of channel c over images and pixels.
void sum_channels(const ExecutionSpace& exec, const std::string& label, const ConstTensor& d,
                  real* sums);

}  // namespace carousel
