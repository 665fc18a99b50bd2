// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the tensors of one stage lie: fixed offsets in its activation frame, in the scratch memory
// that all stages share, and in its flat parameter vector. Offsets only, nothing is allocated.

#include <cstdint>
#include <vector>

#include "core/model/model.hpp"
#include "core/plan/partition.hpp"

namespace carousel {

/// Every tensor starts at a multiple of this many bytes.
inline constexpr std::int64_t tensor_alignment = 64;

[[nodiscard]] constexpr std::int64_t align_up(std::int64_t bytes) {
  return (bytes + tensor_alignment - 1) / tensor_alignment * tensor_alignment;
}

/// Numbers that ride behind every gradient and parameter vector of a stage: loss, correct,
/// non-finite, samples, summed over micro-batches just like the gradient.
inline constexpr int rider_size = 4;

enum class Region : std::uint8_t {
  absent,
  stage_input,  // what the stage before left in its frame, or the images
  frame,        // kept from forward to backward
  scratch,      // free again when the stage is done
  d_output,     // boundary gradient that arrives at the stage
  d_input,      // boundary gradient that leaves it
};

struct Place {
  Region region = Region::absent;
  std::int64_t offset = 0;  // bytes, in frame or scratch
  bool operator==(const Place&) const = default;
};

/// Memory of one stage for one micro-batch. Layer k of the stage is layer `first + k` of the model.
struct StageMemory {
  int first = 0;
  int layers = 0;
  std::vector<Place> outputs;                  // [layers]
  std::vector<Place> d_inputs;                 // [layers]
  std::vector<std::int64_t> parameter_offset;  // [layers], in numbers
  std::int64_t parameter_size = 0;             // numbers, without rider
  std::int64_t message_size = 0;               // numbers, with rider, padded to the alignment
  std::int64_t frame_bytes = 0;                // a_j
  std::int64_t scratch_bytes = 0;
  std::int64_t output_bytes = 0;  // of the stage's last activation and its gradient
};

/// Lifetime analysis of the stages of a partition for micro-batches of `batch` samples. Outputs
/// that no backward reads live in scratch; a layer in place shares the memory of its input.
[[nodiscard]] std::vector<StageMemory> plan_stages(const Model& model, const Partition& partition,
                                                   int batch);

}  // namespace carousel
