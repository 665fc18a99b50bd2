// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// When a run warns that its threads outnumber the cores; what else it says is tested with real
// runs.

#include "app/start_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"

namespace carousel {
namespace {

TEST(Crowding, IsNoneWhereThreadsHaveCores) {
  EXPECT_EQ(crowding({.ranks = 1, .threads = 2, .cores = 2}), "");
  EXPECT_EQ(crowding({.ranks = 4, .threads = 2, .cores = 8}), "");
  EXPECT_EQ(crowding({.ranks = 4, .threads = 2, .cores = 0}), "");  // unknown
}

TEST(Crowding, NamesTheNumberToUse) {
  EXPECT_EQ(crowding({.ranks = 1, .threads = 8, .cores = 2}),
            "warning: 8 threads share 2 cores; use engine.threads=2");
  EXPECT_EQ(crowding({.ranks = 1, .threads = 2, .cores = 1}),
            "warning: 2 threads share 1 core; use engine.threads=1");
  EXPECT_EQ(crowding({.ranks = 3, .threads = 4, .cores = 8}),
            "warning: 3 ranks of 4 threads share 8 cores; use engine.threads=2");
}

TEST(Crowding, SaysWhereRanksTakeTurns) {
  EXPECT_EQ(crowding({.ranks = 4, .threads = 1, .cores = 2}),
            "warning: 4 ranks of 1 thread take turns on 2 cores; 2 ranks would not");
  EXPECT_EQ(crowding({.ranks = 4, .threads = 2, .cores = 1}),
            "warning: 4 ranks of 2 threads take turns on 1 core; use engine.threads=1");
}

TEST(Scattering, IsOfSlotsOfSeveralDevices) {
  ParallelConfig parallel{.rule = RuleKind::cdp_v1,
                          .placement = Placement::replicated,
                          .micro_batches = 8,
                          .stages = 2};
  const NodeUse apart{.ranks = 4, .in_order = false};
  EXPECT_EQ(scattering(parallel, apart), "");
  parallel.shards = true;
  EXPECT_EQ(scattering(parallel, {.ranks = 4}), "");
  EXPECT_THAT(scattering(parallel, apart), ::testing::HasSubstr("the 4 of a slot"));
  parallel.stages = 8;  // one device in each
  EXPECT_EQ(scattering(parallel, apart), "");
  parallel.rule = RuleKind::dp;  // all of them in one
  EXPECT_EQ(scattering(parallel, apart), "");
}

TEST(Crowding, NamesRanksOfOneGpu) {
  EXPECT_THAT(crowding({.ranks = 8, .threads = 0, .gpu = 1, .gpu_ranks = 2}),
              ::testing::StartsWith("warning: 2 ranks of this node share GPU 1; start one rank"));
  EXPECT_EQ(crowding({.ranks = 4, .threads = 0, .gpu = 1}), "");
}

TEST(SlowGradients, AreToldWithTheirNumber) {
  EXPECT_EQ(slow_gradients(0), "");
  EXPECT_THAT(slow_gradients(1), ::testing::HasSubstr("of the weights of 1 layer in full numbers"));
  EXPECT_THAT(slow_gradients(53), ::testing::HasSubstr("of 53 layers in full numbers alone"));
}

TEST(Place, TellsCoresAndGpu) {
  EXPECT_EQ(describe_place({.threads = 16, .place = "cores 0-15, NUMA domain 0"}),
            "16 threads on cores 0-15, NUMA domain 0");
  EXPECT_EQ(describe_place({.threads = 1}), "1 thread");
  EXPECT_EQ(describe_place({.space = "Cuda",
                            .threads = 0,
                            .place = "cores 0-15, NUMA domain 3",
                            .gpu = 2,
                            .gpu_name = "NVIDIA H100"}),
            "GPU 2 (NVIDIA H100), cores 0-15, NUMA domain 3");
}

TEST(Text, CountsHaveTheirThousandsApart) {
  EXPECT_EQ(human_count(0), "0");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(1000), "1,000");
  EXPECT_EQ(human_count(25557032), "25,557,032");
}

}  // namespace
}  // namespace carousel
