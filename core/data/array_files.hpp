// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// HDF5 files of a user's that hold the samples of one data set: which arrays of each are inputs,
// targets and masks, and how many samples that makes. It reads none of their numbers.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/data/config.hpp"
#include "core/data/data_array.hpp"

namespace carousel {

/// The arrays of one file. All inputs have the same axes but for channels, and so have targets.
struct ArrayFile {
  std::string path;
  std::vector<DataArray> inputs;
  std::vector<DataArray> targets;
  std::optional<DataArray> mask = {};
  std::int64_t samples = 1;  // along n
  std::int64_t windows = 1;  // of each sample, one behind the other in time
  SampleShape input = {};    // of one frame, channels of all arrays
  SampleShape target = {};   // likewise

  [[nodiscard]] bool has_target_fields() const { return target.pixels() > 1; }
};

/// What a thread needs to read the inputs, or else the targets and the mask.
[[nodiscard]] ArrayRoom room_for(const ArrayFile& file, bool targets);

/// Opens a file and checks that its arrays go together. Error(bad_data) where they do not,
/// Error(usage) that begins with the name of a key where the deck does not fit them.
[[nodiscard]] ArrayFile open_array_file(const std::string& path, const DataConfig& config);

/// The files behind paths in which * and ? stand for any letters: those of each in the order of
/// their names. Error(input_output) where one has none; `key` names them.
[[nodiscard]] std::vector<std::string> expand_paths(const std::string& key,
                                                    const std::vector<std::string>& paths);

}  // namespace carousel
