// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the flat vector of a stage is cut into pieces that travel, and are updated, by themselves:
// chunks, so that no message has to wait for all of a large stage, each in one shard for every
// device that shares the work.

#include <cstdint>
#include <vector>

#include "core/plan/rule.hpp"

namespace carousel {

struct StageMemory;

/// Numbers begin .. end - 1 of the flat vector of a stage. The same as kernels read them is in
/// bytes stored_begin .. stored_end - 1.
struct StagePiece {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t stored_begin = 0;
  std::int64_t stored_end = 0;

  [[nodiscard]] std::int64_t size() const { return end - begin; }
  bool operator==(const StagePiece&) const = default;
};

/// Pieces of as many whole norm_blocks, or one more, counted from behind: piece 0 ends with the
/// vector and so has what rides there, the batch statistics, and the block that is not full. Piece
/// p is of chunk p / shards and shard p % shards. Where there are more pieces than blocks, the last
/// ones are empty.
[[nodiscard]] std::vector<StagePiece> cut_stage(const StageMemory& stage, int chunks, int shards);

/// Devices among which a stage is cut: those of a slot or, where micro-batches run together, all.
[[nodiscard]] int shards_of(const ParallelConfig& parallel);
/// Workers, and devices, between the ends of a token: where stages are cut, those of a slot
/// keep pace by what they exchange.
[[nodiscard]] int tokens_apart(const ParallelConfig& parallel);
/// Whether stages are cut at all.
[[nodiscard]] bool has_pieces(const ParallelConfig& parallel);
/// Cuts every stage as `parallel` has it: a chunk has at most 1 / parallel.chunks of all
/// parameters, but for rounding up to blocks.
[[nodiscard]] std::vector<StageMemory> cut_stages(const ParallelConfig& parallel,
                                                  std::vector<StageMemory> stages);

}  // namespace carousel
