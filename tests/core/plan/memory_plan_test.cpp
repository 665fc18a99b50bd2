// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The memory of devices: the sums the design promises, the digits model by hand, and arenas whose
// buffers never overlap.

#include "core/plan/memory_plan.hpp"

#include <gtest/gtest.h>
#include "core/plan/staging.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "core/base/real.hpp"
#include "core/plan/evaluation.hpp"
#include "tests/core/plan/schedules.hpp"

namespace carousel {
namespace {

using testing::all_variants;
using testing::describe;
using testing::parallel;
using testing::variants;

constexpr std::int64_t r = sizeof(real);

struct Planned {
  Schedule schedule;
  MemoryPlan memory;

  [[nodiscard]] std::int64_t bytes(int device, Category category) const {
    return memory.devices[device].bytes[static_cast<std::size_t>(category)];
  }
};

Planned plan_model(const Model& model, const ParallelConfig& config, const MemorySpec& spec) {
  std::vector<StageMemory> stages =
      cut_stages(config, plan_stages(model, partition_model(model, config.stages, config.balance),
                                     spec.micro_batch_size));
  Schedule schedule(schedule_spec(config, stages));
  MemoryPlan memory = plan_memory(spec, std::move(stages), schedule);
  return {std::move(schedule), std::move(memory)};
}

Model perceptron(int linear_layers, std::mt19937& random) {
  std::vector<int> widths = {64};
  for (int l = 0; l < linear_layers; ++l) widths.push_back(1 + static_cast<int>(random() % 70));
  return build_mlp(widths, {1, 8, 8}, widths.back());
}

TEST(MemoryPlan, HoldsNMinusJFramesOfStageJ) {
  std::mt19937 random(5);
  for (int n = 1; n <= 8; ++n) {
    const Model model = perceptron(n, random);
    const MemorySpec spec{.input = {1, 8, 8}, .micro_batch_size = 3};
    for (const ParallelConfig& config : variants(n, n)) {
      const Planned planned = plan_model(model, config, spec);
      const std::vector<StageMemory>& stages = planned.memory.stages;
      std::int64_t one = 0;     // A
      std::int64_t cyclic = 0;  // sum of (N - j) a_j
      for (int j = 0; j < n; ++j) {
        one += stages[j].frame_bytes;
        cyclic += (n - j) * stages[j].frame_bytes;
      }
      for (int d = 0; d < planned.schedule.devices(); ++d) {
        const int j = planned.schedule.buffers(d).first_stage;
        std::int64_t expected = one;
        if (config.placement == Placement::single && config.order == Order::together)
          expected = config.rule == RuleKind::dp ? n * one : cyclic;
        // What leaves for another device has a rider.
        const std::int64_t frame = stages[j].frame_bytes + (j + 1 < n ? align_up(4 * r) : 0);
        if (config.placement == Placement::pipeline) expected = (n - j) * frame;
        if (config.placement == Placement::model) expected = frame;
        EXPECT_EQ(planned.bytes(d, Category::activations), expected) << describe(config);
      }
      const Baselines baselines = activation_baselines(stages, n);
      EXPECT_EQ(baselines.accumulate, one);
      EXPECT_EQ(baselines.together, n * one);
    }
  }
}

// Where N is not S, some stage of some micro-batch is always at rest.
TEST(MemoryPlan, PeaksEqualTheArenasExceptWhereGapsAre) {
  std::mt19937 random(6);
  for (int n = 1; n <= 8; ++n) {
    for (int stages = 1; stages <= 6; ++stages) {
      const Model model = perceptron(stages, random);
      for (const ParallelConfig& config : variants(n, stages)) {
        const Planned planned = plan_model(model, config, {.input = {1, 8, 8}});
        for (const DeviceMemoryPlan& device : planned.memory.devices) {
          const bool uneven = config.placement == Placement::single && n != stages && n > 1;
          const bool few = config.placement == Placement::pipeline && n < stages;
          const bool gaps = (uneven || few) && config.rule != RuleKind::dp;
          if (gaps)
            EXPECT_LE(device.peak, device.bytes) << describe(config);
          else
            EXPECT_EQ(device.peak, device.bytes) << describe(config);
        }
      }
    }
  }
  const Planned planned =
      plan_model(perceptron(4, random), parallel(RuleKind::cdp_v2, Placement::single, 6, 4),
                 {.input = {1, 8, 8}});
  const auto activations = static_cast<std::size_t>(Category::activations);
  EXPECT_LT(planned.memory.devices[0].peak[activations],
            planned.memory.devices[0].bytes[activations]);
}

TEST(MemoryPlan, OfTheDigitsModelIsAsWorkedOutByHand) {
  // Stages 0-2: linear 64 -> 64 and ReLU; stage 3: linear 64 -> 10 and loss; 16 samples.
  const std::int64_t message = align_up((64 * 64 + 64 + rider_size(1)) * r);
  const std::int64_t last_message = align_up((64 * 10 + 10 + rider_size(1)) * r);
  const std::int64_t model_bytes = 3 * message + last_message;
  const std::int64_t hidden = 16 * 64 * r;
  const std::int64_t logits = 16 * 10 * r;
  const std::int64_t images = 16 * 64 * r;
  const std::int64_t labels = 2 * 64;  // 16 int, and as many numbers of samples
  const std::int64_t staging = 600 + 300 + 100;
  const std::int64_t momentum = 3 * (64 * 64 + 64) * r + align_up((64 * 10 + 10) * r);
  const Model model = build_mlp({64, 64, 64, 64, 10}, {1, 8, 8}, 10);
  const MemorySpec spec{.input = {1, 8, 8},
                        .target_bytes = 4,
                        .micro_batch_size = 16,
                        .optimizer = {.kind = Sgd{.momentum = 0.9}},
                        .evaluation_batches = 23,
                        .staging_bytes = 600,
                        .input_staging_bytes = 300,
                        .target_staging_bytes = 100};
  const std::int64_t levels = 256 * r;  // of one channel
  const std::int64_t fixed_data = 4 * 32 + align_up(23 * 32) + align_up(staging) + levels;

  const Planned single =
      plan_model(model, parallel(RuleKind::cdp_v2, Placement::single, 4, 4), spec);
  EXPECT_EQ(single.bytes(0, Category::parameters), model_bytes);
  EXPECT_EQ(single.bytes(0, Category::previous_parameters), model_bytes);
  EXPECT_EQ(single.bytes(0, Category::gradients), model_bytes + message);
  EXPECT_EQ(single.bytes(0, Category::optimizer), momentum);
  EXPECT_EQ(single.bytes(0, Category::activations), (4 + 3 + 2) * hidden + logits);
  EXPECT_EQ(single.bytes(0, Category::boundary), 3 * hidden);
  EXPECT_EQ(single.bytes(0, Category::scratch), logits);
  EXPECT_EQ(single.bytes(0, Category::communication), 0);
  EXPECT_EQ(single.bytes(0, Category::data), 4 * (images + labels) + fixed_data);

  const Planned dp = plan_model(model, parallel(RuleKind::dp, Placement::single, 4, 4), spec);
  EXPECT_EQ(dp.bytes(0, Category::previous_parameters), 0);
  EXPECT_EQ(dp.bytes(0, Category::activations), 4 * (3 * hidden + logits));
  EXPECT_EQ(dp.bytes(0, Category::boundary), 4 * 3 * hidden);

  const Planned ring =
      plan_model(model, parallel(RuleKind::cdp_v2, Placement::replicated, 4, 4), spec);
  EXPECT_EQ(ring.bytes(0, Category::gradients), 2 * message + last_message);  // owns stage 3
  EXPECT_EQ(ring.bytes(1, Category::gradients), 5 * message);
  EXPECT_EQ(ring.bytes(3, Category::gradients), 4 * message);  // owns stage 0, nothing returns
  EXPECT_EQ(ring.bytes(0, Category::optimizer), align_up((64 * 10 + 10) * r));
  EXPECT_EQ(ring.bytes(3, Category::optimizer), (64 * 64 + 64) * r);
  EXPECT_EQ(ring.bytes(2, Category::activations), 3 * hidden + logits);
  EXPECT_EQ(ring.bytes(2, Category::data),
            images + labels + 4 * 32 + align_up(6 * 32) + align_up(staging) + levels);
}

/// Collects buffers of one arena and finds what is wrong with their places.
class Arena {
 public:
  explicit Arena(std::int64_t bytes) : bytes_(bytes) {}

  void add(std::int64_t offset, std::int64_t bytes) {
    EXPECT_EQ(offset % tensor_alignment, 0);
    EXPECT_LE(offset + bytes, bytes_);
    if (bytes > 0) buffers_.push_back({offset, bytes});
  }
  void expect_apart() {
    std::ranges::sort(buffers_, {}, &Buffer::offset);
    for (std::size_t k = 1; k < buffers_.size(); ++k)
      EXPECT_LE(buffers_[k - 1].offset + buffers_[k - 1].bytes, buffers_[k].offset);
  }

 private:
  struct Buffer {
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
  };
  std::int64_t bytes_;
  std::vector<Buffer> buffers_;
};

void expect_sound(const Planned& planned, const MemorySpec& spec, int device) {
  const DeviceMemoryPlan& plan = planned.memory.devices[device];
  const std::vector<StageMemory>& stages = planned.memory.stages;
  const BufferCounts& counts = planned.schedule.buffers(device);
  const auto arena = [&](Category category) { return Arena(planned.bytes(device, category)); };
  Arena gradients = arena(Category::gradients);
  Arena optimizer = arena(Category::optimizer);
  Arena activations = arena(Category::activations);
  Arena boundary = arena(Category::boundary);
  Arena data = arena(Category::data);
  std::int64_t largest_stage = 0;
  for (std::size_t copy = 0; copy < plan.parameters.size(); ++copy) {
    Arena parameters = arena(copy == 0 ? Category::parameters : Category::previous_parameters);
    for (std::size_t j = 0; j < stages.size(); ++j) {
      const bool owns = counts.owns(static_cast<int>(j));
      const bool keeps = counts.keeps(static_cast<int>(j), counts.shard, stages[j].shards);
      EXPECT_EQ(plan.parameters[copy][j] >= 0, owns || keeps);
      if (owns) parameters.add(plan.parameters[copy][j], stages[j].message_size * r);
      if (keeps) parameters.add(plan.parameters[copy][j], stages[j].stored_of_shard(counts.shard));
      largest_stage = std::max(largest_stage, stages[j].message_size * r);
    }
    ASSERT_EQ(std::ssize(plan.travelling), counts.travelling);
    for (std::int64_t offset : plan.travelling)
      if (copy == 0) parameters.add(offset, largest_stage);
    parameters.expect_apart();
  }
  for (std::size_t k = 0; k < counts.gradients.size(); ++k) {
    std::int64_t largest = 0;
    for (const int j : counts.gradients[k].stages) {
      const int shard = counts.gradients[k].shard;
      if (shard < 0) largest = std::max(largest, stages[j].message_size * r);
      for (int p = shard; shard >= 0 && p < std::ssize(stages[j].pieces); p += stages[j].shards)
        largest = std::max(largest, stages[j].pieces[p].size() * r);
    }
    gradients.add(plan.gradients[k], largest);
  }
  for (std::size_t j = 0; j < stages.size(); ++j) {
    EXPECT_EQ(plan.optimizer[j] >= 0, !spec.optimizer.states().empty() && counts.optimizer[j]);
    if (plan.optimizer[j] >= 0)
      optimizer.add(plan.optimizer[j], stages[j].parameters_of_shard(counts.shard) * r);
    ASSERT_EQ(std::ssize(plan.frames[j]), counts.frames[j]);
    for (std::int64_t offset : plan.frames[j]) activations.add(offset, plan.frame_bytes[j]);
    ASSERT_EQ(std::ssize(plan.boundaries[j]), counts.boundaries[j]);
    for (std::int64_t offset : plan.boundaries[j]) boundary.add(offset, stages[j].output_bytes);
    const auto here = static_cast<int>(j);
    const bool runs = here >= counts.first_stage && here <= counts.last_stage;
    EXPECT_TRUE(!runs || stages[j].scratch_bytes <= planned.bytes(device, Category::scratch));
  }
  const int first = counts.first_stage;
  ASSERT_EQ(std::ssize(plan.landings), first > 0 ? counts.frames[first] : 0);
  for (std::int64_t offset : plan.landings) boundary.add(offset, stages[first].input_bytes);
  for (int k = 0; k < counts.inputs; ++k) {
    if (first == 0) data.add(plan.images[k], spec.micro_batch_size * spec.input.size() * r);
    if (counts.last_stage + 1 == std::ssize(stages))
      data.add(plan.targets[k], spec.micro_batch_size * spec.target_bytes);
    data.add(plan.samples[k], spec.micro_batch_size * 4);
  }
  const std::int64_t report = planned.memory.report_bytes();
  data.add(plan.reports, planned.schedule.rule().micro_batches() * report);
  const std::int64_t batches = spec.evaluation_batches;
  data.add(plan.evaluation,
           report * (device == 0 ? batches : evaluation_share(planned.schedule, batches, device)));
  const bool last = counts.last_stage + 1 == std::ssize(stages);
  EXPECT_EQ(plan.images.empty(), first > 0);
  EXPECT_EQ(plan.targets.empty(), !last);
  const std::int64_t staging = spec.staging_bytes + (first == 0 ? spec.input_staging_bytes : 0) +
                               (last ? spec.target_staging_bytes : 0);
  data.add(plan.staging, staging);
  EXPECT_EQ(planned.bytes(device, Category::data), plan.staging + align_up(staging));
  for (Arena* each : {&gradients, &optimizer, &activations, &boundary, &data}) {
    SCOPED_TRACE(each - &gradients);
    each->expect_apart();
  }
  EXPECT_EQ(plan.total(), std::accumulate(plan.bytes.begin(), plan.bytes.end(), std::int64_t{0}));
}

TEST(MemoryPlan, KeepsBuffersApartAlignedAndInside) {
  const std::vector<Optimizer> optimizers = {Sgd{}, Sgd{.momentum = 0.9}, AdamW{}};
  std::mt19937 random(7);
  for (int trial = 0; trial < 60; ++trial) {
    const int n = 1 + static_cast<int>(random() % 6);
    const int stages = 1 + static_cast<int>(random() % 5);
    const Model model = perceptron(stages + static_cast<int>(random() % 3), random);
    const MemorySpec spec{.input = {1, 8, 8},
                          .target_bytes = 1 + static_cast<std::int64_t>(random() % 40),
                          .micro_batch_size = 1 + static_cast<int>(random() % 9),
                          .optimizer = {.kind = optimizers[random() % 3]},
                          .evaluation_batches = static_cast<std::int64_t>(random() % 9),
                          .staging_bytes = static_cast<std::int64_t>(random() % 999),
                          .input_staging_bytes = static_cast<std::int64_t>(random() % 999),
                          .target_staging_bytes = static_cast<std::int64_t>(random() % 99)};
    for (const ParallelConfig& config : all_variants(n, stages)) {
      const Planned planned = plan_model(model, config, spec);
      for (int d = 0; d < planned.schedule.devices(); ++d) expect_sound(planned, spec, d);
      ASSERT_FALSE(HasFailure()) << describe(config);
    }
  }
}

TEST(MemoryPlan, LaysGradientsOneAfterTheOtherForAnAllReduce) {
  std::mt19937 random(9);
  ParallelConfig config = parallel(RuleKind::dp, Placement::replicated, 3, 4);
  config.reduction = Reduction::fast;
  const Planned planned =
      plan_model(perceptron(4, random), config, {.input = {1, 8, 8}, .micro_batch_size = 2});
  std::int64_t offset = 0;
  for (int j = 0; j < 4; ++j) {
    EXPECT_EQ(planned.memory.devices[0].gradients[j], offset);
    offset += planned.schedule.message_bytes(j);
  }
}

TEST(MemoryPlan, StagesEveryMessageWhereTheTransportMust) {
  std::mt19937 random(13);
  const Model model = perceptron(4, random);
  MemorySpec spec{.input = {1, 8, 8}, .micro_batch_size = 2, .evaluation_batches = 2};
  for (const Reduction reduction : {Reduction::ordered, Reduction::fast}) {
    ParallelConfig config = parallel(RuleKind::dp, Placement::replicated, 3, 4);
    config.reduction = reduction;
    spec.staged_messages = false;
    EXPECT_EQ(plan_model(model, config, spec).bytes(1, Category::communication), 0);
    spec.staged_messages = true;
    const Planned planned = plan_model(model, config, spec);
    std::int64_t sum = 0;
    std::int64_t most = 0;
    for (int j = 0; j < 4; ++j) {
      sum += planned.schedule.message_bytes(j);
      most = std::max(most, planned.schedule.message_bytes(j));
    }
    EXPECT_EQ(planned.memory.largest_message, reduction == Reduction::fast ? sum : most);
    EXPECT_EQ(
        planned.bytes(1, Category::communication),
        staging_bytes(planned.schedule, spec.evaluation_batches, planned.memory.report_bytes())[1]);
    EXPECT_GE(planned.bytes(1, Category::communication), planned.memory.largest_message);
  }
  const Planned alone = plan_model(model, parallel(RuleKind::dp, Placement::single, 3, 4), spec);
  EXPECT_EQ(alone.bytes(0, Category::communication), 0);
}

TEST(MemoryPlan, GivesEveryComputeQueueTheLargestWorkspace) {
  std::mt19937 random(14);
  Model model = perceptron(4, random);
  model.layers[1].workspace = {{100, 0}};
  model.layers[3].workspace = {{10, 50}};
  MemorySpec spec{.input = {1, 8, 8}, .micro_batch_size = 2};
  for (const int queues : {1, 2}) {
    spec.compute_queues = queues;
    const Planned planned =
        plan_model(model, parallel(RuleKind::cdp_v2, Placement::single, 4, 4), spec);
    const DeviceMemoryPlan& device = planned.memory.devices[0];
    EXPECT_EQ(device.workspace_bytes, align_up(10 + 2 * 50));
    EXPECT_EQ(std::ssize(device.workspaces), queues);
    EXPECT_EQ(device.workspaces.back(), (queues - 1) * device.workspace_bytes);
    EXPECT_EQ(std::ssize(device.scratches), queues);
    EXPECT_EQ(planned.bytes(0, Category::scratch) % queues, 0);
    EXPECT_EQ(device.scratches.back(), planned.bytes(0, Category::scratch) / queues * (queues - 1));
    EXPECT_EQ(planned.bytes(0, Category::workspace), queues * device.workspace_bytes);
  }
}

TEST(MemoryPlan, IsPrintedWithin80Columns) {
  std::mt19937 random(11);
  for (int n : {1, 2, 4, 5, 9}) {
    const Planned planned =
        plan_model(perceptron(2, random), parallel(RuleKind::cdp_v2, Placement::replicated, n, 2),
                   {.input = {1, 8, 8}, .micro_batch_size = 2});
    const std::string text = to_string(planned.memory);
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      EXPECT_LE(text.find('\n', at) - at, 80U) << text;
  }
}

}  // namespace
}  // namespace carousel
