// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// What is written for CUDA alone, on a GPU that tests make up: streams, marks of what is over, lost
// launches, and the clock.

#include <gmock/gmock.h>

#include "core/base/check.hpp"
#include "core/engine/device_clock.hpp"
#include "core/engine/launch_timeline.hpp"
#include "tests/core/engine/cuda_double.hpp"

namespace carousel::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CudaDouble : public ::testing::Test {
 protected:
  CudaDouble() { clear_gpu(); }

  void expect_lost_launch(const std::function<void()>& call) {
    try {
      call();
      ADD_FAILURE() << "nobody noticed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::internal);
      EXPECT_THAT(error.what(),
                  HasSubstr("a kernel failed, or was not launched: invalid configuration"));
    }
  }

  ExecutionSpace exec_;
};

/// Or a receive that waits for another GPU would hold up whatever CUDA is asked for without a
/// stream, and that all other streams.
TEST_F(CudaDouble, StreamsOfOurOwnWaitForNoOthers) {
  const ExecutionSpace first = own_stream(exec_);
  const ExecutionSpace second = own_stream(exec_);
  EXPECT_THAT(gpu().streams, ElementsAre(cudaStreamNonBlocking, cudaStreamNonBlocking));
  EXPECT_NE(first.cuda_stream(), second.cuda_stream());
  EXPECT_TRUE(first.is_managed());
  EXPECT_EQ(gpu().device, exec_.cuda_device());
}

TEST_F(CudaDouble, MarksAreReachedWhenAllBeforeThemIsOver) {
  LaunchTimeline timeline(exec_, 2);
  EXPECT_TRUE(timeline.has_reached(0));
  ASSERT_TRUE(launch(exec_.cuda_stream()));
  EXPECT_EQ(timeline.mark(), 1);
  EXPECT_TRUE(timeline.is_launched(1));
  for (int k = 0; k < 3; ++k) EXPECT_FALSE(timeline.has_reached(1));
  EXPECT_EQ(timeline.mark(), 2) << "to look is no mistake";
  EXPECT_FALSE(timeline.has_room());
  EXPECT_THROW((void)timeline.mark(), Error);
  finish_stream(exec_.cuda_stream());
  EXPECT_TRUE(timeline.has_reached(1));
  EXPECT_FALSE(timeline.has_reached(3));
  EXPECT_EQ(timeline.mark(), 3);
}

TEST_F(CudaDouble, NobodyGoesOnFromAKernelThatWasNotLaunched) {
  LaunchTimeline timeline(exec_, 4);
  EXPECT_EQ(timeline.mark(), 1);
  gpu().refuses = cudaErrorInvalidConfiguration;
  ASSERT_FALSE(launch(exec_.cuda_stream()));
  expect_lost_launch([&] { (void)timeline.mark(); });
  expect_lost_launch([] { check_launches(); });
}

TEST_F(CudaDouble, ALookDoesNotCoverALostLaunch) {
  LaunchTimeline timeline(exec_, 4);
  ASSERT_TRUE(launch(exec_.cuda_stream()));
  (void)timeline.mark();
  EXPECT_FALSE(timeline.has_reached(1));
  gpu().refuses = cudaErrorInvalidConfiguration;
  ASSERT_FALSE(launch(exec_.cuda_stream()));
  expect_lost_launch([&] { (void)timeline.has_reached(1); });
}

/// Libraries try at their start what a machine may not have.
TEST_F(CudaDouble, WhatOthersHaveTriedBeforeIsTheirs) {
  gpu().refuses = cudaErrorNotSupported;
  ASSERT_FALSE(launch(exec_.cuda_stream()));
  gpu().refuses = cudaSuccess;
  LaunchTimeline timeline(exec_, 4);
  EXPECT_EQ(timeline.mark(), 1);
}

TEST_F(CudaDouble, TheClockOfTheGpuIsSetByThatOfTheRun) {
  double now = 0;
  double drift = 0;  // seconds that the GPU's clock is ahead
  const auto wait = [&](double seconds, double parts) {
    now += seconds;
    drift += seconds * parts;
    gpu().ticks = static_cast<std::uint64_t>(1e9 * (1000 + now + drift));
  };
  wait(5, 0);
  DeviceClock clock(exec_, [&] { return now; });
  double stamped = 0;
  clock.stamp(exec_, &stamped);
  EXPECT_NEAR(stamped, 5, 1e-6);
  wait(2, 0);
  clock.stamp(exec_, &stamped);
  EXPECT_NEAR(stamped, 7, 1e-6);
  // Four hours at twenty parts in a million.
  wait(4 * 3600, 20e-6);
  clock.stamp(exec_, &stamped);
  EXPECT_GT(stamped - now, 0.1);
  clock.calibrate(exec_);
  clock.stamp(exec_, &stamped);
  EXPECT_NEAR(stamped, now, 1e-6);
}

/// The host may be interrupted between its looks at the clocks.
TEST_F(CudaDouble, TheClockIsSetByTheQuickestOfSomeLooks) {
  double now = 0;
  int looks = 0;
  const auto seconds = [&] {
    now += looks++ == 1 ? 3.0 : 1e-6;  // within the first look of two
    gpu().ticks = static_cast<std::uint64_t>(1e9 * now);
    return now;
  };
  const DeviceClock clock(exec_, seconds);
  double stamped = 0;
  clock.stamp(exec_, &stamped);
  EXPECT_NEAR(stamped, now, 1e-5);
}

}  // namespace
}  // namespace carousel::test
