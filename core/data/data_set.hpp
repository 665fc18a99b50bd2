// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The data of a deck, of whichever kind, opened and checked: what plans, runs and checkpoints need
// to know of it, and the source that a training reads.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/data/config.hpp"
#include "core/data/source.hpp"
#include "core/model/target.hpp"

namespace carousel {

/// What numbers are scaled by, per channel: mean is taken off, std then divides. Of targets that
/// are labels, nothing.
struct DataStatistics {
  std::vector<double> mean = {};
  std::vector<double> std = {};
  std::vector<double> target_mean = {};
  std::vector<double> target_std = {};
};

/// What a run says of its data when it begins.
struct DataRemarks {
  std::string targets = {};                // "10 classes of 130 to 151 samples"
  std::vector<std::string> warnings = {};  // lines
};

class DataSet {
 public:
  DataSet() = default;
  DataSet(const DataSet&) = delete;
  DataSet& operator=(const DataSet&) = delete;
  virtual ~DataSet() = default;

  /// The file, or the files as the deck names them.
  [[nodiscard]] virtual const std::string& name() const = 0;
  [[nodiscard]] virtual std::int64_t samples(Pass pass) const = 0;
  /// A number that is the same for the same data wherever they lie.
  [[nodiscard]] virtual std::uint64_t fingerprint() const = 0;
  [[nodiscard]] virtual std::vector<std::string> class_names() const = 0;
  [[nodiscard]] virtual DataRemarks remarks() const = 0;
  /// Lines, where only evaluations read it.
  [[nodiscard]] virtual std::vector<std::string> warnings_of_evaluation() const { return {}; }

  // Of the deck as it is, whose statistics may have come from a checkpoint since. Error(usage),
  // beginning with the name of a key, where the data cannot be shown so.
  [[nodiscard]] virtual TargetSpec target(const DataConfig& config) const = 0;
  [[nodiscard]] virtual SourceSpec source_spec(const DataConfig& config) const = 0;
  /// Those of the deck, or of the data, whose training samples may be read for them.
  [[nodiscard]] virtual DataStatistics statistics(const DataConfig& config) const = 0;
  /// How many there are, which costs nothing: means that are all 0.
  [[nodiscard]] virtual DataStatistics count_of_statistics(const DataConfig& config) const = 0;
  /// The source outlives neither the data set nor the configuration.
  [[nodiscard]] virtual std::unique_ptr<Source> source(const DataConfig& config,
                                                       std::uint64_t seed) const = 0;
};

/// Opens the data of a deck. Error(input_output) where a file cannot be opened, Error(bad_data)
/// where one does not hold what it should, Error(usage) where the deck does not fit it.
[[nodiscard]] std::unique_ptr<DataSet> open_data_set(const DataConfig& config);

}  // namespace carousel
