// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Which cores and GPU each rank of a node gets, as a function of what launchers say and nodes have.

#include "app/binding.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/app/launched.hpp"

namespace carousel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// One of `ranks` ranks of one node, as MPICH's launcher starts it, which binds nothing.
Launcher hydra(int rank, int ranks) {
  return launcher({{"PMI_RANK", std::to_string(rank)},
                   {"PMI_SIZE", std::to_string(ranks)},
                   {"MPI_LOCALRANKID", std::to_string(rank)},
                   {"MPI_LOCALNRANKS", std::to_string(ranks)}});
}

/// A node of `domains` NUMA domains with so many cores each, of two hardware threads: the second
/// ones are counted behind all first ones.
Node node_of(int domains, int cores, std::vector<int> gpus = {}) {
  Node node{.cores = {}, .whole = true, .gpus = std::move(gpus)};
  const int all = domains * cores;
  for (int k = 0; k < all; ++k) node.cores.push_back({k / cores, {k, k + all}});
  return node;
}

/// What is left of a node when a launcher has bound this process to some of its cores.
Node bound(Node node, int first, int count) {
  node.cores = {node.cores.begin() + first, node.cores.begin() + first + count};
  node.whole = false;
  return node;
}

TEST(Binding, RanksOfANodeShareItsCores) {
  const Node node = node_of(2, 4);
  EXPECT_THAT(choose_binding(hydra(0, 4), node, 0, -1).threads, ElementsAre(0, 1, 8, 9));
  EXPECT_THAT(choose_binding(hydra(3, 4), node, 0, -1).threads, ElementsAre(6, 7, 14, 15));
  EXPECT_EQ(choose_binding(hydra(3, 4), node, 0, -1).gpu, -1);
  // Every core has one rank, whatever their numbers.
  for (int ranks = 2; ranks <= 8; ++ranks) {
    std::multiset<int> given;
    for (int rank = 0; rank < ranks; ++rank)
      for (const int thread : choose_binding(hydra(rank, ranks), node, 0, -1).threads)
        given.insert(thread);
    EXPECT_EQ(given.size(), 16U) << ranks;
    EXPECT_EQ(std::set<int>(given.begin(), given.end()).size(), 16U) << ranks;
  }
}

TEST(Binding, ARankAloneAndRanksThatTakeTurnsStayFree) {
  EXPECT_THAT(choose_binding(launcher({}), node_of(2, 4), 0, -1).threads, IsEmpty());
  EXPECT_THAT(choose_binding(hydra(0, 1), node_of(2, 4), 0, -1).threads, IsEmpty());
  EXPECT_THAT(choose_binding(hydra(0, 9), node_of(2, 4), 0, -1).threads, IsEmpty());
  EXPECT_THAT(choose_binding(hydra(0, 4), node_of(2, 4), 5, -1).threads, IsEmpty());
  EXPECT_THAT(choose_binding(hydra(0, 4), node_of(2, 4), 4, -1).threads, ElementsAre(0, 1, 8, 9));
}

TEST(Binding, WhatALauncherHasBoundStays) {
  EXPECT_THAT(choose_binding(hydra(1, 4), bound(node_of(2, 4), 2, 2), 0, -1).threads, IsEmpty());
  const Variables slurm = {{"PMI_RANK", "1"},
                           {"SLURM_LOCALID", "1"},
                           {"SLURM_NODEID", "0"},
                           {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}};
  EXPECT_THAT(choose_binding(launcher(slurm), node_of(2, 4), 0, -1).threads,
              ElementsAre(4, 5, 6, 7, 12, 13, 14, 15));
  Variables bind = slurm;
  bind["SLURM_CPU_BIND_TYPE"] = "mask_cpu:";
  EXPECT_THAT(choose_binding(launcher(bind), node_of(2, 4), 0, -1).threads, IsEmpty());
  bind["SLURM_CPU_BIND_TYPE"] = "none";
  EXPECT_EQ(choose_binding(launcher(bind), node_of(2, 4), 0, -1).threads.size(), 8U);
}

TEST(Binding, EveryRankTakesAGpuAndTheCoresNextToIt) {
  // Perlmutter counts GPUs against its NUMA domains.
  const Node node = node_of(4, 16, {3, 2, 1, 0});
  for (int rank = 0; rank < 4; ++rank) {
    const Binding binding = choose_binding(hydra(rank, 4), node, 0, -1);
    EXPECT_EQ(binding.gpu, rank);
    ASSERT_EQ(binding.threads.size(), 32U);
    EXPECT_EQ(binding.threads.front(), 16 * (3 - rank));
    // Where Slurm has bound the rank to its domain, it takes the GPU of that.
    EXPECT_EQ(choose_binding(hydra(rank, 4), bound(node, 16 * rank, 16), 0, -1).gpu, 3 - rank);
  }
  // Two GPUs and two ranks for each domain.
  const Node fat = node_of(2, 8, {0, 0, 1, 1});
  EXPECT_THAT(to_ranges(choose_binding(hydra(1, 4), fat, 0, -1).threads), "4-7,20-23");
  EXPECT_THAT(to_ranges(choose_binding(hydra(2, 4), fat, 0, -1).threads), "8-11,24-27");
  EXPECT_EQ(choose_binding(hydra(3, 4), bound(fat, 8, 8), 0, -1).gpu, 3);
  // Slurm by itself deals tasks out to the domains in turn.
  std::set<int> taken;
  for (int rank = 0; rank < 4; ++rank)
    taken.insert(choose_binding(hydra(rank, 4), bound(fat, 8 * (rank % 2), 8), 0, -1).gpu);
  EXPECT_THAT(taken, ElementsAre(0, 1, 2, 3));
}

TEST(Binding, GpusOfUnknownPlaceAreTakenInTurn) {
  const Node node = node_of(2, 4, {-1, -1});
  EXPECT_EQ(choose_binding(hydra(1, 2), node, 0, -1).gpu, 1);
  EXPECT_EQ(choose_binding(hydra(3, 4), node, 0, -1).gpu, 1);  // shared, of which a run warns
  EXPECT_THAT(choose_binding(hydra(1, 2), node, 0, -1).threads.front(), 4);
  // Slurm has left each task one.
  EXPECT_EQ(choose_binding(hydra(3, 4), node_of(2, 4, {-1}), 0, -1).gpu, 0);
}

TEST(Binding, ADeckMayNameTheGpu) {
  const Node node = node_of(2, 4, {0, 1});
  EXPECT_EQ(choose_binding(launcher({}), node, 0, -1).gpu, 0);
  EXPECT_EQ(choose_binding(launcher({}), node, 0, 1).gpu, 1);
  try {
    (void)choose_binding(launcher({}), node, 0, 2);
    FAIL() << "there are two GPUs";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), HasSubstr("engine.device = 2: this process sees 2 GPUs, counted"));
  }
}

TEST(Binding, SpeaksTheKernelsLanguage) {
  EXPECT_EQ(to_ranges({0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
  EXPECT_EQ(to_ranges({}), "");
  EXPECT_THAT(from_ranges("0-3,8,10-11"), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(from_ranges("-1"), IsEmpty());
  EXPECT_THAT(from_ranges("3-x"), IsEmpty());
  EXPECT_EQ(describe_cores(bound(node_of(2, 4), 2, 1)), "cores 2,10, NUMA domain 0");
  EXPECT_EQ(describe_cores(node_of(2, 4)), "");
}

TEST(Binding, TakesThisProcessToItsCores) {
  const Node before = this_node(0);
  ASSERT_FALSE(before.cores.empty());
  bind_to({before.cores.back().threads.front()});
  const Node after = this_node(0);
  ASSERT_EQ(after.cores.size(), 1U);
  EXPECT_EQ(after.cores.front().threads.front(), before.cores.back().threads.front());
  std::vector<int> all;
  for (const Core& core : before.cores)
    all.insert(all.end(), core.threads.begin(), core.threads.end());
  bind_to(all);
  EXPECT_EQ(this_node(0).cores.size(), before.cores.size());
}

}  // namespace
}  // namespace carousel
