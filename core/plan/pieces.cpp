// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/pieces.hpp"

#include <algorithm>

#include "core/base/real.hpp"
#include "core/optim/norm_blocks.hpp"
#include "core/plan/stage_memory.hpp"

namespace carousel {
namespace {

/// Where number `index` of the parameters lies as kernels read it; behind all of them, what
/// follows.
std::int64_t stored_at(const StageMemory& stage, std::int64_t index) {
  for (const ParameterRange& range : stage.parameter_ranges) {
    if (index < range.end) return range.stored_begin + (index - range.begin) * size_of(range.type);
  }
  return stage.stored_buffers();
}

std::int64_t ceiling(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

std::vector<StagePiece> cut_stage(const StageMemory& stage, int chunks, int shards) {
  const std::int64_t count = std::int64_t{chunks} * shards;
  const std::int64_t blocks = norm_blocks(stage.parameter_size);
  std::vector<StagePiece> pieces;
  std::int64_t left = blocks;
  std::int64_t end = stage.message_size;
  std::int64_t stored_end = stage.stored_bytes;
  for (std::int64_t p = 0; p < count; ++p) {
    left -= blocks / count + (p < blocks % count ? 1 : 0);
    const std::int64_t begin = std::min(left * norm_block, stage.parameter_size);
    const std::int64_t stored_begin = begin < end ? stored_at(stage, begin) : stored_end;
    pieces.push_back({begin, end, stored_begin, stored_end});
    end = begin;
    stored_end = stored_begin;
  }
  return pieces;
}

std::int64_t StageMemory::parameters_before(int piece) const {
  std::int64_t sum = 0;
  for (int p = piece - shards; p >= 0; p -= shards) sum += parameters_of(p);
  return sum;
}

std::int64_t StageMemory::parameters_of_shard(int shard) const {
  if (shard < 0) return parameter_size;
  std::int64_t sum = 0;
  for (int p = shard; p < std::ssize(pieces); p += shards) sum += parameters_of(p);
  return sum;
}

std::int64_t StageMemory::stored_before(int piece) const {
  std::int64_t sum = 0;
  for (int p = piece - shards; p >= 0; p -= shards)
    sum += align_up(pieces[p].stored_end - pieces[p].stored_begin);
  return sum;
}

std::int64_t StageMemory::stored_of_shard(int shard) const {
  return stored_before(shard + static_cast<int>(std::ssize(pieces)));
}

int shards_of(const ParallelConfig& parallel) {
  if (!parallel.shards) return 1;
  const bool together = parallel.rule == RuleKind::dp || parallel.sums == Sums::late;
  return together ? parallel.workers() : parallel.workers() / parallel.stages;
}

int tokens_apart(const ParallelConfig& parallel) {
  return parallel.rule == RuleKind::dp ? 1 : shards_of(parallel);
}

bool has_pieces(const ParallelConfig& parallel) {
  return parallel.shards;
}

std::vector<StageMemory> cut_stages(const ParallelConfig& parallel,
                                    std::vector<StageMemory> stages) {
  for (StageMemory& stage : stages) {
    stage.pieces.clear();
    stage.shards = 1;
  }
  if (!has_pieces(parallel)) return stages;
  std::int64_t all = 0;
  for (const StageMemory& stage : stages) all += stage.parameter_size;
  const std::int64_t most = std::max<std::int64_t>(1, ceiling(all, parallel.chunks));
  for (StageMemory& stage : stages) {
    stage.shards = shards_of(parallel);
    const std::int64_t in_blocks = ceiling(norm_blocks(stage.parameter_size), stage.shards);
    const std::int64_t chunks = std::min(ceiling(stage.parameter_size, most), in_blocks);
    stage.pieces =
        cut_stage(stage, static_cast<int>(std::max<std::int64_t>(1, chunks)), stage.shards);
  }
  return stages;
}

}  // namespace carousel
