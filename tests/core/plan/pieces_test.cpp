// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Pieces of stages: none is left out, edges are those of the blocks that norms are added in, and
// what rides is in the first one.

#include "core/plan/pieces.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

#include "core/model/kernels.hpp"
#include "core/model/model.hpp"
#include "core/optim/norm_blocks.hpp"
#include "core/plan/memory_plan.hpp"
#include "tests/core/plan/schedules.hpp"

namespace carousel {
namespace {

std::vector<StageMemory> perceptron(const std::vector<int>& widths, DataType type) {
  KernelChoice kernels;
  kernels.type = type;
  const Model model = choose_kernels(build_mlp(widths, {1, 8, 8}, widths.back()), kernels);
  return plan_stages(model, {{0, static_cast<int>(model.layers.size())}, {}}, 2);
}

void expect_whole(const StageMemory& stage, const std::vector<StagePiece>& pieces) {
  EXPECT_EQ(pieces.front().end, stage.message_size);
  EXPECT_EQ(pieces.front().stored_end, stage.stored_bytes);
  EXPECT_EQ(pieces.back().begin, 0);
  EXPECT_EQ(pieces.back().stored_begin, 0);
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    EXPECT_LE(pieces[p].begin, pieces[p].end);
    if (p > 0) {
      EXPECT_EQ(pieces[p].end, pieces[p - 1].begin);
      EXPECT_EQ(pieces[p].stored_end, pieces[p - 1].stored_begin);
    }
    const bool edge = pieces[p].begin % norm_block == 0;
    EXPECT_TRUE(edge || pieces[p].begin == stage.parameter_size) << pieces[p].begin;
  }
}

TEST(Pieces, AreTheStageAndNoneIsMuchLarger) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    const std::vector<int> widths = {64, 1 + static_cast<int>(random() % 900), 10};
    const DataType type = trial % 2 == 0 ? DataType::full : DataType::bfloat16;
    const StageMemory stage = perceptron(widths, type).front();
    const int chunks = 1 + static_cast<int>(random() % 5);
    const int shards = 1 + static_cast<int>(random() % 8);
    const std::vector<StagePiece> pieces = cut_stage(stage, chunks, shards);
    ASSERT_EQ(std::ssize(pieces), chunks * shards);
    expect_whole(stage, pieces);
    EXPECT_GT(pieces.front().size(), 0);
    std::int64_t least = stage.parameter_size;
    std::int64_t most = 0;
    for (const StagePiece& piece : pieces) {
      const std::int64_t end = std::min(piece.end, stage.parameter_size);
      const std::int64_t blocks = norm_blocks(end - piece.begin);
      least = std::min(least, blocks);
      most = std::max(most, blocks);
    }
    EXPECT_LE(most, least + 1);
  }
}

TEST(Pieces, HaveTheirBytesAsKernelsReadThem) {
  const StageMemory stage = perceptron({64, 512, 10}, DataType::bfloat16).front();
  ASSERT_TRUE(stage.keeps_full);
  const std::vector<StagePiece> pieces = cut_stage(stage, 1, 3);
  // Weights of two bytes a number, and a block is nothing else.
  const StagePiece& middle = pieces[1];
  EXPECT_EQ(middle.stored_end - middle.stored_begin, middle.size() * 2);
}

// And, where they alone stay, of each version of the parameters.
TEST(Pieces, OfAllShardsAreOneCopyOfTheOptimizer) {
  for (const auto& [placement, replicas] : {std::pair{Placement::replicated, 1},
                                            {Placement::replicated, 2},
                                            {Placement::replicated, 3},
                                            {Placement::replicated, 5},
                                            {Placement::sharded, 1},
                                            {Placement::sharded, 3}}) {
    ParallelConfig config = testing::parallel(RuleKind::cdp_v2, placement, 2 * replicas, 2);
    config.shards = true;
    for (const int chunks : {1, 4}) {
      config.chunks = chunks;
      const Model model = build_mlp({64, 300, 200, 10}, {1, 8, 8}, 10);
      const std::vector<StageMemory> stages =
          cut_stages(config, plan_stages(model, partition_model(model, 2, Balance::flops), 2));
      const Schedule schedule(schedule_spec(config, stages));
      const MemorySpec spec{
          .input = {1, 8, 8}, .micro_batch_size = 2, .optimizer = {.kind = Sgd{.momentum = 0.9}}};
      const MemoryPlan plan = plan_memory(spec, stages, schedule);
      std::int64_t all = 0;
      std::int64_t previous = 0;
      for (const DeviceMemoryPlan& device : plan.devices) {
        all += device.bytes[static_cast<std::size_t>(Category::optimizer)];
        previous += device.bytes[static_cast<std::size_t>(Category::previous_parameters)];
      }
      std::int64_t one = 0;
      for (const StageMemory& stage : stages)
        one += stage.parameter_size * static_cast<std::int64_t>(sizeof(real));
      EXPECT_GE(all, one);
      EXPECT_LT(all, one + 64 * 2 * replicas) << "but for the alignment of each";
      if (placement != Placement::sharded) continue;
      std::int64_t stored = 0;
      for (const StageMemory& stage : stages) stored += stage.stored_bytes;
      EXPECT_GE(previous, stored);
      EXPECT_LT(previous, stored + 64 * 2 * replicas * 8) << "but for that of each piece";
    }
  }
}

TEST(Pieces, AreChunksOfAtMostAPartOfTheModel) {
  const std::vector<int> widths = {64, 1000, 300, 10};
  const Model model = build_mlp(widths, {1, 8, 8}, 10);
  ParallelConfig config = testing::parallel(RuleKind::cdp_v1, Placement::replicated, 3, 3);
  config.shards = true;
  config.chunks = 16;
  const std::vector<StageMemory> stages =
      cut_stages(config, plan_stages(model, partition_model(model, 3, Balance::layers), 2));
  std::int64_t all = 0;
  for (const StageMemory& stage : stages) all += stage.parameter_size;
  for (const StageMemory& stage : stages) {
    for (const StagePiece& piece : stage.pieces) EXPECT_LE(piece.size(), all / 16 + 2 * norm_block);
  }
  EXPECT_GT(stages[1].pieces.size(), stages[2].pieces.size());
}

TEST(Pieces, AreNoMoreThanThereAreBlocks) {
  const Model model = build_mlp({64, 300, 200, 10}, {1, 8, 8}, 10);
  ParallelConfig config = testing::parallel(RuleKind::cdp_v1, Placement::replicated, 6, 2);
  config.shards = true;
  config.chunks = 1'000'000;
  const std::vector<StageMemory> stages =
      cut_stages(config, plan_stages(model, partition_model(model, 2, Balance::flops), 2));
  for (const StageMemory& stage : stages) {
    EXPECT_LT(std::ssize(stage.pieces), norm_blocks(stage.parameter_size) + 3);
    for (const StagePiece& piece : stage.pieces) EXPECT_LE(piece.size(), norm_block);
  }
}

TEST(Pieces, HaveBuffersForTheChunksOfTheirStagesAlone) {
  // The first stage is one of eight chunks, the second all the others.
  const Model model = build_mlp({64, 512, 512, 10}, {1, 8, 8}, 10);
  std::vector<double> loads(model.layers.size(), 0);
  loads.front() = loads.back() = 1;
  const Partition partition = partition_model(model, 2, loads);
  ParallelConfig config = testing::parallel(RuleKind::cdp_v1, Placement::replicated, 4, 2);
  config.shards = true;
  const auto gradients = [&](int chunks) {
    config.chunks = chunks;
    const std::vector<StageMemory> stages = cut_stages(config, plan_stages(model, partition, 2));
    const Schedule schedule(schedule_spec(config, stages));
    const MemorySpec spec{.input = {1, 8, 8}, .micro_batch_size = 2};
    std::int64_t all = 0;
    for (const DeviceMemoryPlan& device : plan_memory(spec, stages, schedule).devices)
      all += device.bytes[static_cast<std::size_t>(Category::gradients)];
    return all;
  };
  // A block more or less for each of them.
  EXPECT_LT(static_cast<double>(gradients(8)), 1.2 * static_cast<double>(gradients(1)));
}

}  // namespace
}  // namespace carousel
