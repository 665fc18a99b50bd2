// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Files of weights as PyTorch's users exchange them: the entries of a state_dict, each an HDF5
// dataset or a tensor of a safetensors file. No optimizer, no place in a run; those are a
// checkpoint's.

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

/// All parameters and buffers of a model, layer by layer.
[[nodiscard]] std::vector<ParameterSpec> tensors_of(const Model& model);

/// Names of all parameters and buffers that a training begins anew, whatever weights it starts
/// with: of the head with `new_head`, and those that no pattern of `only`, with * and ?, matches;
/// none: all match. Error(usage) for a pattern that matches nothing of the model.
[[nodiscard]] std::set<std::string> begun_anew(const Model& model, bool new_head,
                                               const std::vector<std::string>& only);
/// Whether these are all of the last layer with parameters, which alone knows how many classes
/// there are.
[[nodiscard]] bool has_head(const std::set<std::string>& names, const Model& model);

/// What a file of weights holds.
struct Weights {
  std::vector<Weight> tensors;
  std::optional<InputRecord> inputs;  // where Carousel has written it
};

/// Reads all parameters and buffers of a model but those named in `left_out`, whose shapes and
/// presence do not matter. A dataset has the whole name
/// ("layer1.0.bn1.bias") or lies in groups that are parts of it; numbers are rounded to this
/// build's precision; num_batches_tracked, which Carousel does not use, is ignored, and with
/// `is_part` whatever else the model does not know. Throws Error(bad_data) naming a tensor that is
/// missing, of another shape or type, not finite, or unknown to the model.
[[nodiscard]] Weights read_weights(const std::string& path, const Model& model,
                                   const std::set<std::string>& left_out, bool is_part);

/// Whether a file of that name is to be one of safetensors.
[[nodiscard]] bool names_safetensors(const std::string& path);

/// Writes the parameters, or their averages if there are some and the file is not to be without,
/// and buffers of a checkpoint by their names, as HDF5 or safetensors. Where the numbers come from
/// and how inputs were made is said in attributes of / or in the metadata, so that the file has no
/// tensors but those of the state_dict.
void write_weights(const std::string& path, const Checkpoint& checkpoint, bool without_ema);

}  // namespace carousel
