// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Advice against every plan there is, one by one; and cuts by time, on which it rests.

#include "core/forecast/advice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "core/base/check.hpp"
#include "core/forecast/estimate.hpp"
#include "core/plan/costs.hpp"
#include "tests/core/plan/schedules.hpp"

namespace carousel {
namespace {

using ::testing::HasSubstr;

constexpr Balance all_balances[] = {Balance::flops, Balance::activations, Balance::parameters,
                                    Balance::layers, Balance::time};

const Model& perceptron() {
  static const Model model = build_mlp({64, 96, 32, 64, 48, 10}, {64, 1, 1}, 10);
  return model;
}

MemorySpec memory_of(int batch) {
  return {
      .input = {64, 1, 1}, .micro_batch_size = batch, .optimizer = {.kind = Sgd{.momentum = 0.9}}};
}

AdviceQuestion question(int devices, double memory) {
  return {.samples = 8,
          .micro_batches = {1, 2, 4, 8},
          .optimizer = {.kind = Sgd{.momentum = 0.9}},
          .largest_message = 1 << 30,
          .machine = {.flops = 1e9,
                      .memory_bandwidth = 1e10,
                      .latency_inside = 1e-6,
                      .bandwidth_inside = 1e9,
                      .latency_between = 1e-5,
                      .bandwidth_between = 1e8,
                      .devices_per_node = 4,
                      .devices = devices,
                      .memory = memory},
          .memory = memory_of};
}

/// Least seconds of what fits, and least memory of all.
struct Least {
  double seconds = std::numeric_limits<double>::infinity();
  std::int64_t fullest = std::numeric_limits<std::int64_t>::max();
};

bool to_be_tried(const ParallelConfig& p, const AdviceQuestion& asked, int devices) {
  const bool one = p.placement == Placement::single;
  const bool cuts = p.placement == Placement::model || p.placement == Placement::pipeline;
  if (devices > asked.machine.devices || (!one && devices < 2) || (cuts && p.stages < 2))
    return false;
  if (p.rule == RuleKind::dp) return true;
  return p.micro_batches > 1 && p.stages > 1 && p.slack <= (one ? 0 : 2) && p.slack < p.stages;
}

/// All plans of N and S, and those that advice cuts into shards.
std::vector<ParallelConfig> plans(int n, int stages) {
  std::vector<ParallelConfig> all = testing::variants(n, stages);
  const std::size_t whole = all.size();
  for (std::size_t k = 0; k < whole; ++k) {
    ParallelConfig cut = all[k];
    if (!traits_of(cut.placement).cuts_stages || cut.reduction != Reduction::ordered) continue;
    cut.shards = true;
    for (const int chunks : {1, 16}) {
      for (const Sums sums : {Sums::ring, Sums::late}) {
        cut.chunks = chunks;
        cut.sums = sums;
        const bool late = sums == Sums::late;
        if (late && (cut.rule != RuleKind::cdp_v1 || !traits_of(cut.placement).sums_late)) continue;
        if (!late && cut.rule != RuleKind::dp && n % stages != 0) continue;
        all.push_back(cut);
        if (has_fast_sums(cut)) all.back().reduction = Reduction::fast;
      }
    }
  }
  return all;
}

std::map<std::pair<RuleKind, Placement>, Least> least_of_all(const AdviceQuestion& asked) {
  std::map<std::pair<RuleKind, Placement>, Least> least;
  for (const int batch : asked.micro_batches) {
    const int n = static_cast<int>(asked.samples) / batch;
    for (int stages = 1; stages <= most_stages(perceptron()); ++stages) {
      for (const Balance balance : all_balances) {
        for (ParallelConfig config : plans(n, stages)) {
          config.balance = balance;
          config.predict = has_prediction(config) ? asked.predict : 0;
          const Partition partition = cut_model(perceptron(), config, batch, asked.machine);
          const std::vector<StageMemory> memory =
              cut_stages(config, plan_stages(perceptron(), partition, batch));
          const Schedule schedule(schedule_spec(config, memory));
          if (!to_be_tried(config, asked, schedule.devices())) continue;
          const std::vector<StageCosts> costs = stage_costs(perceptron(), partition, batch, 1);
          const Estimate e = estimate(
              schedule, plan_memory(memory_of(batch), memory, schedule),
              Speeds{asked.machine,
                     action_seconds(stage_seconds(costs, asked.machine), schedule.spec().pieces)});
          Least& now = least[{config.rule, config.placement}];
          now.fullest = std::min(now.fullest, e.fullest);
          if (asked.machine.memory == 0 || static_cast<double>(e.fullest) <= asked.machine.memory)
            now.seconds = std::min(now.seconds, e.seconds->step);
        }
      }
    }
  }
  return least;
}

TEST(Advice, FindsTheFastestPlanThatFits) {
  for (const auto& [memory, predict] :
       {std::pair{0.0, 0.0}, {200e3, 0.0}, {120e3, 0.0}, {90e3, 0.0}, {20e3, 0.0}, {120e3, 1.0}}) {
    AdviceQuestion asked = question(6, memory);
    asked.predict = predict;
    const auto least = least_of_all(asked);
    const Advice advice = advise(perceptron(), asked);
    EXPECT_EQ(advice.best.size(), least.size());
    EXPECT_LE(advice.simulated, advice.plans);
    double before = 0;
    for (const Candidate& found : advice.best) {
      const Least& expected = least.at({found.parallel.rule, found.parallel.placement});
      EXPECT_EQ(found.parallel.predict, has_prediction(found.parallel) ? predict : 0);
      EXPECT_EQ(found.fits, std::isfinite(expected.seconds)) << memory;
      if (!found.fits) {
        EXPECT_EQ(found.fullest, expected.fullest);
        before = std::numeric_limits<double>::max();
        continue;
      }
      EXPECT_GE(found.seconds, before);
      before = found.seconds;
      // Slower by a thousandth at most.
      EXPECT_GE(found.seconds, expected.seconds * (1 - 1e-12));
      EXPECT_LE(found.seconds * (1 - 1e-3), expected.seconds)
          << testing::describe(found.parallel) << ", " << memory << " bytes";
    }
  }
}

TEST(Advice, TakesDpWhereADelaySavesNothing) {
  const Candidate cyclic{.parallel = {.rule = RuleKind::cdp_v1}, .fits = true, .seconds = 1};
  Candidate dp{.parallel = {.rule = RuleKind::dp}, .fits = true, .seconds = 1.005};
  Advice advice{.best = {cyclic, dp}};
  EXPECT_EQ(advice.to_take().parallel.rule, RuleKind::dp);
  advice.best[1].seconds = 1.02;
  EXPECT_EQ(advice.to_take().parallel.rule, RuleKind::cdp_v1);
  advice.best[1].fits = false;
  EXPECT_EQ(advice.to_take().parallel.rule, RuleKind::cdp_v1);
  dp.seconds = 1;
  advice.best = {dp};
  EXPECT_EQ(advice.to_take().parallel.rule, RuleKind::dp);
}

TEST(Advice, KeepsToTheDevicesThereAre) {
  for (const int devices : {1, 2, 3, 10}) {
    const AdviceQuestion asked = question(devices, 0);
    for (const Candidate& found : advise(perceptron(), asked).best) {
      EXPECT_LE(found.devices, devices);
      EXPECT_EQ(
          found.devices,
          Schedule(
              schedule_spec(found.parallel,
                            cut_stages(found.parallel,
                                       plan_stages(perceptron(),
                                                   cut_model(perceptron(), found.parallel,
                                                             found.micro_batch_size, asked.machine),
                                                   found.micro_batch_size))))
              .devices());
      EXPECT_EQ(found.parallel.micro_batches * found.micro_batch_size, asked.samples);
    }
  }
}

TEST(Advice, FitsResnet50IntoLessMemory) {
  const Model model = build_resnet(50, Stem::imagenet, {3, 224, 224}, 1000);
  AdviceQuestion asked = question(8, 0);
  asked.samples = 256;
  asked.micro_batches = {256, 128, 64, 32, 16, 8, 4};
  asked.machine = {.flops = 3e14,
                   .memory_bandwidth = 3e12,
                   .latency_inside = 5e-6,
                   .bandwidth_inside = 2e11,
                   .latency_between = 1e-5,
                   .bandwidth_between = 2e10,
                   .devices_per_node = 4,
                   .devices = 8};
  asked.memory = [](int batch) {
    return MemorySpec{.input = {3, 224, 224},
                      .micro_batch_size = batch,
                      .optimizer = {.kind = Sgd{.momentum = 0.9}}};
  };
  const Advice free = advise(model, asked);
  fmt::print("{}", to_string(free, asked));
  EXPECT_TRUE(free.best.front().fits);
  // Over the links of all devices of a node, sums of dp hide behind the backward.
  const auto dp = std::ranges::find_if(free.best, [](const Candidate& found) {
    return found.parallel.rule == RuleKind::dp && found.parallel.placement == Placement::replicated;
  });
  ASSERT_NE(dp, free.best.end());
  EXPECT_LT(dp->seconds, 1.02 * free.best.front().seconds);
  EXPECT_THAT(to_string(free, asked), HasSubstr("dp"));
  asked.machine.memory = 0.5 * static_cast<double>(free.best.front().fullest);
  const Advice tight = advise(model, asked);
  fmt::print("{}", to_string(tight, asked));
  ASSERT_TRUE(tight.best.front().fits);
  EXPECT_GE(tight.best.front().seconds, free.best.front().seconds);
  EXPECT_LE(static_cast<double>(tight.best.front().fullest), asked.machine.memory);
  // Only pipelines fit on several devices, and without a flush they are fastest.
  EXPECT_EQ(tight.best.front().parallel.placement, Placement::pipeline);
  EXPECT_NE(tight.best.front().parallel.rule, RuleKind::dp);
}

TEST(Advice, IsPrintedWithin80Columns) {
  const AdviceQuestion asked = question(6, 60e3);
  const std::string text = to_string(advise(perceptron(), asked), asked);
  EXPECT_THAT(text, HasSubstr("at most 6 devices of 60000 bytes"));
  EXPECT_THAT(text, HasSubstr("no room"));
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    EXPECT_LE(text.find('\n', at) - at, 80U) << text.substr(at, 100);
}

TEST(Advice, CutsByTimeOnTheMachineThatIsGiven) {
  // Convolutions of late stages have more parameters and fewer pixels: a machine of little memory
  // bandwidth takes longer for the early ones.
  const Model model = build_resnet(20, Stem::cifar, {3, 32, 32}, 10);
  const ParallelConfig config{.balance = Balance::time, .stages = 4};
  const auto longest = [&](const Partition& partition, const Machine& machine) {
    double most = 0;
    for (const StageSeconds& stage : stage_seconds(stage_costs(model, partition, 8, 1), machine))
      most = std::max(most, stage.forward + stage.backward);
    return most;
  };
  for (const double bandwidth : {1e8, 1e10, 1e13}) {
    const Machine machine{.flops = 1e11, .memory_bandwidth = bandwidth};
    const double by_time = longest(cut_model(model, config, 8, machine), machine);
    for (const Balance balance : all_balances) {
      if (balance == Balance::time) continue;
      EXPECT_LE(by_time, longest(partition_model(model, 4, balance), machine) * (1 + 1e-9));
    }
  }
  const Machine slow{.flops = 1e14, .memory_bandwidth = 1e9};
  EXPECT_NE(cut_model(model, config, 8, slow).first,
            partition_model(model, 4, Balance::flops).first);
  EXPECT_THROW(static_cast<void>(cut_model(model, config, 8, std::nullopt)), Error);
}

}  // namespace
}  // namespace carousel
