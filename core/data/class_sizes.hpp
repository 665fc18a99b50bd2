// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many samples of each class there are, in words: who imports or trains sees at once whether
// labels are what they should be.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace carousel {

struct ClassSizes {
  std::vector<std::int64_t> samples;  // [classes]
  std::size_t least = 0;              // the class that has the fewest, the first of several
  std::size_t most = 0;

  [[nodiscard]] std::int64_t empty() const;  // classes without any
};

/// Counts labels from 0 to classes - 1; there is at least one class.
[[nodiscard]] ClassSizes class_sizes(std::size_t classes, std::span<const int> labels);

/// "3 classes, from 4 (emu) to 9 (cat) for training", "3 classes of 5 each for training".
[[nodiscard]] std::string describe_classes(const std::vector<std::string>& names,
                                           std::span<const int> training_labels);

/// What is wrong if classes have no samples for training, naming the first; empty where all is
/// well.
[[nodiscard]] std::string missing_classes(const std::vector<std::string>& names,
                                          std::span<const int> training_labels);

}  // namespace carousel
