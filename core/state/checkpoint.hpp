// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checkpoints: named tensors and a place in the run, in one HDF5 file that is whole or not there.
// Which tensors a training needs is the engine's knowledge, not this file's.
//
//   /parameters/NAME  /previous/NAME  /predicted/NAME  /buffers/NAME  /optimizer/STATE/NAME
//   /ema/NAME  /info  /inputs
//   attributes of /: the place; of a tensor: its digest
//
// The numbers of every tensor are one run of bytes, so that whoever has them writes and reads them
// a piece at a time; no process holds a model twice for it.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/descriptor.hpp"
#include "core/base/real.hpp"
#include "core/optim/optimizer.hpp"
#include "core/record/run_file.hpp"
#include "core/state/input_record.hpp"

namespace carousel {

inline constexpr FileFormat checkpoint_format = {"carousel checkpoint", 2};
/// The group that says how inputs were made.
inline constexpr const char* checkpoint_inputs = "/inputs";

/// A tensor of a checkpoint; `name` is its path in the file, such as "/parameters/0.weight".
struct CheckpointTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;  // of its first byte in the file

  /// How many numbers it has.
  [[nodiscard]] std::int64_t size() const;
};

/// The group of a checkpoint with averages of the parameters.
inline constexpr const char* averages_group = "/ema/";
/// The group of a checkpoint with what an optimizer keeps beside each parameter, such as
/// "momentum".
[[nodiscard]] inline std::string optimizer_group(const std::string& state) {
  return state == average_state ? averages_group : "/optimizer/" + state + "/";
}

/// Where a run stands: `step` updates are done, in the order of data that these numbers define.
struct CheckpointPlace {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::int64_t position = 0;  // samples of that epoch that are used
  int micro_batches = 1;
  int micro_batch_size = 1;
  std::uint64_t data = 0;  // Dataset::fingerprint() of what it learned from; 0: nothing yet
};

/// A checkpoint on disk. What it says of itself is in memory, its numbers are not.
class Checkpoint {
 public:
  /// Of a file, or of the one that a link of checkpoint_link.hpp leads to.
  /// Error(input_output) when the file cannot be read, Error(bad_data) when it is damaged or
  /// something else.
  explicit Checkpoint(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const RunInfo& info() const { return info_; }
  [[nodiscard]] const CheckpointPlace& place() const { return place_; }
  /// How the inputs of its training were made; none in files of earlier versions.
  [[nodiscard]] const std::optional<InputRecord>& inputs() const { return inputs_; }
  [[nodiscard]] const std::vector<CheckpointTensor>& tensors() const { return tensors_; }
  /// Whether there are averages of its parameters.
  [[nodiscard]] bool has_averages() const;
  /// The path of a parameter that a trained network is used with: its average, where there is one
  /// and it is not to be without.
  [[nodiscard]] std::string used_parameter(const std::string& name, bool without_ema) const;
  /// The same for people, as "parameters" or "averages of parameters (ema)".
  [[nodiscard]] const char* used_parameters(bool without_ema) const;
  /// ", averages of parameters (ema)": nothing where there are none.
  [[nodiscard]] std::string told_averages(bool without_ema) const {
    return has_averages() ? std::string(", ") + used_parameters(without_ema) : "";
  }
  /// Reads the numbers of one tensor; Error(bad_data) unless it is there, whole, and has this
  /// shape.
  void read(const std::string& name, std::span<const std::int64_t> shape,
            std::span<real> values) const;
  [[nodiscard]] std::vector<real> values(const std::string& name,
                                         std::span<const std::int64_t> shape) const;
  /// Reads every number once; Error(bad_data) where a digest is wrong.
  void check() const;
  /// Of all numbers, as the file tells.
  [[nodiscard]] std::uint64_t digest() const;

 private:
  /// How the numbers of a tensor are stored.
  struct Stored {
    bool doubles = false;
    std::uint64_t digest = 0;
  };
  void read(const hdf5::File& file);
  void read_group(const hdf5::File& file, const std::string& group);
  /// Reads numbers of type T piece by piece.
  template <class T>
  void read_pieces(std::size_t tensor, const std::function<void(std::span<const T>)>& take) const;

  std::string path_;
  Descriptor file_;
  RunInfo info_;
  CheckpointPlace place_;
  std::optional<InputRecord> inputs_;
  std::vector<CheckpointTensor> tensors_;
  std::vector<Stored> stored_;  // [tensor]
};

/// The checkpoints of a run folder, newest first. Error(input_output) when it cannot be listed.
[[nodiscard]] std::vector<std::filesystem::path> checkpoints_of(
    const std::filesystem::path& run_folder);

}  // namespace carousel
