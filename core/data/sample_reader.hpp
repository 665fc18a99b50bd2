// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns samples of a data set, as stored, into images of one shape: decodes, crops and resizes.
// What is left to be done on the device is a few numbers. Each thread has a reader of its own.

#include <cstdint>
#include <span>
#include <vector>

#include "core/data/augment.hpp"
#include "core/data/dataset.hpp"
#include "core/data/resize.hpp"
#include "core/model/tensor_format.hpp"

namespace carousel {

/// How samples come to the model.
struct InputSpec {
  SampleShape read;               // uint8 images as readers make them
  SampleShape shown;              // as the model sees them
  std::int64_t reader_bytes = 0;  // that a reader holds

  bool operator==(const InputSpec&) const = default;
};

/// What the device does with an image that was read: pixel (y, x) of what the model sees is pixel
/// (top + y, left + x), of a mirrored one (top + y, left + width - 1 - x), and zero where there is
/// none.
struct ShownPart {
  int top = 0;
  int left = 0;
  int mirrored = 0;
};

/// Error(usage), beginning with the name of a key, where the data set cannot be shown so.
[[nodiscard]] InputSpec input_spec(const Dataset& dataset, const AugmentConfig& config);

/// Mean or standard deviation per channel: those of the configuration, if it has any.
[[nodiscard]] const std::vector<double>& mean_of(const Dataset& dataset,
                                                 const AugmentConfig& config);
[[nodiscard]] const std::vector<double>& std_of(const Dataset& dataset,
                                                const AugmentConfig& config);

class SampleReader {
 public:
  /// Allocates all it needs but for what decoders take while they decode. Data set and
  /// configuration outlive it.
  SampleReader(const Dataset& dataset, const AugmentConfig& config, std::uint64_t seed);

  /// Reads a sample; `image` is of InputSpec::read. Error(bad_data) where it is damaged.
  [[nodiscard]] ShownPart read(Pass pass, std::int64_t epoch, std::int64_t index,
                               std::span<std::uint8_t> image);

 private:
  /// Returns by what the picture was reduced: not by more than asked for, and a PNG not at all.
  [[nodiscard]] int decode(const Split& split, std::int64_t index, int reduction);

  const Dataset& dataset_;
  const AugmentConfig& config_;
  std::uint64_t seed_;
  bool renders_;  // otherwise the device crops
  std::vector<std::uint8_t> stored_;
  Picture picture_;
  Resizer resizer_;
};

}  // namespace carousel
