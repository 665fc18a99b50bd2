// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Which cores and GPU each rank of a node gets, as a function of what launchers say and nodes have.

#include "app/binding.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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
Node node_of(int domains, int cores, const std::vector<int>& gpus = {}) {
  Node node;
  for (std::size_t k = 0; k < gpus.size(); ++k)
    node.gpus.push_back({gpus[k], fmt::format("{}", k)});
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
  EXPECT_THAT(choose_threads(hydra(0, 4), node, 0), ElementsAre(0, 1, 8, 9));
  EXPECT_THAT(choose_threads(hydra(3, 4), node, 0), ElementsAre(6, 7, 14, 15));
  // Every core has one rank, whatever their numbers.
  for (int ranks = 2; ranks <= 8; ++ranks) {
    std::multiset<int> given;
    for (int rank = 0; rank < ranks; ++rank)
      for (const int thread : choose_threads(hydra(rank, ranks), node, 0)) given.insert(thread);
    EXPECT_EQ(given.size(), 16U) << ranks;
    EXPECT_EQ(std::set<int>(given.begin(), given.end()).size(), 16U) << ranks;
  }
}

TEST(Binding, ARankAloneAndRanksThatTakeTurnsStayFree) {
  EXPECT_THAT(choose_threads(launcher({}), node_of(2, 4), 0), IsEmpty());
  EXPECT_THAT(choose_threads(hydra(0, 1), node_of(2, 4), 0), IsEmpty());
  EXPECT_THAT(choose_threads(hydra(0, 9), node_of(2, 4), 0), IsEmpty());
  EXPECT_THAT(choose_threads(hydra(0, 4), node_of(2, 4), 5), IsEmpty());
  EXPECT_THAT(choose_threads(hydra(0, 4), node_of(2, 4), 4), ElementsAre(0, 1, 8, 9));
}

TEST(Binding, WhatALauncherHasBoundStays) {
  EXPECT_THAT(choose_threads(hydra(1, 4), bound(node_of(2, 4), 2, 2), 0), IsEmpty());
  const Variables slurm = {{"PMI_RANK", "1"},
                           {"SLURM_LOCALID", "1"},
                           {"SLURM_NODEID", "0"},
                           {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}};
  EXPECT_THAT(choose_threads(launcher(slurm), node_of(2, 4), 0),
              ElementsAre(4, 5, 6, 7, 12, 13, 14, 15));
  Variables bind = slurm;
  bind["SLURM_CPU_BIND_TYPE"] = "mask_cpu:";
  EXPECT_THAT(choose_threads(launcher(bind), node_of(2, 4), 0), IsEmpty());
  bind["SLURM_CPU_BIND_TYPE"] = "none";
  EXPECT_EQ(choose_threads(launcher(bind), node_of(2, 4), 0).size(), 8U);
}

/// What ranks of a node take that a launcher has bound to domains, -1: to several.
std::vector<int> shared(const Node& node, const std::vector<int>& domains) {
  std::vector<GpuSeeker> ranks;
  for (const int domain : domains) ranks.push_back({domain, node.gpus});
  return share_gpus(ranks);
}

TEST(Binding, EveryRankTakesAGpuAndTheCoresNextToIt) {
  // Perlmutter counts GPUs against its NUMA domains.
  const Node node = node_of(4, 16, {3, 2, 1, 0});
  EXPECT_THAT(shared(node, {-1, -1, -1, -1}), ElementsAre(0, 1, 2, 3));
  // Where Slurm has bound the ranks to domains, they take the GPUs of those.
  EXPECT_THAT(shared(node, {0, 1, 2, 3}), ElementsAre(3, 2, 1, 0));
  for (int rank = 0; rank < 4; ++rank) {
    const std::vector<int> threads = choose_threads(hydra(rank, 4), node, 0);
    ASSERT_EQ(threads.size(), 32U);
    EXPECT_EQ(threads.front(), 16 * (3 - rank));
  }
  // Two GPUs and two ranks for each domain.
  const Node fat = node_of(2, 8, {0, 0, 1, 1});
  EXPECT_EQ(to_ranges(choose_threads(hydra(1, 4), fat, 0)), "4-7,20-23");
  EXPECT_EQ(to_ranges(choose_threads(hydra(2, 4), fat, 0)), "8-11,24-27");
  EXPECT_THAT(shared(fat, {0, 0, 1, 1}), ElementsAre(0, 1, 2, 3));
  // Slurm by itself deals tasks out to the domains in turn.
  EXPECT_THAT(shared(fat, {0, 1, 0, 1}), ElementsAre(0, 2, 1, 3));
}

TEST(Binding, NoTwoRanksTakeAGpuOfUnequalDomains) {
  const Node node = node_of(2, 4, {0, 1, 1});
  EXPECT_THAT(shared(node, {1, 0}), ElementsAre(1, 0)) << "both took GPU 0";
  EXPECT_THAT(shared(node, {1, 1, 0}), ElementsAre(1, 2, 0));
  EXPECT_THAT(shared(node, {0, 0, 0}), ElementsAre(0, 1, 2)) << "those of others are free";
  EXPECT_THAT(shared(node, {-1, 0, -1}), ElementsAre(1, 0, 2)) << "who is bound chooses first";
}

/// Processes that see some of the GPUs, in an order of their own.
TEST(Binding, TheSameGpuHasOneNameForAllRanks) {
  const Gpu a{0, "0000:1a:00.0"};
  const Gpu b{0, "0000:1b:00.0"};
  const Gpu c{1, "0000:9a:00.0"};
  EXPECT_THAT(share_gpus({{-1, {a, b}}, {-1, {b, a}}}), ElementsAre(0, 0));
  EXPECT_THAT(share_gpus({{-1, {a, b, c}}, {-1, {a}}}), ElementsAre(1, 0));
  EXPECT_THAT(share_gpus({{-1, {c}}, {-1, {a}}, {-1, {b}}}), ElementsAre(0, 0, 0));
  EXPECT_THAT(share_gpus({{-1, {a}}, {-1, {}}, {-1, {a}}}), ElementsAre(0, -1, 0));
  // What a deck names is taken.
  const Node node{.gpus = {a, b}};
  EXPECT_THAT(share_gpus({seeker_of(node, -1), seeker_of(node, 0)}), ElementsAre(1, 0));
  EXPECT_THAT(share_gpus({seeker_of(node, 7), seeker_of(node, -1)}), ElementsAre(-1, 1));
  for (const GpuSeeker& told : {GpuSeeker{1, {a, c, Gpu{}}}, GpuSeeker{}}) {
    const GpuSeeker heard = seeker_from(to_text(told));
    EXPECT_EQ(to_text(heard), to_text(told));
    ASSERT_EQ(heard.gpus.size(), told.gpus.size());
    for (std::size_t k = 0; k < told.gpus.size(); ++k) {
      EXPECT_EQ(heard.gpus[k].address, told.gpus[k].address);
      EXPECT_EQ(heard.gpus[k].domain, told.gpus[k].domain);
    }
  }
}

/// The most ranks that can have a GPU next to their cores, by trying all.
int most_near(const Node& node, const std::vector<int>& domains, std::size_t rank,
              const std::set<std::size_t>& taken) {
  if (rank == domains.size()) return 0;
  int most = most_near(node, domains, rank + 1, taken);
  for (std::size_t gpu = 0; gpu < node.gpus.size(); ++gpu) {
    if (domains[rank] < 0 || node.gpus[gpu].domain != domains[rank] || taken.contains(gpu))
      continue;
    std::set<std::size_t> with = taken;
    with.insert(gpu);
    most = std::max(most, 1 + most_near(node, domains, rank + 1, with));
  }
  return most;
}

/// The digits of a number, of `count`, each less than `base`.
std::vector<int> digits_of(int number, int count, int base) {
  std::vector<int> digits;
  for (int k = 0; k < count; ++k, number /= base) digits.push_back(number % base);
  return digits;
}

/// For all nodes of up to four GPUs and five ranks.
TEST(Binding, SharesGpusEvenlyWhateverTheDomains) {
  const auto power = [](int base, int exponent) {
    int result = 1;
    while (exponent-- > 0) result *= base;
    return result;
  };
  int nodes = 0;
  for (int gpus = 1; gpus <= 4; ++gpus) {
    for (int ranks = 1; ranks <= 5; ++ranks) {
      for (int k = 0; k < power(2, gpus); ++k) {
        const Node node = node_of(2, 4, digits_of(k, gpus, 2));
        for (int of_ranks = 0; of_ranks < power(3, ranks); ++of_ranks) {
          std::vector<int> domains = digits_of(of_ranks, ranks, 3);
          for (int& domain : domains) --domain;
          std::vector<int> times(static_cast<std::size_t>(gpus));
          int near = 0;
          const std::vector<int> chosen = shared(node, domains);
          for (std::size_t rank = 0; rank < chosen.size(); ++rank) {
            const auto gpu = static_cast<std::size_t>(chosen[rank]);
            ++times.at(gpu);
            near += domains[rank] == node.gpus[gpu].domain ? 1 : 0;
          }
          ASSERT_LE(*std::ranges::max_element(times), *std::ranges::min_element(times) + 1);
          if (ranks <= gpus) {
            ASSERT_EQ(near, most_near(node, domains, 0, {}));
          }
          ++nodes;
        }
      }
    }
  }
  EXPECT_EQ(nodes, 30 * 363);
}

TEST(Binding, GpusOfUnknownPlaceAreTakenInTurn) {
  const Node node = node_of(2, 4, {-1, -1});
  EXPECT_THAT(shared(node, {-1, -1, -1, -1}), ElementsAre(0, 1, 0, 1));  // of which a run warns
  EXPECT_THAT(shared(node, {1, 0, 1}), ElementsAre(0, 1, 0));
  EXPECT_THAT(choose_threads(hydra(1, 2), node, 0).front(), 4);
  EXPECT_THAT(share_gpus({{-1, {{}, {}}}, {-1, {{}, {}}}}), ElementsAre(0, 1)) << "no addresses";
}

TEST(Binding, ADeckMayNameTheGpu) {
  const Node node = node_of(2, 4, {0, 1});
  const auto chosen = [&](int device) {
    return choose_gpu(node, device, {seeker_of(node, device)}, 0);
  };
  EXPECT_EQ(chosen(-1), 0);
  EXPECT_EQ(chosen(1), 1);
  EXPECT_EQ(choose_gpu({}, -1, {seeker_of({}, -1)}, 0), -1) << "there is none";
  try {
    (void)chosen(2);
    FAIL() << "there are two GPUs";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), HasSubstr("engine.device = 2: this process sees 2 GPUs, counted"));
  }
}

TEST(Binding, SeeksAGpuNextToTheCoresThatALauncherGave) {
  const Node node = node_of(2, 4, {0, 1});
  EXPECT_EQ(seeker_of(node, -1).domain, -1) << "it has all cores";
  EXPECT_EQ(seeker_of(bound(node, 4, 2), -1).domain, 1);
  EXPECT_EQ(seeker_of(bound(node, 3, 2), -1).domain, -1) << "of both";
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
  const Node before = this_node({});
  ASSERT_FALSE(before.cores.empty());
  bind_to({before.cores.back().threads.front()});
  const Node after = this_node({});
  ASSERT_EQ(after.cores.size(), 1U);
  EXPECT_EQ(after.cores.front().threads.front(), before.cores.back().threads.front());
  std::vector<int> all;
  for (const Core& core : before.cores)
    all.insert(all.end(), core.threads.begin(), core.threads.end());
  bind_to(all);
  EXPECT_EQ(this_node({}).cores.size(), before.cores.size());
}

}  // namespace
}  // namespace carousel
