// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Where a model meets a source of samples: what devices stage of it, now and in plans of earlier
// runs, and what no kernel can read.

#include "core/prepare/prepare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/data/prefetcher.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

using testing::failure;
using ::testing::StartsWith;

class PrepareTest : public ::testing::Test {
 protected:
  PrepareTest() {
    model_.name = "mlp";
    model_.widths = {24, 6, 5, 4, 3};
    parallel_ = {.placement = Placement::pipeline, .micro_batches = 4, .stages = 4};
    train_.micro_batch_size = 5;
    train_.steps = 1;
    basis_.source = {.input = {NumberType::uint8, {2, 5, 6}},
                     .target = label_spec,
                     .shown = {2, 3, 4},
                     .reader_bytes = 1000};
    basis_.target = 3;
    basis_.train_samples = 60;
    basis_.test_samples = 7;
    basis_.real_bytes = sizeof(real);
    data_.workers = 2;
  }

  [[nodiscard]] PreparedRun prepare() const {
    return prepare_run({.model = model_,
                        .task = task_,
                        .data = data_,
                        .parallel = parallel_,
                        .train = train_,
                        .engine = engine_,
                        .machine = machine_},
                       basis_);
  }

  /// What each device's prefetcher is planned to hold.
  [[nodiscard]] std::vector<std::int64_t> staged() const {
    std::vector<std::int64_t> bytes;
    for (const DeviceMemoryPlan& device : prepare().memory.devices)
      bytes.push_back(device.bytes[static_cast<std::size_t>(Category::data)] - device.staging);
    return bytes;
  }

  ModelConfig model_;
  TaskConfig task_;
  DataConfig data_;
  ParallelConfig parallel_;
  TrainConfig train_;
  EngineConfig engine_;
  std::optional<Machine> machine_;
  PlanBasis basis_;
};

TEST_F(PrepareTest, DevicesStageWhatTheirStagesRead) {
  const StagingBytes part =
      Prefetcher::planned_bytes(basis_.source, basis_.train_samples, 5, staged_batches, 2);
  EXPECT_GT(part.inputs, 2 * 1000);
  EXPECT_EQ(staged(), (std::vector<std::int64_t>{align_up(part.samples + part.inputs),
                                                 align_up(part.samples), align_up(part.samples),
                                                 align_up(part.samples + part.targets)}));
  parallel_.placement = Placement::single;
  EXPECT_EQ(staged(), (std::vector{align_up(part.samples + part.inputs + part.targets)}));
}

TEST_F(PrepareTest, DevicesOfEarlierRunsStagedTargetsWithAnyStage) {
  basis_.targets_everywhere = true;
  const StagingBytes part =
      Prefetcher::planned_bytes(basis_.source, basis_.train_samples, 5, staged_batches, 2);
  const std::int64_t labels = align_up(part.samples + part.targets);
  EXPECT_EQ(staged(),
            (std::vector<std::int64_t>{align_up(part.samples + part.inputs + part.targets), labels,
                                       labels, labels}));
}

TEST_F(PrepareTest, RefusesTensorsThatNoKernelReads) {
  basis_.source.target.shape.channels = 2;
  EXPECT_THAT(failure(ExitCode::usage, [this] { (void)prepare(); }),
              StartsWith("data.file has inputs of uint8 2x5x6 and targets of int32 2x1x1; "));
  basis_.source.target = {NumberType::uint8, {1, 1, 1}};
  EXPECT_THAT(failure(ExitCode::usage, [this] { (void)prepare(); }), StartsWith("data.file has"));
  basis_.source.target = label_spec;
  basis_.source.input.type = NumberType::int32;
  EXPECT_THAT(failure(ExitCode::usage, [this] { (void)prepare(); }), StartsWith("data.file has"));
}

}  // namespace
}  // namespace carousel
