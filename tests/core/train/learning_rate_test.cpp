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
