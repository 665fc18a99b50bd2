// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a checkpoint is made, by one process or by several that each write what they have: the
// numbers first, to places that all know; what HDF5 says about them last, behind them. Until then
// the file is none, under another name.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/descriptor.hpp"
#include "core/model/model.hpp"
#include "core/state/checkpoint.hpp"

namespace carousel {

/// Where the numbers of a checkpoint lie. That follows from names and shapes alone, so that every
/// process finds the same.
class CheckpointLayout {
 public:
  CheckpointLayout() = default;
  /// Of parameters, those before the last update where there is a `previous`, what was read in
  /// their place where it was `predicted`, the states of an optimizer, and buffers.
  CheckpointLayout(const Model& model, bool previous, bool predicted,
                   std::span<const std::string> states);

  void add(const std::string& name, const std::vector<std::int64_t>& shape);
  [[nodiscard]] const std::vector<CheckpointTensor>& tensors() const { return tensors_; }
  /// Number of a tensor.
  [[nodiscard]] std::size_t index(const std::string& name) const;
  /// Behind all numbers.
  [[nodiscard]] std::int64_t end() const { return end_; }

  /// Bytes of the whole file.
  [[nodiscard]] std::int64_t file_bytes(const RunInfo& info, const CheckpointPlace& place,
                                        const std::optional<InputRecord>& inputs = {}) const;

 private:
  /// A tensor has pages to itself: where two clients of a network file system write to one page,
  /// what one of them wrote may be lost.
  static constexpr std::int64_t page = 4096;

  std::vector<CheckpointTensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::int64_t end_ = page;  // the superblock has the first one
};

/// The part of a process in a checkpoint. All errors are Error(input_output) and leave a former
/// file of that name as it was.
class CheckpointWriter {
 public:
  CheckpointWriter(std::string path, CheckpointLayout layout);
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;
  /// Removes what was begun here and not finished.
  ~CheckpointWriter();

  /// Makes an empty file beside the one of that name; one process does, before any other call.
  void begin();
  /// Writes numbers of a tensor, from `first` on. All processes together write each number once.
  void put(const std::string& name, std::int64_t first, std::span<const real> values);
  /// Returns once all that was put here is on the disk.
  void sync();
  /// [tensor] What was put here adds to their digests; whoever finishes must have the sums.
  [[nodiscard]] std::span<std::uint64_t> digests() { return digests_; }
  /// Completes the file and gives it its name; by who began.
  void finish(const RunInfo& info, const CheckpointPlace& place,
              const std::optional<InputRecord>& inputs = {});

 private:
  std::string path_;
  std::string partial_;
  CheckpointLayout layout_;
  std::vector<std::uint64_t> digests_;
  Descriptor file_;      // open from the first put to sync()
  bool opened_ = false;  // whether it is
  bool begun_ = false;
};

/// Lets checkpoints/last.h5 of a run folder lead to the checkpoint of a step, which is there, and
/// removes older ones but for the newest `keep` (0: none), this one included, and the best.
void make_newest(const std::filesystem::path& run_folder, std::int64_t step, int keep);

/// Lets checkpoints/best.h5 of a run folder lead to the checkpoint of a step, which is there. The
/// best one before is kept until make_newest().
void make_best(const std::filesystem::path& run_folder, std::int64_t step);

/// Removes the checkpoints of a run folder that were made after later steps, and lets last.h5 lead
/// to that of `step`: the run goes on from there, and what they hold is none of its future.
void forget_later(const std::filesystem::path& run_folder, std::int64_t step);

}  // namespace carousel
