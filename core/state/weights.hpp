// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Files of weights as PyTorch's users exchange them: one HDF5 dataset per entry of a state_dict. No
// optimizer, no place in a run; those are a checkpoint's.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/real.hpp"
#include "core/model/model.hpp"
#include "core/state/checkpoint.hpp"

namespace carousel {

/// A parameter or a buffer with its values.
struct Weight {
  ParameterSpec spec;
  std::vector<real> values;
};

/// Names of the last layer with parameters, which alone knows how many classes there are.
[[nodiscard]] std::set<std::string> head_of(const Model& model);

/// What a file of weights holds.
struct Weights {
  std::vector<Weight> tensors;
  std::optional<InputRecord> inputs;  // where Carousel has written it
};

/// Reads all parameters and buffers of a model but those named in `left_out`, whose shapes and
/// presence do not matter. A dataset has the whole name
/// ("layer1.0.bn1.bias") or lies in groups that are parts of it; float32 and float64 are rounded to
/// this build's precision; num_batches_tracked, which Carousel does not use, is ignored.
/// Throws Error(bad_data) naming a tensor that is missing, of another shape or type, not finite, or
/// unknown to the model.
[[nodiscard]] Weights read_weights(const std::string& path, const Model& model,
                                   const std::set<std::string>& left_out = {});

/// Writes the parameters and buffers of a checkpoint by their names. Where the numbers come from
/// and how inputs were made is said in attributes of /, so that the file has no datasets but those
/// of the state_dict.
void write_weights(const std::string& path, const Checkpoint& checkpoint);

}  // namespace carousel
