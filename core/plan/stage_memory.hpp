// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the tensors of one stage lie: fixed offsets in its activation frame, in the scratch memory
// that all stages share, in the boundary gradients and in its flat vector. Nothing is allocated.

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/base/align.hpp"
#include "core/base/real.hpp"
#include "core/model/model.hpp"
#include "core/plan/partition.hpp"
#include "core/plan/pieces.hpp"

namespace carousel {

/// Numbers of the build's precision that carry a double, so that sums of them lose nothing that
/// matters: its leading digits, those behind, and the rest.
inline constexpr int rider_parts = sizeof(real) == sizeof(double) ? 1 : 3;
/// Numbers that ride behind every gradient and parameter vector of a stage, summed over
/// micro-batches just like the gradient: the loss and the sums of all metrics, whether the loss is
/// not finite, and whether somebody wants a pause.
[[nodiscard]] constexpr int rider_size(int sums, int parts = rider_parts) {
  return parts * (1 + sums) + 2;
}
/// Behind activations that cross a cut: how long ago the two were decided.
inline constexpr int ages_size = 2;
/// Bytes that one micro-batch reports, in doubles.
[[nodiscard]] constexpr std::int64_t report_bytes(int sums) {
  return (report_head + sums) * std::int64_t{sizeof(double)};
}

enum class Region : std::uint8_t {
  absent,
  images,    // the micro-batch as it was loaded
  frame,     // of `stage`, kept from forward to backward
  landing,   // what came over the cut before the first stage of the device
  scratch,   // free again when the stage is done
  d_output,  // boundary gradients that arrive at the stage
  d_input,   // boundary gradients that leave it
};

struct Place {
  Region region = Region::absent;
  std::int64_t offset = 0;  // bytes
  int stage = 0;            // whose frame; this stage or one before it
  bool operator==(const Place&) const = default;
};

/// The tensors of one layer, of which few have a second input.
struct LayerPlaces {
  std::array<Place, 2> inputs;
  Place output;
  Place saved;                    // what forward leaves to backward besides, in the frame
  Place d_output;                 // absent for the loss
  std::array<Place, 2> d_inputs;  // absent where nobody learns, or where d_output serves as well
  std::array<bool, 2> adds = {};  // the gradient is added to what other layers left there
  Place dropped;                  // where backward leaves gradients of parameters that are frozen
  Place again;                    // where backward finds the first input if that is made again
  int makes_again = -1;  // layer of the stage that makes it just before; -1: it is there already
};

/// A tensor, or its gradient, that passes the stage by: its layers did not make it, or not alone
/// use it.
struct PassedTensor {
  Place from;
  Place to;
  std::int64_t bytes = 0;
};

/// A tensor that crosses the cut before a stage, as part of one message.
struct CrossingTensor {
  Place made;               // in the frame of a stage before, or the images
  std::int64_t offset = 0;  // in the message
  std::int64_t bytes = 0;
};

/// Parameters one after the other that are alike in what they are.
struct ParameterRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool per_feature = false;
  DataType type = DataType::full;  // as they are stored, and from which byte on
  std::int64_t stored_begin = 0;
  bool operator==(const ParameterRange&) const = default;
};

/// Running statistics one after the other that step by step move alike.
struct StatisticsRange {
  std::int64_t begin = 0;  // numbers, from the first buffer of the stage on
  std::int64_t end = 0;
  double momentum = 0;
  bool operator==(const StatisticsRange&) const = default;
};

/// Memory of one stage for one micro-batch. Layer k of the stage is layer `first + k` of the model.
struct StageMemory {
  int first = 0;
  int layers = 0;
  std::vector<LayerPlaces> places;       // [layers]
  std::vector<PassedTensor> passed;      // gradients, from d_output to d_input
  std::vector<CrossingTensor> arriving;  // first those that the stage before has made
  // The flat vector: parameters, buffers (behind gradients: batch statistics), rider. In numbers.
  std::vector<std::int64_t> parameter_offset;  // [layers]
  std::vector<std::int64_t> buffer_offset;     // [layers]
  std::vector<ParameterRange> parameter_ranges;
  std::vector<ParameterRange> tensors;  // each parameter by itself
  std::vector<StatisticsRange> statistics;
  std::int64_t parameter_size = 0;
  std::int64_t buffer_size = 0;
  std::int64_t message_size = 0;   // of all, padded to the alignment
  std::vector<StagePiece> pieces;  // of it, as cut_stages() leaves them; none: it goes whole
  int shards = 1;
  int sums = 0;             // of the model's metrics
  int parts = rider_parts;  // numbers that carry each of them; 1 in plans of old runs
  // The same as kernels read it, parameters in the types that they are stored in. In bytes. Those
  // of frozen layers lie in a block of their own, which stays as it is and is sent nowhere.
  std::vector<std::int64_t> stored_offset;         // [layers]
  std::vector<std::int64_t> stored_buffer_offset;  // [layers]
  std::int64_t stored_rider_offset = 0;
  std::int64_t stored_bytes = 0;     // of all, padded to the alignment
  std::int64_t frozen_bytes = 0;     // of the block of frozen layers
  std::int64_t frozen_full = 0;      // numbers in it, where some are not stored in full
  bool keeps_full = false;           // who updates the stage keeps full numbers besides
  std::int64_t frame_bytes = 0;      // a_j
  std::int64_t leaving_offset = 0;   // in the frame: behind it lies what was made here and crosses
                                     // the cut behind the stage, as its message has it
  std::int64_t scratch_bytes = 0;    // what layers hand on and nobody keeps
  std::int64_t workspace_bytes = 0;  // of the layer that needs most
  std::int64_t input_bytes = 0;      // of all tensors that arrive
  std::int64_t output_bytes = 0;     // of all gradients that cross the cut behind the stage
  bool recomputes = false;           // backward makes again what is not kept in the frame

  /// Numbers of the parameter that has most.
  [[nodiscard]] std::int64_t largest_tensor() const {
    std::int64_t largest = 0;
    for (const ParameterRange& tensor : tensors)
      largest = std::max(largest, tensor.end - tensor.begin);
    return largest;
  }
  /// Piece `index`, or with -1 all of it.
  [[nodiscard]] StagePiece piece(int index) const {
    return index < 0 ? StagePiece{0, message_size, 0, stored_bytes} : pieces[index];
  }
  /// Parameters in a piece, from its begin on; only the last one has others behind them.
  [[nodiscard]] std::int64_t parameters_of(int piece) const {
    const StagePiece& cut = this->piece(piece);
    return std::min(cut.end, parameter_size) - cut.begin;
  }
  /// Parameters in all pieces of a shard, of which those of `piece` have so many before them;
  /// with a shard of -1, all.
  [[nodiscard]] std::int64_t parameters_of_shard(int shard) const;
  [[nodiscard]] std::int64_t parameters_before(int piece) const;
  /// The same in bytes as they are stored, where pieces lie by themselves: each is aligned.
  [[nodiscard]] std::int64_t stored_of_shard(int shard) const;
  [[nodiscard]] std::int64_t stored_before(int piece) const;
  [[nodiscard]] int rider() const { return rider_size(sums, parts); }
  [[nodiscard]] std::int64_t rider_offset() const { return parameter_size + buffer_size; }
  [[nodiscard]] std::int64_t stored_buffers() const {
    return stored_rider_offset - buffer_size * std::int64_t{sizeof(real)};
  }
  /// The same from the begin of a piece on that has them.
  [[nodiscard]] std::int64_t stored_rider_in(int piece) const {
    return stored_rider_offset - this->piece(piece).stored_begin;
  }
  [[nodiscard]] std::int64_t stored_buffers_in(int piece) const {
    return stored_buffers() - this->piece(piece).stored_begin;
  }
};

/// Lifetime analysis of the stages of a partition for micro-batches of `batch` samples. Outputs
/// that backward or a later stage reads lie in the frame, others in scratch; a layer in place
/// shares the memory of its first input. A later stage finds its inputs in the frames of those
/// before it, or where they land if those belong to another device.
/// `parts` is as in StageMemory.
[[nodiscard]] std::vector<StageMemory> plan_stages(const Model& model, const Partition& partition,
                                                   int batch, int parts = rider_parts);

}  // namespace carousel
