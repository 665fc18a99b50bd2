// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a loss compares the outputs of a network with: labels, which are numbers of classes, or
// numbers. How data sets keep them is not its business.

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/tensor_format.hpp"

namespace carousel {

enum class TargetKind : std::uint8_t { labels, numbers };

/// The target of one sample.
struct TargetSpec {
  TargetKind kind = TargetKind::labels;
  SampleShape shape = {1};           // of labels one channel, of one pixel or of all
  int classes = 0;                   // that labels tell apart
  int ignored = -1;                  // a label that stands for no class; none is below 0
  bool has_gaps = false;             // some numbers are NaN, which stands for none
  std::vector<double> weights = {};  // [classes] what labels count for in a loss; none: all alike

  TargetSpec() = default;
  /// One label of so many classes.
  TargetSpec(int of) : classes(of) {}  // NOLINT(google-explicit-constructor): the usual one
  /// A label for each pixel.
  [[nodiscard]] static TargetSpec of_pixels(int classes, const SampleShape& image) {
    TargetSpec target(classes);
    target.shape = image.with_channels(1);
    return target;
  }
  [[nodiscard]] static TargetSpec of_numbers(const SampleShape& shape) {
    TargetSpec target;
    target.kind = TargetKind::numbers;
    target.shape = shape;
    return target;
  }

  [[nodiscard]] bool has_labels() const { return kind == TargetKind::labels; }
  /// Whether some labels or numbers count for nothing.
  [[nodiscard]] bool is_partial() const { return has_labels() ? ignored >= 0 : has_gaps; }
  /// Whether a loss adds up what its mean is divided by.
  [[nodiscard]] bool is_weighted() const { return is_partial() || !weights.empty(); }
  [[nodiscard]] std::int64_t pixels() const { return shape.pixels(); }
  /// Classes, or channels of numbers.
  [[nodiscard]] int channels() const { return has_labels() ? classes : shape.channels; }
  /// What a network leaves for it, a channel for each class.
  [[nodiscard]] SampleShape outputs() const { return shape.with_channels(channels()); }
  bool operator==(const TargetSpec&) const = default;
};

/// "10 classes", "3 classes for each of 64x96 pixels", "targets of 2x64x64 numbers", "3 numbers".
[[nodiscard]] std::string to_string(const TargetSpec& target);

}  // namespace carousel
