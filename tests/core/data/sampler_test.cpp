// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The order of samples: permutations that depend on seed and epoch only, steps that tile epochs.

#include "core/data/sampler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tests/core/support.hpp"

namespace carousel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int> copy(std::span<const int> order) {
  return {order.begin(), order.end()};
}

TEST(Sampler, OrderIsWhatTheFormulaInTheHeaderGives) {
  Sampler sampler(1, 10);
  // From the numpy of core/base/random.hpp.
  EXPECT_THAT(copy(sampler.permutation(0)), ElementsAre(6, 3, 8, 9, 0, 2, 5, 1, 7, 4));
  EXPECT_THAT(copy(sampler.permutation(1)), ElementsAre(1, 7, 9, 5, 8, 3, 0, 4, 6, 2));
}

TEST(Sampler, EveryEpochHoldsEverySampleOnceInAnotherOrder) {
  for (const std::int64_t samples : {1, 2, 3, 100, 1437}) {
    Sampler sampler(3, samples);
    std::set<std::vector<int>> orders;
    for (int epoch = 0; epoch < 5; ++epoch) {
      std::vector<int> order = copy(sampler.permutation(epoch));
      orders.insert(order);
      std::sort(order.begin(), order.end());
      for (int k = 0; k < samples; ++k) ASSERT_EQ(order[static_cast<std::size_t>(k)], k);
    }
    if (samples >= 100) {
      EXPECT_EQ(orders.size(), 5U);
    }
  }
}

TEST(Sampler, OrderDependsOnSeedAndEpochAlone) {
  Sampler straight(5, 200), jumping(5, 200), other(6, 200);
  const std::vector<int> third = copy(straight.permutation(3));
  (void)jumping.permutation(7);
  (void)jumping.permutation(2);
  EXPECT_EQ(copy(jumping.permutation(3)), third);
  EXPECT_NE(copy(other.permutation(3)), third);
}

TEST(Sampler, NeighbouringEpochsAreKeptTogether) {
  Sampler sampler(5, 200);
  const std::span<const int> first = sampler.permutation(4);
  const std::vector<int> kept = copy(first);
  (void)sampler.permutation(5);
  EXPECT_EQ(copy(first), kept);
}

TEST(Sampler, EveryPlaceIsAboutEquallyLikely) {
  constexpr int samples = 8, epochs = 4000;
  Sampler sampler(11, samples);
  int count[samples][samples] = {};
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const std::span<const int> order = sampler.permutation(epoch);
    for (std::size_t k = 0; k < samples; ++k) ++count[k][order[k]];
  }
  for (const auto& row : count)
    for (const int cell : row) EXPECT_NEAR(cell, 1.0 * epochs / samples, 5 * 21);
}

TEST(TrainingOrder, StepsTileAnEpochAndDropTheIncompleteOne) {
  for (const int n : {1, 3, 4}) {
    for (const int b : {1, 5, 16}) {
      const TrainingOrder order{.samples = 250, .micro_batches = n, .micro_batch_size = b};
      EXPECT_EQ(order.steps_per_epoch(), 250 / (n * b));
      std::int64_t epoch = 0, next = 0;
      for (std::int64_t t = 0; t < 3 * order.steps_per_epoch(); ++t) {
        if (t > 0 && t % order.steps_per_epoch() == 0) ++epoch, next = 0;
        for (int i = 0; i < n; ++i) {
          EXPECT_EQ(order.locate(t, i).epoch, epoch);
          EXPECT_EQ(order.locate(t, i).first, next);
          next += b;
          EXPECT_LE(next, 250);
        }
      }
    }
  }
}

TEST(TrainingOrder, AStepLargerThanTheSetIsRefused) {
  const TrainingOrder order{.samples = 63, .micro_batches = 4, .micro_batch_size = 16};
  EXPECT_THAT(testing::failure(ExitCode::usage, [&] { (void)order.steps_per_epoch(); }),
              HasSubstr("makes steps of 64 samples, but the data set has 63"));
}

}  // namespace
}  // namespace carousel
