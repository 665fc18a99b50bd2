// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/update.hpp"

#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "core/base/add.hpp"
#include "core/base/digest.hpp"
#include "core/deck/kinds.hpp"
#include "core/plan/memory_plan.hpp"
#include "core/train/clipping.hpp"
#include "core/train/kernels.hpp"
#include "tests/layers/device.hpp"
#include "tests/reference/fixtures.hpp"
#include "tests/reference/optimizers.hpp"

namespace carousel {
namespace {

using test::Numbers;

/// A stage of tensors of these ends; the ranges alternate between weights and numbers per feature.
StageMemory stage_of(const std::vector<std::int64_t>& ends) {
  StageMemory stage;
  for (const std::int64_t end : ends) {
    const bool per_feature = stage.tensors.size() % 2 == 1;
    stage.tensors.push_back({stage.parameter_size, end, per_feature});
    stage.parameter_size = end;
  }
  stage.parameter_ranges = stage.tensors;
  return stage;
}
StageMemory one_tensor(std::int64_t size) {
  return stage_of({size});
}

/// Runs updates on the device; every gradient is a sum over 1 / scale micro-batches.
class Updates {
 public:
  Updates(const Numbers& theta, double scale)
      : scale_(static_cast<real>(scale)),
        theta_(test::to_device(theta)),
        next_("carousel::test::next", theta.size()),
        states_("carousel::test::states", 3 * theta.size()),
        digest_("carousel::test::digest", 1) {
    Kokkos::deep_copy(states_, real(1e30));  // the first step must not read it
  }

  void step(const OptimizerConfig& config, const Numbers& gradient_sum) {
    step(config, gradient_sum, one_tensor(static_cast<std::int64_t>(theta_.size())));
  }
  void step(const OptimizerConfig& config, const Numbers& gradient_sum, const StageMemory& stage) {
    const auto gradient = test::to_device(gradient_sum);
    const test::Device<std::byte> workspace("carousel::test::workspace",
                                            config.workspace_bytes(stage.largest_tensor()));
    update(
        ExecutionSpace(), {config, config.learning_rate, number_}, stage,
        {.size = stage.parameter_size,
         .theta = theta_.data(),
         .gradient_sum = gradient.data(),
         .scale = scale_,
         .states = config.states().empty() ? nullptr : states_.data(),
         .average = config.ema == 0 ? nullptr
                                    : states_.data() + (config.states().size() - 1) * theta_.size(),
         .next = next_.data(),
         .digest = digest_.data(),
         .workspace = {workspace.data(), workspace.size()}});
    std::swap(theta_, next_);
    ++number_;
  }

  [[nodiscard]] Numbers theta() const { return test::to_host(theta_); }
  /// Number k of what the optimizer keeps.
  [[nodiscard]] Numbers state(std::size_t k) const {
    const Numbers all = test::to_host(states_);
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(k * theta_.size());
    return {begin, begin + static_cast<std::ptrdiff_t>(theta_.size())};
  }
  [[nodiscard]] std::uint64_t digest() const { return test::to_host(digest_)[0]; }

 private:
  real scale_;
  std::int64_t number_ = 0;
  test::Device<real> theta_, next_, states_;
  test::Device<std::uint64_t> digest_;
};

TEST(Sgd, HasTheBitsOfPyTorch) {
  const auto all = reference::fixture("sgd");
  const std::size_t size = all.at("size");
  for (const auto& fixture : all.at("cases")) {
    const Sgd sgd = {.momentum = fixture.value("momentum", 0.0),
                     .dampening = fixture.value("dampening", 0.0),
                     .nesterov = fixture.value("nesterov", false)};
    const OptimizerConfig config = {.kind = sgd,
                                    .learning_rate = fixture.at("lr"),
                                    .weight_decay = fixture.value("weight_decay", 0.0)};
    Updates updates(test::random_numbers(size, "theta"), all.at("scale"));
    for (int t = 0; t < all.at("steps"); ++t)
      updates.step(config, test::random_numbers(size, "gradient", t));
    const auto expected =
        fixture.at(sizeof(real) == 8 ? "double" : "float").get<std::vector<real>>();
    EXPECT_EQ(updates.theta(), expected) << fixture.at("lr") << " " << sgd.momentum;
  }
}

// PyTorch's square root is off by a unit in the last place now and then, and so are we from it.
TEST(AdamW, IsThatOfPyTorch) {
  const auto all = reference::fixture("adamw");
  const std::size_t size = all.at("size");
  for (const auto& fixture : all.at("cases")) {
    const OptimizerConfig config = {.kind = AdamW{.beta1 = fixture.at("betas").at(0),
                                                  .beta2 = fixture.at("betas").at(1),
                                                  .epsilon = fixture.at("eps")},
                                    .learning_rate = fixture.at("lr"),
                                    .weight_decay = fixture.at("weight_decay")};
    Updates updates(test::random_numbers(size, "theta"), all.at("scale"));
    for (int t = 0; t < all.at("steps"); ++t)
      updates.step(config, test::random_numbers(size, "gradient", t));
    const auto expected =
        fixture.at(sizeof(real) == 8 ? "double" : "float").get<std::vector<real>>();
    EXPECT_LE(test::relative_difference(updates.theta(), expected),
              2 * std::numeric_limits<real>::epsilon())
        << config.learning_rate;
  }
}

/// What a gradient is multiplied by.
real clip_share(const test::Device<real>& gradient, double scale, double limit) {
  const auto size = static_cast<std::int64_t>(gradient.size());
  const test::Device<double> sums("carousel::test::sums",
                                  static_cast<std::size_t>(norm_blocks(size)));
  const test::Device<real> norm("carousel::test::norm", 1);
  const test::Device<real> factor("carousel::test::factor", 1);
  square_blocks(ExecutionSpace(), gradient.data(), size, sums.data());
  find_norm(ExecutionSpace(), sums.data(), norm_blocks(size), scale, norm.data());
  find_clip_factor(ExecutionSpace(), norm.data(), 1, limit, factor.data());
  return test::to_host(factor)[0];
}

TEST(Clipping, IsThatOfPyTorch) {
  for (const auto& fixture : reference::fixture("clip")) {
    const std::int64_t size = fixture.at("size");
    const Numbers gradient =
        test::random_numbers(static_cast<std::size_t>(size), "gradient", static_cast<int>(size));
    const auto device = test::to_device(gradient);
    const real share = clip_share(device, 1, fixture.at("limit"));
    const auto close = [](real value, double expected) {
      EXPECT_NEAR(value, expected, 4 * std::numeric_limits<real>::epsilon() * std::abs(expected));
    };
    close(share * gradient.front(), fixture.at("first"));
    close(share * gradient.back(), fixture.at("last"));
    if (fixture.at("norm") < fixture.at("limit")) {
      EXPECT_EQ(share, 1);
    }
  }
}

// A stage's order of squares depends on no threads.
TEST(Clipping, HasTheSameBitsInEveryRun) {
  const std::int64_t size = 1'000'003;
  const auto device =
      test::to_device(test::random_numbers(static_cast<std::size_t>(size), "gradient"));
  double sum = 0;
  const Numbers values = test::to_host(device);
  for (std::int64_t block = 0; block < norm_blocks(size); ++block) {
    double parts[16] = {};
    const std::int64_t end = std::min(size, (block + 1) * norm_block);
    for (std::int64_t i = block * norm_block; i < end; ++i) {
      const auto value = static_cast<double>(values[static_cast<std::size_t>(i)]);
      parts[i % 16] += value * value;
    }
    sum += std::accumulate(std::begin(parts), std::end(parts), 0.0);
  }
  const auto norm = static_cast<double>(static_cast<real>(0.5 * std::sqrt(sum)));
  EXPECT_EQ(clip_share(device, 0.5, 2), static_cast<real>(2 / (norm + 1e-6)));
}

// Devices have measured stages 0 and 1, 2, and none; who adds whose norms first does not matter.
TEST(Clipping, AddsNormsOfStagesInTheirOrder) {
  const Numbers measured = {real(0.1), real(30), real(1e-3)};
  const ExecutionSpace exec;
  Numbers sum(3);
  for (const auto& [first, end] : {std::pair(2, 3), std::pair(0, 0), std::pair(0, 2)}) {
    auto norms = test::to_device(measured);
    leave_own_norms(exec, norms.data(), 3, first, end);
    const Numbers own = test::to_host(norms);
    for (int j = 0; j < 3; ++j) {
      const auto k = static_cast<std::size_t>(j);
      EXPECT_EQ(own[k], j >= first && j < end ? measured[k] : 0);
      sum[k] += own[k];
    }
  }
  EXPECT_EQ(sum, measured);
  const auto norms = test::to_device(sum);
  const test::Device<real> factor("carousel::test::factor", 1);
  find_clip_factor(exec, norms.data(), 3, 15, factor.data());
  double squares = 0;
  for (const real norm : measured) squares += static_cast<double>(norm) * norm;
  EXPECT_EQ(test::to_host(factor)[0], static_cast<real>(15 / (std::sqrt(squares) + 1e-6)));
}

// Without a mean, every step is the sign of its own gradient, as far as epsilon lets it.
TEST(AdamW, ForgetsAllWithoutShares) {
  const OptimizerConfig config = {.kind = AdamW{.beta1 = 0, .beta2 = 0, .epsilon = 1e-30},
                                  .learning_rate = 1};
  Updates updates({0, 0}, 1);
  updates.step(config, {real(1e6), real(-1e6)});
  updates.step(config, {real(-1e-6), real(1e-6)});
  for (const real theta : updates.theta()) EXPECT_NEAR(theta, 0, 1e-6);
}

/// Every optimizer as decks have it without further keys, and some with.
std::vector<OptimizerConfig> every_optimizer() {
  std::vector<OptimizerConfig> configs;
  for (const std::string& name : Kinds<Optimizer>::names())
    for (const double decay : {0.0, 0.02})
      configs.push_back(
          {.kind = Kinds<Optimizer>::named(name), .learning_rate = 0.01, .weight_decay = decay});
  configs.push_back(
      {.kind = Sgd{.momentum = 0.8, .dampening = 0.1}, .learning_rate = 0.1, .weight_decay = 0.02});
  configs.push_back({.kind = Sgd{.momentum = 0.9, .nesterov = true}, .learning_rate = 0.1});
  return configs;
}

// Tensors of one number, of less and of more than a thread takes at once.
TEST(EveryOptimizer, EqualsPlainLoopsFor100Steps) {
  const StageMemory stage = stage_of({9001, 9002, 9102, 9103, 14000});
  const auto size = static_cast<std::size_t>(stage.parameter_size);
  for (OptimizerConfig config : every_optimizer()) {
    for (const bool decays_all : {true, false}) {
      config.decay_norm_and_bias = decays_all;
      Numbers expected = test::random_numbers(size, "theta");
      std::vector<reference::Kept> kept(stage.tensors.size());
      Updates updates(expected, 0.125);
      for (int t = 0; t < 100; ++t) {
        Numbers gradient = test::random_numbers(size, "gradient", t);
        updates.step(config, gradient, stage);
        for (real& value : gradient) value *= real(0.125);
        for (std::size_t k = 0; k < stage.tensors.size(); ++k) {
          const ParameterRange& tensor = stage.tensors[k];
          OptimizerConfig own = config;
          if (!decays_all && tensor.per_feature) own.weight_decay = 0;
          Numbers theta(expected.begin() + tensor.begin, expected.begin() + tensor.end);
          reference::update(own, config.learning_rate,
                            {gradient.begin() + tensor.begin, gradient.begin() + tensor.end},
                            kept[k], theta);
          std::ranges::copy(theta, expected.begin() + tensor.begin);
        }
      }
      EXPECT_LE(test::relative_difference(updates.theta(), expected), 10 * test::rounding)
          << config.name() << " " << config.weight_decay << " " << decays_all;
      EXPECT_EQ(updates.digest(), digest(std::span<const real>(updates.theta()))) << config.name();
    }
  }
}

// In stages of several tensors, which have updates of their own where some do not decay.
TEST(EveryOptimizer, AveragesWhatItMakes) {
  const StageMemory stage = stage_of({5000, 5070, 9999});
  const std::size_t size = 9999;
  for (OptimizerConfig config : every_optimizer()) {
    for (const double ema : {0.3, 0.99}) {
      config.ema = ema;
      config.weight_decay = 0.1;
      config.decay_norm_and_bias = false;
      Updates updates(test::random_numbers(size, "theta"), 1);
      Numbers expected;
      for (int t = 0; t < 4; ++t) {
        updates.step(config, test::random_numbers(size, "gradient", t), stage);
        const Numbers theta = updates.theta();
        if (t == 0) expected = theta;
        for (std::size_t k = 0; k < size; ++k)
          expected[k] = static_cast<real>(ema * expected[k] + (1 - ema) * theta[k]);
      }
      const std::size_t last = config.states().size() - 1;
      EXPECT_EQ(config.states().back(), average_state);
      EXPECT_LE(test::relative_difference(updates.state(last), expected), 10 * test::rounding)
          << config.name() << " " << ema;
      EXPECT_EQ(updates.digest(), digest(std::span<const real>(updates.theta())));
    }
  }
}

// What a run keeps must be all that the next update follows from.
TEST(EveryOptimizer, NamesWhatItKeeps) {
  for (const OptimizerConfig& config : every_optimizer()) {
    const std::vector<std::string> names = config.states();
    EXPECT_LE(names.size(), 2U) << config.name();
    EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size()) << config.name();
  }
}

TEST(Sgd, WritesInPlaceAndElsewhereTheSame) {
  const OptimizerConfig config = {.learning_rate = 0.1};
  const Numbers theta = test::random_numbers(100, "theta");
  const Numbers gradient = test::random_numbers(100, "gradient");
  Updates elsewhere(theta, 1);
  elsewhere.step(config, gradient);
  const auto here = test::to_device(theta);
  const test::Device<std::uint64_t> digest("carousel::test::digest", 1);
  update(ExecutionSpace(), {config, 0.1, 0}, one_tensor(100),
         {.size = 100,
          .theta = here.data(),
          .gradient_sum = test::to_device(gradient).data(),
          .next = here.data(),
          .digest = digest.data()});
  EXPECT_EQ(test::to_host(here), elsewhere.theta());
  EXPECT_EQ(test::to_host(digest)[0], elsewhere.digest());
}

TEST(Sgd, LeavesNormAndBiasOutOfWeightDecay) {
  const StageMemory stage = stage_of({64, 70, 99});
  OptimizerConfig config = {
      .kind = Sgd{.momentum = 0.9}, .learning_rate = 0.1, .weight_decay = 0.5};
  const auto run = [&](const OptimizerConfig& each) {
    Updates updates(test::random_numbers(99, "theta"), 1);
    for (int t = 0; t < 3; ++t) updates.step(each, test::random_numbers(99, "gradient", t), stage);
    EXPECT_EQ(updates.digest(), digest(std::span<const real>(updates.theta())));
    return updates.theta();
  };
  const Numbers all = run(config);
  config.decay_norm_and_bias = false;
  const Numbers some = run(config);
  config.weight_decay = 0;
  const Numbers none = run(config);
  for (std::size_t k = 0; k < all.size(); ++k) {
    const bool left_out = k >= 64 && k < 70;
    EXPECT_EQ(some[k], left_out ? none[k] : all[k]) << k;
    EXPECT_NE(none[k], all[k]) << k;
  }
}

TEST(Statistics, MoveByTheirMomentumOfTheMean) {
  const auto running = test::to_device(Numbers{1, -2, 4});
  const auto sums = test::to_device(Numbers{6, 4, 2});  // of two micro-batches
  const test::Device<real> next("carousel::test::next", 3);
  const test::Device<std::uint64_t> digest_of("carousel::test::digest", 1);
  const std::array<StatisticsRange, 2> ranges = {{{0, 2, 0.1}, {2, 3, 0.25}}};
  update_statistics(ExecutionSpace(), ranges,
                    {.running = running.data(),
                     .batch_sums = sums.data(),
                     .scale = real(0.5),
                     .next = next.data(),
                     .parameters = 7,
                     .digest = digest_of.data()});
  const Numbers result = test::to_host(next);
  EXPECT_EQ(test::to_host(digest_of)[0],
            digest_term(7, result[0]) + digest_term(8, result[1]) + digest_term(9, result[2]));
  EXPECT_NEAR(result[0], 0.9 * 1 + 0.1 * 3, 1e-6);
  EXPECT_NEAR(result[1], 0.9 * -2 + 0.1 * 2, 1e-6);
  EXPECT_NEAR(result[2], 0.75 * 4 + 0.25 * 1, 1e-6);
}

TEST(Sgd, DigestIsThatOfTheHost) {
  for (const std::size_t size : {0, 1, 63, 100'003}) {
    Updates updates(test::random_numbers(size, "theta"), 1);
    updates.step({.learning_rate = 0.1}, test::random_numbers(size, "gradient"));
    EXPECT_EQ(updates.digest(), digest(std::span<const real>(updates.theta()))) << size;
  }
}

TEST(Kernels, AddGradients) {
  const Numbers a = test::random_numbers(77, "a");
  const Numbers b = test::random_numbers(77, "b");
  const auto sum = test::to_device(a);
  add(ExecutionSpace(), sum, test::to_device(b));
  const Numbers computed = test::to_host(sum);
  for (std::size_t k = 0; k < a.size(); ++k) EXPECT_EQ(computed[k], a[k] + b[k]);
}

}  // namespace
}  // namespace carousel
