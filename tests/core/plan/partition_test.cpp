// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Cuts against the enumeration of all contiguous cuts, on small random models.

#include "core/plan/partition.hpp"
#include "core/model/op.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "core/base/check.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Balance balances[] = {Balance::flops, Balance::activations, Balance::parameters,
                                Balance::layers};

/// A layer of these costs; whole numbers, so that sums are exact in any order.
LayerSpec layer(int flops, int channels, int parameters, bool in_place) {
  LayerSpec spec;
  spec.kind = &op_named("linear");
  spec.name = "x";
  spec.inputs = {{-1, {channels}}};
  spec.output = {channels};
  if (parameters > 0) spec.parameters = {{"x.weight", {parameters}}};
  spec.forward_flops = flops;
  spec.backward_flops = 2.0 * flops;
  spec.in_place = in_place;
  return spec;
}

/// Behind the layer before.
void append(Model& model, LayerSpec layer) {
  layer.inputs.front().layer = static_cast<int>(model.layers.size()) - 1;
  model.layers.push_back(std::move(layer));
}

Model random_model(std::mt19937& random, int pieces) {
  const auto below = [&](unsigned bound) { return static_cast<int>(random() % bound); };
  const unsigned spread = random() % 2 == 0 ? 4 : 40;  // small numbers make ties
  Model model{.name = "random", .input = {1}, .target = 1, .layers = {}};
  while (random() % 3 == 0) append(model, layer(0, 1, 0, true));  // as flatten
  for (int p = 0; p < pieces; ++p) {
    append(model, layer(below(spread), 1 + below(spread), below(spread), false));
    while (random() % 3 == 0)
      append(model, layer(below(spread), 1 + below(spread), below(3), true));
  }
  return model;
}

struct Cost {
  double largest = 0;
  double squares = 0;
  auto operator<=>(const Cost&) const = default;
};

Cost cost_of(const Model& model, const std::vector<int>& first, Balance balance) {
  Cost cost;
  for (std::size_t j = 0; j + 1 < first.size(); ++j) {
    double load = 0;
    for (int l = first[j]; l < first[j + 1]; ++l) load += layer_load(model, l, balance);
    cost.largest = std::max(cost.largest, load);
    cost.squares += load * load;
  }
  return cost;
}

/// Calls `visit` with every cut into `stages` that begins no stage with a layer in place and leaves
/// the first one an output of its own.
void for_all_cuts(const Model& model, int stages, std::vector<int> first,
                  const std::function<void(const std::vector<int>&)>& visit) {
  const int layers = static_cast<int>(model.layers.size());
  if (static_cast<int>(first.size()) == stages) {
    first.push_back(layers);
    return visit(first);
  }
  for (int l = first.back() + 1; l < layers; ++l) {
    const bool is_all_in_place = std::all_of(model.layers.begin(), model.layers.begin() + l,
                                             [](const LayerSpec& spec) { return spec.in_place; });
    if (model.layers[l].in_place || is_all_in_place) continue;
    std::vector<int> longer = first;
    longer.push_back(l);
    for_all_cuts(model, stages, std::move(longer), visit);
  }
}

TEST(Partition, IsTheBestOfAllCuts) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 400; ++trial) {
    const int pieces = 1 + static_cast<int>(random() % 10);
    const Model model = random_model(random, pieces);
    for (Balance balance : balances) {
      for (int stages = 1; stages <= pieces; ++stages) {
        Cost best{1e300, 1e300};
        for_all_cuts(model, stages, {0}, [&](const std::vector<int>& first) {
          best = std::min(best, cost_of(model, first, balance));
        });
        const Partition cut = partition_model(model, stages, balance);
        ASSERT_EQ(cut.stages(), stages);
        ASSERT_TRUE(std::ranges::is_sorted(cut.first, std::less_equal<>()));
        ASSERT_EQ(cut.first.front(), 0);
        ASSERT_EQ(cut.first.back(), static_cast<int>(model.layers.size()));
        const Cost cost = cost_of(model, cut.first, balance);
        ASSERT_EQ(cost.largest, best.largest) << "trial " << trial;
        ASSERT_EQ(cost.squares, best.squares)
            << "trial " << trial << ", " << to_string(balance) << ", S = " << stages;
        for (int j = 0; j < stages; ++j) {
          ASSERT_TRUE(j == 0 || !model.layers[cut.first[j]].in_place);
          double load = 0;
          for (int l = cut.first[j]; l < cut.first[j + 1]; ++l)
            load += layer_load(model, l, balance);
          ASSERT_EQ(cut.load[j], load);
        }
      }
    }
  }
}

TEST(Partition, BreaksTiesAlwaysTheSameWay) {
  // Three equal layers in two stages: 1 + 2 and 2 + 1 are equally good; the first cut is taken.
  Model model{.name = "equal", .input = {1}, .target = 1, .layers = {}};
  for (int l = 0; l < 3; ++l) append(model, layer(5, 7, 9, false));
  for (Balance balance : balances)
    EXPECT_THAT(partition_model(model, 2, balance).first, ElementsAre(0, 1, 3));
  // Loads of zero: any cut is best.
  for (LayerSpec& spec : model.layers) spec = layer(0, 1, 0, false);
  EXPECT_THAT(partition_model(model, 2, Balance::flops).first, ElementsAre(0, 1, 3));
}

TEST(Partition, CutsTheDigitsModelBetweenItsLinearLayers) {
  const Model model = build_mlp({64, 64, 64, 64, 10}, {1, 8, 8}, 10);
  // flatten, (linear, relu) x 3, linear, loss
  for (Balance balance : balances)
    EXPECT_THAT(partition_model(model, 4, balance).first, ElementsAre(0, 3, 5, 7, 9));
}

TEST(Partition, RefusesMoreStagesThanPieces) {
  const Model model = build_mlp({64, 64, 64, 64, 10}, {1, 8, 8}, 10);
  const std::string message =
      testing::failure(ExitCode::usage, [&] { (void)partition_model(model, 5, Balance::flops); });
  EXPECT_THAT(message, HasSubstr("parallel.stages = 5"));
  EXPECT_THAT(message, HasSubstr("at most 4"));
}

}  // namespace
}  // namespace carousel
