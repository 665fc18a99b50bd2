// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The order of samples: permutations that depend on seed and epoch only, steps that tile epochs.

#include "core/data/sampler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
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

TEST(TrainingOrder, GoingOnWithTheSameStepsChangesNothing) {
  const TrainingOrder order{.samples = 250, .micro_batches = 4, .micro_batch_size = 16};
  for (std::int64_t begin = 0; begin < 9; ++begin) {
    const TrainingOrder rest = order.going_on(begin, order.locate(begin, 0));
    EXPECT_EQ(rest.ahead, 0);
    for (std::int64_t t = begin; t < 12; ++t) {
      EXPECT_EQ(rest.locate(t, 3).epoch, order.locate(t, 3).epoch);
      EXPECT_EQ(rest.locate(t, 3).first, order.locate(t, 3).first);
    }
  }
}

/// Trains `steps` of each order in turn, each going on where the one before ended, and returns how
/// often every position of every epoch was used.
std::vector<std::vector<int>> uses(const std::vector<std::pair<TrainingOrder, int>>& parts) {
  std::vector<std::vector<int>> count;
  std::int64_t step = 0;
  EpochPosition at;
  for (const auto& [plain, steps] : parts) {
    const TrainingOrder order = plain.going_on(step, at);
    for (const std::int64_t end = step + steps; step < end; ++step) {
      for (int i = 0; i < order.micro_batches; ++i) {
        const EpochPosition place = order.locate(step, i);
        count.resize(static_cast<std::size_t>(place.epoch) + 1,
                     std::vector<int>(static_cast<std::size_t>(order.samples)));
        for (std::int64_t k = 0; k < order.micro_batch_size; ++k)
          ++count[place.epoch].at(static_cast<std::size_t>(place.first + k));
      }
    }
    at = order.locate(step, 0);
  }
  return count;
}

TEST(TrainingOrder, OtherStepsUseTheRestOfTheEpochOnce) {
  const auto order = [](int n, int b) {
    return TrainingOrder{.samples = 250, .micro_batches = n, .micro_batch_size = b};
  };
  for (const int first : {1, 2, 3, 4, 7}) {
    for (const int second : {0, 1, 5, 11}) {
      // Of 64, 30 and 77 samples; sizes change in one epoch or in several.
      const auto all = uses({{order(4, 16), first}, {order(2, 15), second}, {order(7, 11), 9}});
      for (std::size_t e = 0; e + 1 < all.size(); ++e) {
        // All but an incomplete last step.
        const auto used = std::ranges::find(all[e], 0) - all[e].begin();
        EXPECT_GT(used, 250 - 77);
        EXPECT_TRUE(
            std::all_of(all[e].begin(), all[e].begin() + used, [](int k) { return k == 1; }));
        EXPECT_TRUE(std::all_of(all[e].begin() + used, all[e].end(), [](int k) { return k == 0; }));
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
