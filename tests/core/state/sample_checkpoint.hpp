// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checkpoints of what a test says, in a run folder.

#include "core/record/run_folder.hpp"
#include "core/state/checkpoint_writer.hpp"
#include "tests/core/record/sample_run.hpp"

namespace carousel::testing {

struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const real> values;
};

/// Writes, in pieces of `most` numbers, what becomes the newest of the folder.
inline void save_checkpoint(const std::filesystem::path& run_folder, const CheckpointPlace& place,
                            std::span<const NamedTensor> tensors, int keep,
                            std::int64_t most = INT64_MAX) {
  CheckpointLayout layout;
  for (const NamedTensor& tensor : tensors) layout.add(tensor.name, tensor.shape);
  const auto path = run_folder / "checkpoints" / checkpoint_file_name(place.step);
  CheckpointWriter writer(path.string(), layout);
  writer.begin();
  for (const NamedTensor& tensor : tensors) {
    for (std::int64_t k = 0; k < std::ssize(tensor.values); k += most) {
      const auto size = std::min(most, std::ssize(tensor.values) - k);
      writer.put(
          tensor.name, k,
          tensor.values.subspan(static_cast<std::size_t>(k), static_cast<std::size_t>(size)));
    }
  }
  writer.sync();
  writer.finish(sample_info(), place);
  make_newest(run_folder, place.step, keep);
}

}  // namespace carousel::testing
