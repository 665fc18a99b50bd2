// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checkpoints: named tensors and a place in the run, in one HDF5 file that is whole or not there.
// Which tensors a training needs is the engine's knowledge, not this file's.
//
//   /parameters/NAME  /previous/NAME  /buffers/NAME  /optimizer/STATE/NAME  /info
//   attributes of /: the place

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/base/real.hpp"
#include "core/model/model.hpp"
#include "core/record/run_file.hpp"

namespace carousel {

/// A tensor to save; `name` is its path in the file, such as "/parameters/0.weight".
struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const real> values;
};

/// The group of a checkpoint with what an optimizer keeps beside each parameter, such as
/// "momentum".
[[nodiscard]] inline std::string optimizer_group(const std::string& state) {
  return "/optimizer/" + state + "/";
}

/// Where a run stands: `step` updates are done, in the order of data that these numbers define.
struct CheckpointPlace {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  int micro_batches = 1;
  int micro_batch_size = 1;
};

/// How much a checkpoint is going to hold.
struct CheckpointSize {
  std::int64_t tensors = 0;
  std::int64_t bytes = 0;  // of all tensors

  /// Of the file, at most; HDF5 adds something for each tensor.
  [[nodiscard]] std::int64_t file_bytes() const;
};
/// Of a checkpoint with `copies` of all parameters and one of all buffers.
[[nodiscard]] CheckpointSize checkpoint_size(const Model& model, int copies);

/// A checkpoint that is being made, in memory: it takes that of the file and of the library, and
/// while the file goes to disk as much as the file again.
class CheckpointWriter {
 public:
  static constexpr std::int64_t library_bytes = 2 << 20;  // caches of HDF5
  /// What the process takes for it: the file, and beside it a part of a stage thrice (as a piece of
  /// a message, as a whole, as HDF5 sums it) or, in the end, the image that goes to disk.
  [[nodiscard]] static std::int64_t host_bytes(const CheckpointSize& size, std::int64_t part);

  CheckpointWriter(const RunInfo& info, const CheckpointPlace& place, const CheckpointSize& size);

  void add(const NamedTensor& tensor);
  /// Writes one file, which replaces another at once or, on Error(input_output), leaves it.
  void write(const std::string& path) const;
  /// Writes checkpoints/step-NNNNNNNN.h5 below the run folder, lets last.h5 lead to it, and removes
  /// older ones but for the newest `keep` (0: none), this one included. On any failure,
  /// Error(input_output), the former checkpoints stay as they are.
  void save(const std::filesystem::path& run_folder, int keep) const;

 private:
  CheckpointPlace place_;
  hdf5::File file_;
};

/// A checkpoint in memory.
class Checkpoint {
 public:
  /// Reads and verifies a file: Error(input_output) when it cannot be read, Error(bad_data) when it
  /// is damaged or something else.
  explicit Checkpoint(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const RunInfo& info() const { return info_; }
  [[nodiscard]] const CheckpointPlace& place() const { return place_; }
  [[nodiscard]] std::vector<NamedTensor> tensors() const;  // borrowed from this object
  /// The values of one tensor; Error(bad_data) unless it is there and has this shape.
  [[nodiscard]] std::span<const real> values(const std::string& name,
                                             std::span<const std::int64_t> shape) const;

 private:
  struct Stored {
    std::string name;
    std::vector<std::int64_t> shape;
    std::vector<real> values;
  };
  void read_group(const hdf5::File& file, const std::string& group);

  std::string path_;
  RunInfo info_;
  CheckpointPlace place_;
  std::vector<Stored> tensors_;
};

/// The checkpoints of a run folder, newest first. Error(input_output) when it cannot be listed.
[[nodiscard]] std::vector<std::filesystem::path> checkpoints_of(
    const std::filesystem::path& run_folder);

}  // namespace carousel
