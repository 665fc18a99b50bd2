// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// What a device must have done: the schedule's own list less what was not asked for, and
// activations that rise to the planned peak and fall to nothing.

#include "core/plan/account.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "core/base/real.hpp"
#include "core/plan/memory_plan.hpp"
#include "tests/core/plan/schedules.hpp"

namespace carousel {
namespace {

using testing::describe;
using testing::variants;

struct Planned {
  Schedule schedule;
  MemoryPlan memory;
};

Planned plan_perceptron(const ParallelConfig& config) {
  const Model model = build_mlp({16, 9, 5, 12, 7, 3}, {1, 4, 4}, 3);
  std::vector<StageMemory> stages =
      plan_stages(model, partition_model(model, config.stages, Balance::layers), 2);
  std::vector<std::int64_t> messages;
  for (const StageMemory& stage : stages)
    messages.push_back(stage.message_size * std::int64_t{sizeof(real)});
  Schedule schedule({config, messages});
  MemoryPlan memory =
      plan_memory({.input = {1, 4, 4}, .micro_batch_size = 2}, std::move(stages), schedule);
  return {std::move(schedule), std::move(memory)};
}

TEST(Account, ListsTheSelectedStepsOfASegment) {
  const Segment segment{10, 21};
  const auto selected = [](std::int64_t step) { return step < 11 || step == 17; };
  for (const ParallelConfig& config : variants(6, 3)) {
    const Planned planned = plan_perceptron(config);
    for (int d = 0; d < planned.schedule.devices(); ++d) {
      std::vector<Action> found;
      for (const AccountedAction& one :
           account(planned.schedule, planned.memory.stages, d, segment, selected))
        found.push_back(one.action);
      std::vector<Action> wanted = planned.schedule.actions(d, segment);
      std::erase_if(wanted, [&](const Action& action) { return !selected(action.step); });
      EXPECT_EQ(found, wanted) << describe(config);
    }
  }
}

TEST(Account, ActivationsRiseToThePlanAndFallToNothing) {
  const auto all = [](std::int64_t) { return true; };
  for (const auto& [n, stages] : {std::array{4, 4}, std::array{5, 5}, std::array{6, 3}}) {
    for (const ParallelConfig& config : variants(n, stages)) {
      const Planned planned = plan_perceptron(config);
      for (int d = 0; d < planned.schedule.devices(); ++d) {
        std::int64_t peak = 0;
        const auto actions = account(planned.schedule, planned.memory.stages, d, {0, 7}, all);
        for (const AccountedAction& one : actions) peak = std::max(peak, one.activation_bytes);
        EXPECT_EQ(actions.back().activation_bytes, 0);
        EXPECT_EQ(peak, peak_activations(planned.schedule, planned.memory.stages, d, {0, 7}));
        constexpr auto activations = static_cast<std::size_t>(Category::activations);
        EXPECT_EQ(peak, planned.memory.devices[d].bytes[activations]) << describe(config);
      }
    }
  }
}

TEST(Account, OfWhatATeamSendsIsSharedByItsDevices) {
  for (int n = 1; n <= 6; ++n) {
    for (int stages = 1; stages <= 6; ++stages) {
      for (const ParallelConfig& config : testing::variants(n, stages)) {
        const Schedule schedule = testing::schedule_of(config);
        for (int d = 0; d < schedule.devices(); d += schedule.program(d).team) {
          Traffic sum;
          for (int k = 0; k < schedule.program(d).team; ++k) {
            const Traffic sent = sent_in(schedule, d + k, {3, 8});
            sum = {sum.messages + sent.messages, sum.bytes + sent.bytes};
          }
          EXPECT_EQ(sum.messages, 5 * traffic(schedule, d).messages) << testing::describe(config);
          EXPECT_EQ(sum.bytes, 5 * traffic(schedule, d).bytes) << testing::describe(config);
        }
      }
    }
  }
}

}  // namespace
}  // namespace carousel
