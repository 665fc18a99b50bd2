// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/learning_rate.hpp"

#include <gtest/gtest.h>

#include <set>

#include "core/base/check.hpp"
#include "core/deck/kinds.hpp"
#include "tests/reference/fixtures.hpp"

namespace carousel {
namespace {

RateSchedule kind_of(const nlohmann::json& json) {
  const auto value = [&](const char* name, auto standard) { return json.value(name, standard); };
  const std::string kind = json.at("kind");
  if (kind == "step")
    return StepRate{.epochs = value("step_epochs", 30.0), .gamma = value("gamma", 0.1)};
  if (kind == "multistep")
    return MultistepRate{.milestones = json.at("milestones"), .gamma = value("gamma", 0.1)};
  if (kind == "cosine") return CosineRate{.final_factor = value("final_factor", 0.0)};
  if (kind == "cosine_restarts")
    return CosineRestartsRate{.period_epochs = value("period_epochs", 10.0),
                              .period_steps = value("period_steps", std::int64_t{0}),
                              .period_factor = value("period_factor", std::int64_t{1}),
                              .final_factor = value("final_factor", 0.0)};
  if (kind == "one_cycle")
    return OneCycleRate{.peak_fraction = value("peak_fraction", 0.3),
                        .initial_divisor = value("initial_divisor", 25.0),
                        .final_divisor = value("final_divisor", 1e4)};
  if (kind == "stable_decay")
    return StableDecayRate{.decay_fraction = value("decay_fraction", 0.1),
                           .final_factor = value("final_factor", 0.0)};
  EXPECT_EQ(kind, "constant");
  return ConstantRate{};
}

LearningRateConfig config_of(const nlohmann::json& json) {
  return {.kind = kind_of(json),
          .warmup_epochs = json.value("warmup_epochs", 0.0),
          .warmup_factor = json.value("warmup_factor", 0.0),
          .per_epoch = json.value("per_epoch", false)};
}

TEST(LearningRate, IsThatOfPyTorch) {
  const auto all = reference::fixture("learning_rates");
  for (const auto& fixture : all.at("cases")) {
    const LearningRateConfig config = config_of(fixture.at("config"));
    const auto expected = fixture.at("values").get<std::vector<double>>();
    for (std::size_t t = 0; t < expected.size(); ++t) {
      const double rate = learning_rate(config, all.at("base"), static_cast<std::int64_t>(t),
                                        all.at("steps_per_epoch"), all.at("total_steps"));
      EXPECT_NEAR(rate, expected[t], 1e-13) << fixture.at("config") << " update " << t;
    }
  }
}

TEST(LearningRate, HasACaseOfEveryKind) {
  std::set<std::size_t> kinds;
  const auto all = reference::fixture("learning_rates");
  for (const auto& fixture : all.at("cases")) kinds.insert(kind_of(fixture.at("config")).index());
  EXPECT_EQ(kinds.size(), std::variant_size_v<RateSchedule>)
      << "a schedule is compared with nothing: give it a case in tests/reference/make_fixtures.py";
}

TEST(LearningRate, WarmsUpFromItsFactor) {
  LearningRateConfig config;
  config.warmup_epochs = 0.5;
  EXPECT_DOUBLE_EQ(learning_rate(config, 0.4, 0, 8, 80), 0);
  EXPECT_DOUBLE_EQ(learning_rate(config, 0.4, 1, 8, 80), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(config, 0.4, 4, 8, 80), 0.4);
  config.warmup_factor = 0.5;
  EXPECT_DOUBLE_EQ(learning_rate(config, 0.4, 0, 8, 80), 0.2);
}

/// The updates at which the rate changes.
std::vector<std::int64_t> drops(const LearningRateConfig& config, std::int64_t steps_per_epoch,
                                std::int64_t total) {
  std::vector<std::int64_t> found;
  for (std::int64_t t = 1; t < total; ++t) {
    const auto rate = [&](std::int64_t at) {
      return learning_rate(config, 1, at, steps_per_epoch, total);
    };
    if (rate(t) != rate(t - 1)) found.push_back(t);
  }
  return found;
}

/// [k] first * k, as PyTorch's StepLR has them.
std::vector<std::int64_t> multiples(std::int64_t first, std::int64_t total) {
  std::vector<std::int64_t> all;
  for (std::int64_t t = first; t < total; t += first) all.push_back(t);
  return all;
}

TEST(LearningRate, DropsAfterWholeUpdatesWhateverPartOfAnEpochTheyAre) {
  LearningRateConfig config{.kind = StepRate{.gamma = 0.9}};
  auto& step = std::get<StepRate>(config.kind);
  for (const std::int64_t per_epoch : {1, 3, 5, 7, 10, 22, 49, 100, 1000}) {
    for (std::int64_t size = 1; size <= per_epoch; ++size) {
      step.epochs = static_cast<double>(size) / static_cast<double>(per_epoch);
      ASSERT_EQ(drops(config, per_epoch, 300), multiples(size, 300)) << size << " of " << per_epoch;
    }
  }
  step.epochs = 0.2;  // 4.4 updates
  EXPECT_EQ(drops(config, 22, 100), multiples(4, 100));
  step.updates = 7;
  EXPECT_EQ(drops(config, 22, 100), multiples(7, 100));
}

TEST(LearningRate, MilestonesAreWholeUpdates) {
  LearningRateConfig config{.kind = MultistepRate{.gamma = 0.5}};
  auto& multistep = std::get<MultistepRate>(config.kind);
  for (const std::int64_t per_epoch : {1, 3, 5, 7, 10, 22, 49, 100, 1000}) {
    for (std::int64_t at = 1; at < 300; ++at) {
      multistep.milestones = {static_cast<double>(at) / static_cast<double>(per_epoch)};
      ASSERT_EQ(drops(config, per_epoch, 301), std::vector{at}) << at << " of " << per_epoch;
    }
  }
  multistep.milestones = {0.07};  // times 100 is more than 7
  EXPECT_EQ(drops(config, 100, 100), std::vector<std::int64_t>{7});
  multistep.milestones = {2.2};  // 48.4 updates
  EXPECT_EQ(drops(config, 22, 100), std::vector<std::int64_t>{49});
  multistep.milestones.clear();
  multistep.milestone_steps = {3, 50};
  EXPECT_EQ(drops(config, 22, 100), (std::vector<std::int64_t>{3, 50}));
}

/// The updates at which the rate rises.
std::vector<std::int64_t> restarts(const LearningRateConfig& config, std::int64_t steps_per_epoch,
                                   std::int64_t total) {
  std::vector<std::int64_t> found;
  const auto rate = [&](std::int64_t at) {
    return learning_rate(config, 1, at, steps_per_epoch, total);
  };
  for (std::int64_t t = 1; t < total; ++t)
    if (rate(t) > rate(t - 1)) found.push_back(t);
  for (const std::int64_t t : found) EXPECT_DOUBLE_EQ(rate(t), 1);
  return found;
}

TEST(LearningRate, RestartsAfterWholeUpdatesWhateverPartOfAnEpochTheyAre) {
  LearningRateConfig config{.kind = CosineRestartsRate{}};
  auto& kind = std::get<CosineRestartsRate>(config.kind);
  for (const std::int64_t per_epoch : {1, 3, 5, 7, 10, 22, 49, 100, 1000}) {
    for (std::int64_t size = 2; size <= per_epoch; ++size) {
      kind.period_epochs = static_cast<double>(size) / static_cast<double>(per_epoch);
      ASSERT_EQ(restarts(config, per_epoch, 300), multiples(size, 300))
          << size << " of " << per_epoch;
    }
  }
  kind.period_epochs = 0.2;  // 4.4 updates
  kind.period_factor = 3;
  EXPECT_EQ(restarts(config, 22, 100), (std::vector<std::int64_t>{4, 4 + 12, 4 + 12 + 36}));
  kind = {.period_steps = 5, .period_factor = 2};
  EXPECT_EQ(restarts(config, 22, 100), (std::vector<std::int64_t>{5, 15, 35, 75}));
  config.per_epoch = true;  // which keys in steps do not know
  EXPECT_EQ(restarts(config, 22, 100), (std::vector<std::int64_t>{5, 15, 35, 75}));
  config = {.kind = CosineRestartsRate{.period_epochs = 1},
            .warmup_epochs = 0.07,
            .warmup_factor = 1};  // times 100 is more than 7
  EXPECT_EQ(restarts(config, 100, 300), (std::vector<std::int64_t>{107, 207}));
}

TEST(LearningRate, WarmsUpForUpdates) {
  LearningRateConfig config{.warmup_steps = 4};
  for (std::int64_t t = 0; t < 6; ++t)
    EXPECT_DOUBLE_EQ(learning_rate(config, 0.4, t, 22, 80), 0.1 * std::min<double>(4, t));
}

TEST(LearningRate, KeysInStepsKnowNoEpochs) {
  struct Place {
    std::int64_t ahead;
    std::int64_t t;
  };
  std::vector<Place> places;
  for (const std::int64_t ahead : {17, -17})  // of larger steps, and of smaller ones
    for (std::int64_t t = std::max<std::int64_t>(0, -ahead); t < 80; ++t)
      places.push_back({ahead, t});
  for (const bool per_epoch : {false, true}) {
    const LearningRateConfig step{.kind = StepRate{.updates = 7, .gamma = 0.9},
                                  .per_epoch = per_epoch};
    EXPECT_EQ(drops(step, 22, 100), multiples(7, 100));
    const LearningRateConfig multistep{
        .kind = MultistepRate{.milestone_steps = {5, 30}, .gamma = 0.5}, .per_epoch = per_epoch};
    EXPECT_EQ(drops(multistep, 22, 100), (std::vector<std::int64_t>{5, 30}));
    const LearningRateConfig cosine{
        .kind = CosineRate{}, .warmup_steps = 30, .per_epoch = per_epoch};
    for (std::int64_t t = 0; t < 30; ++t)
      EXPECT_DOUBLE_EQ(learning_rate(cosine, 0.3, t, 22, 100), 0.01 * static_cast<double>(t));
    EXPECT_DOUBLE_EQ(learning_rate(cosine, 0.3, 30, 22, 100), 0.3);
    const LearningRateConfig warm_restarts{.kind = CosineRestartsRate{.period_steps = 7},
                                           .per_epoch = per_epoch};
    EXPECT_EQ(restarts(warm_restarts, 22, 100), multiples(7, 100));
    // Where updates of another size came first, steps are those that were made.
    for (const auto& [ahead, t] : places) {
      EXPECT_EQ(learning_rate(step, 1, t + ahead, 22, 100 + ahead, ahead),
                learning_rate(step, 1, t, 22, 100));
      EXPECT_EQ(learning_rate(multistep, 1, t + ahead, 22, 100 + ahead, ahead),
                learning_rate(multistep, 1, t, 22, 100));
      EXPECT_EQ(learning_rate(warm_restarts, 1, t + ahead, 22, 100 + ahead, ahead),
                learning_rate(warm_restarts, 1, t, 22, 100));
      if (t >= 30) continue;
      EXPECT_EQ(learning_rate(cosine, 1, t + ahead, 22, 100 + ahead, ahead),
                learning_rate(cosine, 1, t, 22, 100));
    }
  }
}

TEST(LearningRate, RefusesDropsInLessThanAnUpdate) {
  const std::vector<RateSchedule> kinds = {StepRate{.epochs = 0.01},
                                           CosineRestartsRate{.period_epochs = 0.01}};
  for (const RateSchedule& kind : kinds)
    EXPECT_THROW(static_cast<void>(learning_rate({.kind = kind}, 1, 0, 22, 80)), Error);
}

TEST(LearningRate, IsFiniteInRunsOfOneStep) {
  for (const std::string& name : Kinds<RateSchedule>::names()) {
    for (const bool per_epoch : {false, true}) {
      LearningRateConfig config;
      config.kind = Kinds<RateSchedule>::named(name);
      config.per_epoch = per_epoch;
      for (std::int64_t total = 1; total < 5; ++total) {
        for (std::int64_t t = 0; t < total; ++t) {
          const double rate = learning_rate(config, 1, t, 2, total);
          EXPECT_TRUE(rate >= 0 && rate <= 1) << rate;
        }
      }
    }
  }
}

TEST(LearningRate, RefusesWarmUpWithOneCycle) {
  LearningRateConfig config;
  config.kind = OneCycleRate{};
  config.warmup_epochs = 1;
  try {
    static_cast<void>(learning_rate(config, 1, 0, 2, 10));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
  }
}

}  // namespace
}  // namespace carousel
