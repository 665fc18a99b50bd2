// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// A hundred steps beside PyTorch in double precision: Nesterov's momentum, dampening, AdamW,
// clipping, smoothed labels, dropped features and running statistics; see
// make_training_fixtures.py. In single precision losses stay near.

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "core/base/random.hpp"
#include "tests/core/support.hpp"
#include "tests/core/train/small_run.hpp"
#include "tests/reference/fixtures.hpp"

namespace carousel::test {
namespace {

constexpr std::uint64_t seed = 5;
constexpr bool exact = sizeof(real) == 8;
constexpr double tolerance = 1e-9;  // of what a hundred steps make of rounding
constexpr double single_tolerance = 2e-2;

nlohmann::json training(const char* topic) {
  return reference::fixture(topic, "training.json");
}

SmallDeck deck_of(const nlohmann::json& fixture) {
  SmallDeck deck;
  deck.train.micro_batch_size = training("samples");
  deck.train.steps = training("steps");
  deck.task.arguments = {{"label_smoothing", fixture.at("label_smoothing")}};
  OptimizerConfig& optimizer = deck.train.optimizer;
  const bool adamw = fixture.contains("adamw");
  const nlohmann::json& options = fixture.at(adamw ? "adamw" : "sgd");
  optimizer = {.learning_rate = options.at("lr"),
               .weight_decay = options.value("weight_decay", 0.0),
               .clip_stage_norm = fixture.at("clip"),
               .ema = fixture.at("ema")};
  if (adamw)
    optimizer.kind = AdamW{.beta1 = options.at("betas").at(0),
                           .beta2 = options.at("betas").at(1),
                           .epsilon = options.value("eps", 1e-8)};
  else
    optimizer.kind = Sgd{.momentum = options.value("momentum", 0.0),
                         .dampening = options.value("dampening", 0.0),
                         .nesterov = options.value("nesterov", false)};
  if (fixture.at("model") == "mlp")
    deck.model = {.name = "mlp", .widths = training("widths"), .dropout = fixture.at("dropout")};
  else
    deck.model = {.name = "resnet", .depth = 8, .stem = Stem::cifar};
  return deck;
}

/// Compares tensors by their largest magnitude and by a sum of random shares of all elements.
void expect_tensors(const std::vector<HostTensor>& found, const nlohmann::json& expected) {
  ASSERT_EQ(found.size(), expected.size());
  const std::uint64_t key = random_key(seed, "shares");
  for (const HostTensor& tensor : found) {
    double largest = 0;
    double sum = 0;
    for (std::size_t k = 0; k < tensor.values.size(); ++k) {
      const auto value = static_cast<double>(tensor.values[k]);
      largest = std::max(largest, std::abs(value));
      sum += value * (uniform01(key, 0, k) - 0.5);
    }
    const double magnitude = expected.at(tensor.name).at(0);
    EXPECT_NEAR(largest, magnitude, tolerance * magnitude) << tensor.name;
    const double size = std::sqrt(static_cast<double>(tensor.values.size()));
    EXPECT_NEAR(sum, expected.at(tensor.name).at(1), tolerance * magnitude * size) << tensor.name;
  }
}

void expect_training(const SmallDeck& deck, const nlohmann::json& fixture) {
  const Dataset digits(testing::input("digits.h5"));
  const ExecutionSpace exec;
  SmallRun run(exec, digits, deck);
  run.trainer().run();
  const std::vector<double> losses = fixture.at("losses");
  ASSERT_EQ(run.story().steps.size(), losses.size());
  for (std::size_t t = 0; t < losses.size(); ++t)
    EXPECT_NEAR(run.story().steps[t].loss, losses[t],
                (exact ? tolerance : single_tolerance) * losses[t])
        << "step " << t;
  if (!exact) return;
  Snapshot last = snapshot(run.trainer());
  const int averages = static_cast<int>(deck.train.optimizer.states().size()) - 1;
  std::erase_if(last.optimizer, [&](const HostTensor& each) { return each.state != averages; });
  expect_tensors(last.optimizer, fixture.at("averages"));
  expect_tensors(last.parameters, fixture.at("parameters"));
  expect_tensors(last.buffers, fixture.at("buffers"));
}

TEST(Training, IsThatOfPyTorch) {
  for (const nlohmann::json& fixture : training("cases")) {
    SCOPED_TRACE(fixture.at("name").get<std::string>());
    expect_training(deck_of(fixture), fixture);
  }
}

// The norm is that of the whole model, wherever it is cut.
TEST(Training, ClipsByTheNormOfAllStages) {
  int clipped = 0;
  for (const nlohmann::json& fixture : training("cases")) {
    SmallDeck deck = deck_of(fixture);
    OptimizerConfig& optimizer = deck.train.optimizer;
    if (optimizer.clip_stage_norm == 0) continue;
    SCOPED_TRACE(fixture.at("name").get<std::string>());
    optimizer.clip_norm = std::exchange(optimizer.clip_stage_norm, 0);
    deck.parallel = {.rule = RuleKind::dp, .placement = Placement::pipeline, .stages = 2};
    expect_training(deck, fixture);
    ++clipped;
  }
  EXPECT_GT(clipped, 0);
}

}  // namespace
}  // namespace carousel::test
