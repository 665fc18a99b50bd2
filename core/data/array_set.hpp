// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Arrays of a user's HDF5 files as the data of a deck: which samples are for training and which for
// evaluations, and what each of them is made of. Numbers stay in the files.

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/data/array_files.hpp"
#include "core/data/data_set.hpp"

namespace carousel {

/// Where one sample begins: the first of its frames.
struct SamplePlace {
  const ArrayFile* file = nullptr;
  FramePlace frame;
};

/// Trajectories, all of whose windows are of one split.
class ArraySplit {
 public:
  void add(const ArrayFile& file, std::int64_t sample);

  [[nodiscard]] std::int64_t samples() const { return ends_.empty() ? 0 : ends_.back(); }
  [[nodiscard]] std::int64_t trajectories() const { return std::ssize(ends_); }
  [[nodiscard]] SamplePlace trajectory(std::int64_t index) const { return first_[index]; }
  [[nodiscard]] SamplePlace place(std::int64_t index) const;

 private:
  std::vector<SamplePlace> first_;  // of each trajectory
  std::vector<std::int64_t> ends_;  // samples up to the end of each
};

class ArraySet final : public DataSet {
 public:
  explicit ArraySet(const DataConfig& config);

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] std::int64_t samples(Pass pass) const override { return split(pass).samples(); }
  [[nodiscard]] std::uint64_t fingerprint() const override;
  [[nodiscard]] std::vector<std::string> class_names() const override;
  [[nodiscard]] DataRemarks remarks() const override;
  [[nodiscard]] TargetSpec target(const DataConfig& config) const override;
  [[nodiscard]] SourceSpec source_spec(const DataConfig& config) const override;
  [[nodiscard]] DataStatistics statistics(const DataConfig& config) const override;
  [[nodiscard]] DataStatistics count_of_statistics(const DataConfig& config) const override;
  [[nodiscard]] std::unique_ptr<Source> source(const DataConfig& config,
                                               std::uint64_t seed) const override;

  /// Of evaluations, the one that was asked for, or validation where there is one, else test.
  [[nodiscard]] const ArraySplit& split(Pass pass) const;
  [[nodiscard]] const ArraySplit& split(SplitName name) const {
    return splits_[static_cast<std::size_t>(name)];
  }
  [[nodiscard]] const ArrayFile& first_file() const { return *files_.front(); }
  /// For the inputs, or the targets, of any file.
  [[nodiscard]] const ArrayRoom& room(bool targets) const {
    return targets ? target_room_ : input_room_;
  }

 private:
  std::vector<const ArrayFile*> open(const std::string& key, const std::vector<std::string>& paths,
                                     const DataConfig& config);
  void divide(const std::vector<const ArrayFile*>& files, const DataConfig& config);

  std::string name_;
  int classes_ = 0;
  int workers_ = 1;
  std::optional<SplitName> evaluated_;
  std::vector<std::unique_ptr<ArrayFile>> files_;
  std::set<std::string> paths_;  // of them
  ArrayRoom input_room_;
  ArrayRoom target_room_;
  std::vector<ArraySplit> splits_ = std::vector<ArraySplit>(3);  // by SplitName
  mutable std::mutex mutex_;                                     // of statistics
  mutable std::optional<DataStatistics> statistics_;             // of the training samples
};

}  // namespace carousel
