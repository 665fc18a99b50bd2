// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/learning_rate.hpp"

#include <gtest/gtest.h>

#include <map>

#include "core/base/check.hpp"
#include "tests/reference/fixtures.hpp"

namespace carousel {
namespace {

LearningRateConfig config_of(const nlohmann::json& json) {
  const std::map<std::string, ScheduleKind> kinds = {{"constant", ScheduleKind::constant},
                                                     {"step", ScheduleKind::step},
                                                     {"multistep", ScheduleKind::multistep},
                                                     {"cosine", ScheduleKind::cosine},
                                                     {"one_cycle", ScheduleKind::one_cycle}};
  LearningRateConfig config;
  config.kind = kinds.at(json.at("kind"));
  config.warmup_epochs = json.value("warmup_epochs", config.warmup_epochs);
  config.warmup_factor = json.value("warmup_factor", config.warmup_factor);
  config.step_epochs = json.value("step_epochs", config.step_epochs);
  config.milestones = json.value("milestones", config.milestones);
  config.gamma = json.value("gamma", config.gamma);
  config.final_factor = json.value("final_factor", config.final_factor);
  config.peak_fraction = json.value("peak_fraction", config.peak_fraction);
  config.initial_divisor = json.value("initial_divisor", config.initial_divisor);
  config.final_divisor = json.value("final_divisor", config.final_divisor);
  config.per_epoch = json.value("per_epoch", config.per_epoch);
  return config;
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
  LearningRateConfig config{.kind = ScheduleKind::step, .gamma = 0.9};
  for (const std::int64_t per_epoch : {1, 3, 5, 7, 10, 22, 49, 100, 1000}) {
    for (std::int64_t size = 1; size <= per_epoch; ++size) {
      config.step_epochs = static_cast<double>(size) / static_cast<double>(per_epoch);
      ASSERT_EQ(drops(config, per_epoch, 300), multiples(size, 300)) << size << " of " << per_epoch;
    }
  }
  config.step_epochs = 0.2;  // 4.4 updates
  EXPECT_EQ(drops(config, 22, 100), multiples(4, 100));
  config.step_size = 7;
  EXPECT_EQ(drops(config, 22, 100), multiples(7, 100));
}

TEST(LearningRate, MilestonesAreWholeUpdates) {
  LearningRateConfig config{.kind = ScheduleKind::multistep, .gamma = 0.5};
  for (const std::int64_t per_epoch : {1, 3, 5, 7, 10, 22, 49, 100, 1000}) {
    for (std::int64_t at = 1; at < 300; ++at) {
      config.milestones = {static_cast<double>(at) / static_cast<double>(per_epoch)};
      ASSERT_EQ(drops(config, per_epoch, 301), std::vector{at}) << at << " of " << per_epoch;
    }
  }
  config.milestones = {0.07};  // times 100 is more than 7
  EXPECT_EQ(drops(config, 100, 100), std::vector<std::int64_t>{7});
  config.milestones = {2.2};  // 48.4 updates
  EXPECT_EQ(drops(config, 22, 100), std::vector<std::int64_t>{49});
  config.milestones.clear();
  config.milestone_steps = {3, 50};
  EXPECT_EQ(drops(config, 22, 100), (std::vector<std::int64_t>{3, 50}));
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
    const LearningRateConfig step{
        .kind = ScheduleKind::step, .step_size = 7, .gamma = 0.9, .per_epoch = per_epoch};
    EXPECT_EQ(drops(step, 22, 100), multiples(7, 100));
    LearningRateConfig multistep{.kind = ScheduleKind::multistep, .gamma = 0.5};
    multistep.milestone_steps = {5, 30};
    multistep.per_epoch = per_epoch;
    EXPECT_EQ(drops(multistep, 22, 100), (std::vector<std::int64_t>{5, 30}));
    LearningRateConfig cosine{
        .kind = ScheduleKind::cosine, .warmup_steps = 30, .per_epoch = per_epoch};
    for (std::int64_t t = 0; t < 30; ++t)
      EXPECT_DOUBLE_EQ(learning_rate(cosine, 0.3, t, 22, 100), 0.01 * static_cast<double>(t));
    EXPECT_DOUBLE_EQ(learning_rate(cosine, 0.3, 30, 22, 100), 0.3);
    // Where updates of another size came first, steps are those that were made.
    for (const auto& [ahead, t] : places) {
      EXPECT_EQ(learning_rate(step, 1, t + ahead, 22, 100 + ahead, ahead),
                learning_rate(step, 1, t, 22, 100));
      EXPECT_EQ(learning_rate(multistep, 1, t + ahead, 22, 100 + ahead, ahead),
                learning_rate(multistep, 1, t, 22, 100));
      if (t >= 30) continue;
      EXPECT_EQ(learning_rate(cosine, 1, t + ahead, 22, 100 + ahead, ahead),
                learning_rate(cosine, 1, t, 22, 100));
    }
  }
}

TEST(LearningRate, RefusesDropsInLessThanAnUpdate) {
  LearningRateConfig config{.kind = ScheduleKind::step, .step_epochs = 0.01};
  EXPECT_THROW(static_cast<void>(learning_rate(config, 1, 0, 22, 80)), Error);
}

TEST(LearningRate, IsFiniteInRunsOfOneStep) {
  for (const auto kind : {ScheduleKind::constant, ScheduleKind::step, ScheduleKind::multistep,
                          ScheduleKind::cosine, ScheduleKind::one_cycle}) {
    for (const bool per_epoch : {false, true}) {
      LearningRateConfig config;
      config.kind = kind;
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
  config.kind = ScheduleKind::one_cycle;
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
