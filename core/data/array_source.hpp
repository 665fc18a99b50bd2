// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Samples of arrays: frames are read, transformed, normalised and, of fields, cut and mirrored by
// the threads that read them, inputs and targets alike.

#include <list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/data/array_set.hpp"

namespace carousel {

/// What is done with the numbers of a channel: the transform, then mean and std.
[[nodiscard]] double transformed(Transform transform, double value);
/// What transformed() gave that value for.
[[nodiscard]] double restored(Transform transform, double value);

/// Reads frames of arrays in double, for one thread. Which files are open, it decides.
class FrameReader {
 public:
  /// Of a data set of files whose arrays have the axes of this one's. Targets: of these rather than
  /// of inputs.
  FrameReader(const ArrayFile& like, const ArrayRoom& room, Transform transform, bool targets);

  /// Bytes that it holds.
  [[nodiscard]] static std::int64_t bytes(const ArrayFile& like, const ArrayRoom& room,
                                          bool targets);

  /// A part of the frame of all arrays, [c, d, h, w], transformed; NaN where a mask hides a
  /// target. Error(bad_data) for what is not finite. Valid until the next call.
  [[nodiscard]] std::span<const double> read(const ArrayFile& file, const FramePlace& place,
                                             const FramePart& part);
  /// Labels, [d, h, w], checked.
  [[nodiscard]] std::span<const std::int64_t> read_labels(const ArrayFile& file,
                                                          const FramePlace& place,
                                                          const FramePart& part, int classes,
                                                          int ignore);

 private:
  [[nodiscard]] const Descriptor& descriptor(const std::string& path);
  void hide(const ArrayFile& file, const FramePlace& place, const FramePart& part);
  void check(const ArrayFile& file, const DataArray& array, const FramePlace& place,
             const FramePart& part, std::span<const double> numbers) const;

  Transform transform_;
  bool targets_;
  std::list<std::pair<std::string, Descriptor>> open_;  // the last one used first
  ArrayBuffer buffer_;
  std::vector<double> numbers_;       // [c, d, h, w]
  std::vector<std::int64_t> labels_;  // [d, h, w], of masks, too
};

class ArraySource final : public Source {
 public:
  /// Set and configuration outlive it.
  ArraySource(const ArraySet& set, const DataConfig& config, DataStatistics statistics,
              std::uint64_t seed);

  [[nodiscard]] const SourceSpec& spec() const override { return spec_; }
  [[nodiscard]] std::int64_t samples(Pass pass) const override { return set_.samples(pass); }
  [[nodiscard]] std::unique_ptr<SourceReader> reader(const Reads& reads) const override;

 private:
  const ArraySet& set_;
  const DataConfig& config_;
  DataStatistics statistics_;
  std::uint64_t seed_;
  SourceSpec spec_;
};

/// Puts mean and std of each channel of the training samples in the place of those that the deck's
/// normalise asks for, by so many threads, of which no number depends.
void measure(const ArraySet& set, const DataConfig& config, int threads, DataStatistics& result);

}  // namespace carousel
