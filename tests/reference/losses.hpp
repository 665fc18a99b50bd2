// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every loss and every metric by plain loops, in double.

#include <span>
#include <string_view>
#include <vector>

#include "core/model/arguments.hpp"

namespace carousel::reference {

/// Outputs of a sample, [c, pixels], and what they are compared with: a label of each pixel, or
/// numbers, of which NaN stands for none.
struct Scored {
  int channels = 1;
  int pixels = 1;
  std::vector<double> outputs;
  std::vector<int> labels = {};
  std::vector<double> numbers = {};
  int ignored = -1;
  std::vector<double> weights = {};  // of the classes; none: all alike

  [[nodiscard]] bool has_labels() const { return numbers.empty(); }
  [[nodiscard]] double output(int c, int p) const { return outputs[c * pixels + p]; }
  /// A number, or of labels 1 for the class and 0 for others.
  [[nodiscard]] double target(int c, int p) const {
    return has_labels() ? (labels[p] == c ? 1 : 0) : numbers[c * pixels + p];
  }
  [[nodiscard]] bool counts(int c, int p) const;
};

/// Losses added up, and how many they are, or what they count for.
struct LossSum {
  double sum = 0;
  double count = 0;
};

/// The loss that decks call so. Throws Error(internal) for one that it does not know.
[[nodiscard]] LossSum loss(std::string_view name, const Arguments& arguments, const Scored& sample,
                           bool training = true);

/// The value of a metric over samples; likewise.
[[nodiscard]] double metric(std::string_view name, std::span<const Scored> samples);

}  // namespace carousel::reference
