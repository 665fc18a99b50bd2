// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// `[data]`: where samples come from and what the model sees of them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/words.hpp"
#include "core/data/augment.hpp"

namespace carousel {

/// images: a data set in Carousel's format. arrays: numbers in HDF5 files of the user's. tokens: a
/// text in Carousel's format.
enum class DataKind : std::uint8_t { images, arrays, tokens };
constexpr auto words_of(DataKind) {
  return all_words<DataKind>("images", "arrays", "tokens");
}

/// What numbers go through before they are normalised.
enum class Transform : std::uint8_t { none, log, log1p, asinh };
constexpr auto words_of(Transform) {
  return all_words<Transform>("none", "log", "log1p", "asinh");
}

/// standard: mean 0 and deviation 1. minmax: from 0 to 1. Each channel by itself.
enum class Normalise : std::uint8_t { none, standard, minmax };
constexpr auto words_of(Normalise) {
  return all_words<Normalise>("none", "standard", "minmax");
}

/// What is whole in one of training, validation and test.
enum class SplitUnit : std::uint8_t { trajectory, file };
constexpr auto words_of(SplitUnit) {
  return all_words<SplitUnit>("trajectory", "file");
}

/// Arrays whose channels lie behind each other, and what is done with their numbers.
struct ArrayConfig {
  std::vector<std::string> from;
  std::string axes;
  Transform transform = Transform::none;
  Normalise normalise = Normalise::none;
  std::vector<double> mean;  // per channel, which is taken off; empty: as normalise says
  std::vector<double> std;   // per channel, which then divides

  /// Whether mean and std follow from the training samples.
  [[nodiscard]] bool needs_statistics() const {
    return normalise != Normalise::none && (mean.empty() || std.empty());
  }
  [[nodiscard]] static std::vector<Row<ArrayConfig>> rows();
};

/// `[data.input]`.
struct InputConfig {
  ArrayConfig arrays;
  int history = 1;  // frames that are one input

  [[nodiscard]] static std::vector<Row<InputConfig>> rows();
};

/// `[data.target]`.
struct TargetConfig {
  ArrayConfig arrays;
  int classes = 0;          // that labels tell apart; 0: targets are numbers
  int ignore = -1;          // a label that counts for nothing; -1: none
  int ahead = -1;           // frames behind the last one of the input; -1: not said
  std::string mask;         // an array that is 0 where targets count for nothing; empty: all count
  bool are_shares = false;  // from 0 to 1, since the loss wants them so; no key

  [[nodiscard]] static std::vector<Row<TargetConfig>> rows();
};

enum class SplitName : std::uint8_t { train, validation, test };
constexpr auto words_of(SplitName) {
  return all_words<SplitName>("train", "validation", "test");
}

struct DataConfig {
  DataKind kind = DataKind::images;
  std::string file;                // of images; can be opened from where the command runs
  std::string tokens;              // of tokens; likewise
  int context = 0;                 // tokens of a sample
  std::vector<std::string> files;  // of arrays, as shells expand them; likewise
  std::vector<std::string> validation_files;  // likewise
  std::vector<std::string> test_files;        // likewise
  double validation_fraction = 0;             // of `files`
  double test_fraction = 0;                   // likewise
  SplitUnit split = SplitUnit::trajectory;
  std::int64_t split_seed = 1;
  int workers = 1;                          // threads of a device
  std::optional<SplitName> evaluated = {};  // no key; none: validation, else test
  bool whole = false;                       // no key: all samples are for evaluations
  bool without_targets = false;             // no key: nothing is compared with anything
  InputConfig input;
  TargetConfig target;
  AugmentConfig augment;

  [[nodiscard]] static std::vector<Row<DataConfig>> rows();
};

}  // namespace carousel
