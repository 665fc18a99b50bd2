// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
// The oracle itself: its rules against the paper's tables, its arithmetic against PyTorch.

#include "tests/reference/serial_trainer.hpp"

#include <gtest/gtest.h>

#include "tests/layers/device.hpp"
#include "tests/reference/fixtures.hpp"
#include "tests/reference/initial_state.hpp"

namespace carousel::reference {
namespace {

TEST(CyclicRule, IsThePapersForEqualStagesAndMicroBatches) {
  for (int n = 1; n <= 12; ++n) {
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        EXPECT_TRUE((CyclicRule{false, n, n, 0}.reads_new(i, j)));
        EXPECT_FALSE((CyclicRule{true, n, n, n}.reads_new(i, j)));               // v1
        EXPECT_EQ((CyclicRule{true, n, n, 0}.reads_new(i, j)), i + j >= n - 1);  // v2
      }
    }
  }
}

TEST(CyclicRule, SlackMovesFromNewToOld) {
  for (int n = 1; n <= 8; ++n)
    for (int s = 1; s <= 8; ++s)
      for (int slack = 0; slack < s; ++slack)
        for (int i = 0; i < n; ++i)
          for (int j = 0; j < s; ++j)
            EXPECT_GE((CyclicRule{true, n, s, slack}.reads_new(i, j)),
                      (CyclicRule{true, n, s, slack + 1}.reads_new(i, j)));
}

SerialTraining training_of(const nlohmann::json& fixture) {
  const auto widths = fixture.at("widths").get<std::vector<int>>();
  const int n = fixture.at("samples");
  SerialTraining training;
  training.model = build_mlp(widths, {widths.front()}, widths.back());
  training.stage_begin = {0};
  training.optimizer = {
      .kind = Sgd{.momentum = fixture.at("momentum"), .nesterov = fixture.at("nesterov")},
      .learning_rate = fixture.at("lr"),
      .weight_decay = fixture.at("weight_decay")};
  training.learning_rate = [rate = training.optimizer.learning_rate](std::int64_t) { return rate; };
  training.micro_batch = [widths, n](std::int64_t t, int i) {
    const std::uint64_t stream = t + 1000 * i;
    return MicroBatch{test::random_numbers(std::size_t(n) * widths.front(), "images", stream),
                      test::random_labels(n, widths.back(), stream)};
  };
  return training;
}

TEST(SerialTrainer, IsPyTorchForOneMicroBatch) {
  const auto fixture = reference::fixture("mlp");
  const SerialTraining training = training_of(fixture);
  const State initial = initial_state(training.model, fixture.at("seed"));
  const SerialResult result = train_serially(training, initial, fixture.at("steps"));
  std::vector<double> expected;
  for (const LayerSpec& layer : training.model.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      const auto values = fixture.at("parameters").at(parameter.name).get<std::vector<double>>();
      expected.insert(expected.end(), values.begin(), values.end());
    }
  }
  EXPECT_LE(test::relative_difference(result.states.back().parameters, expected),
            20 * test::rounding);
  EXPECT_LE(
      test::relative_difference(result.losses, fixture.at("losses").get<std::vector<double>>()),
      20 * test::rounding);
}

TEST(SerialTrainer, FirstStepOfAllRulesIsTheSame) {
  const auto fixture = reference::fixture("mlp");
  SerialTraining training = training_of(fixture);
  const State initial = initial_state(training.model, fixture.at("seed"));
  training.stage_begin = {0, 2, 4};
  training.rule = {false, 3, 3, 0};
  const SerialResult dp = train_serially(training, initial, 2);
  training.rule = {true, 3, 3, 0};
  const SerialResult v2 = train_serially(training, initial, 2);
  training.rule = {true, 3, 3, 3};
  const SerialResult v1 = train_serially(training, initial, 2);
  EXPECT_EQ(dp.states[1].parameters, v1.states[1].parameters);
  EXPECT_EQ(dp.states[1].parameters, v2.states[1].parameters);
  EXPECT_NE(dp.states[2].parameters, v1.states[2].parameters);
  EXPECT_NE(dp.states[2].parameters, v2.states[2].parameters);
  EXPECT_NE(v1.states[2].parameters, v2.states[2].parameters);
}

}  // namespace
}  // namespace carousel::reference
