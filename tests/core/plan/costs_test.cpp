// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// What stages cost, counted by hand for a small network and by sums for a large one.

#include "core/plan/costs.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "core/base/real.hpp"

namespace carousel {
namespace {

constexpr double w = sizeof(real);
constexpr Machine machine = {.flops = 1000, .memory_bandwidth = 100};

TEST(Costs, CountsLinearLayersByHand) {
  const Model model = build_mlp({6, 4, 3}, {6, 1, 1}, 3);
  const Partition partition = {.first = {0, 3, 5}, .load = {0, 0}};
  const std::vector<StageCosts> costs = stage_costs(model, partition, 5, 1);
  ASSERT_EQ(costs.size(), 2U);
  ASSERT_EQ(costs[0].forward.size(), 3U);  // flatten, linear, ReLU
  EXPECT_EQ(costs[0].forward[0].flops, 0);
  EXPECT_EQ(costs[0].forward[0].bytes, 0);
  EXPECT_EQ(costs[0].forward[1].flops, 5 * model.layers[1].forward_flops);
  EXPECT_EQ(costs[0].forward[1].bytes, w * (5 * (6 + 4) + 6 * 4 + 4));
  EXPECT_EQ(costs[0].forward[2].bytes, w * 5 * (4 + 4));
  EXPECT_EQ(costs[0].backward[1].flops, 5 * model.layers[1].backward_flops);
  EXPECT_EQ(costs[0].backward[1].bytes, 2 * costs[0].forward[1].bytes);
  EXPECT_EQ(costs[0].load.bytes, 2 * w * 5 * 6);
  EXPECT_EQ(costs[0].accumulate.bytes, 3 * w * 28);
  EXPECT_EQ(costs[0].measure.bytes, w * 28);
  EXPECT_EQ(costs[0].update.bytes, 5 * w * 28);
  EXPECT_EQ(costs[1].load.bytes, 0);
  EXPECT_EQ(costs[1].update.bytes, 5 * w * 15);
}

TEST(Costs, CountsBothInputsOfAnAdditionAndTheFlopsOfTheModel) {
  const Model model = build_resnet(20, Stem::cifar, {3, 32, 32}, 10);
  const Partition partition = partition_model(model, 4, Balance::flops);
  double flops = 0;
  double expected = 0;
  const std::vector<StageCosts> costs = stage_costs(model, partition, 8, 0);
  for (int j = 0; j < 4; ++j) {
    for (int l = partition.first[j]; l < partition.first[j + 1]; ++l) {
      const LayerSpec& layer = model.layers[l];
      const Work& forward = costs[j].forward[l - partition.first[j]];
      flops += forward.flops;
      expected += 8 * layer.forward_flops;
      if (!layer.is("add")) continue;
      EXPECT_EQ(forward.bytes, w * 8 * 3 * static_cast<double>(layer.output.size()));
    }
  }
  EXPECT_EQ(flops, expected);
}

TEST(Costs, TakesTheLongerOfArithmeticAndTraffic) {
  EXPECT_EQ(roofline_seconds({500, 10}, machine), 0.5);
  EXPECT_EQ(roofline_seconds({500, 200}, machine), 2);
}

TEST(Costs, AddsRooflinesLayerByLayer) {
  std::vector<StageCosts> costs(2);
  costs[0].forward = {{1000, 10}, {10, 100}};
  costs[0].backward = {{3000, 10}};
  costs[0].load.bytes = 50;
  costs[0].accumulate.bytes = 300;
  costs[0].measure.bytes = 100;
  costs[0].update.bytes = 700;
  costs[1].forward = {{4000, 0}};
  const auto seconds = action_seconds(stage_seconds(costs, machine));
  const auto of = [&](ActionKind kind, int stage) {
    return seconds(0, {.kind = kind, .stage = stage});
  };
  EXPECT_EQ(of(ActionKind::forward, 0), 2);
  EXPECT_EQ(of(ActionKind::forward, 1), 4);
  EXPECT_EQ(of(ActionKind::backward, 0), 3);
  EXPECT_EQ(of(ActionKind::load, -1), 0.5);
  EXPECT_EQ(of(ActionKind::accumulate, 0), 3);
  EXPECT_EQ(of(ActionKind::measure, 0), 1);
  EXPECT_EQ(of(ActionKind::update, 0), 7);
  EXPECT_EQ(of(ActionKind::release, 0), 0);
}

TEST(Costs, OfPiecesAreTheirShareOfTheStage) {
  std::vector<StageCosts> costs(1);
  costs[0].accumulate.bytes = 300;
  costs[0].update.bytes = 700;
  const auto seconds = action_seconds(stage_seconds(costs, machine),
                                      {{{.gradients = 100}, {.gradients = 300}, {.gradients = 0}}});
  const auto of = [&](ActionKind kind, int piece) {
    return seconds(0, {.kind = kind, .stage = 0, .piece = piece});
  };
  EXPECT_EQ(of(ActionKind::accumulate, -1), 3);
  EXPECT_EQ(of(ActionKind::accumulate, 0), 0.75);
  EXPECT_EQ(of(ActionKind::update, 1), 5.25);
  EXPECT_EQ(of(ActionKind::update, 2), 0);
}

}  // namespace
}  // namespace carousel
