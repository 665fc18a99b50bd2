// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a model was shown while it learned, and what its outputs stand for: without it, weights give
// wrong answers that look right. How samples are made by it is core/data's knowledge.
//
//   attributes of a group, /inputs of a checkpoint: mean, std, class_names, channels, height,
//   width, resize; where targets are more than one label, target_numbers (0 or 1),
//   target_channels, target_height, target_width, target_classes; of numbers, target_mean and
//   target_std

#include <optional>
#include <string>
#include <vector>

#include "core/base/hdf5.hpp"
#include "core/model/target.hpp"
#include "core/model/tensor_format.hpp"

namespace carousel {

struct InputRecord {
  std::vector<double> mean = {};              // [c] taken off values, of images in [0, 1]
  std::vector<double> std = {};               // [c] which then divides them
  std::vector<std::string> class_names = {};  // in the order of the model's outputs
  SampleShape shape = {};                     // of an image as the model sees it
  int resize = 0;          // shorter side of a picture before its centre is cut out; 0: as it is
  TargetSpec target = {};  // that the model learned to give
  std::vector<double> target_mean = {};  // [c] of targets that are numbers, likewise
  std::vector<double> target_std = {};   // [c]

  bool operator==(const InputRecord&) const = default;
};

/// A respect in which two differ, with the words for both: "mean", "[0.5]", "[0.1307]".
struct InputDifference {
  std::string what;
  std::string first;
  std::string second;
  bool is_statistic = false;  // a mean or std
};

/// "[0.5, 0.25]", with as many digits as tell the numbers from others.
[[nodiscard]] std::string to_string(const std::vector<double>& statistics);

/// Whether statistics are the same, but for rounding to single precision.
[[nodiscard]] bool same_statistics(const std::vector<double>& a, const std::vector<double>& b);

/// The first respect in which names of classes differ, or all inputs do; none where none does.
[[nodiscard]] std::optional<InputDifference> class_difference(const InputRecord& first,
                                                              const InputRecord& second);
[[nodiscard]] std::optional<InputDifference> difference(const InputRecord& first,
                                                        const InputRecord& second);

/// Writes a record as attributes of a group, and reads it; none where the group has none, as in
/// files of earlier versions.
void write_inputs(hdf5::File& file, const InputRecord& inputs, const std::string& group);
[[nodiscard]] std::optional<InputRecord> read_inputs(const hdf5::File& file,
                                                     const std::string& group);

/// The same as a text, for files without attributes. Error(bad_data), beginning with `path`, for a
/// text that is none.
[[nodiscard]] std::string inputs_to_json(const InputRecord& inputs);
[[nodiscard]] InputRecord inputs_from_json(const std::string& path, const std::string& text);

}  // namespace carousel
