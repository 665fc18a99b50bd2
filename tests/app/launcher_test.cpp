// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// What the environments of launchers mean, and which starts are refused.

#include "app/launcher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/app/launched.hpp"

namespace carousel {
namespace {

using ::testing::HasSubstr;

const Variables hydra = {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}};
const Variables srun_alone = {{"SLURM_PROCID", "2"},
                              {"SLURM_NTASKS", "4"},
                              {"SLURM_STEP_NUM_TASKS", "4"},
                              {"SLURM_LOCALID", "0"}};
const Variables batch_script = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}};

TEST(Launcher, KnowsRankAndSize) {
  const Launcher mpich = launcher(hydra);
  EXPECT_TRUE(mpich.present);
  EXPECT_EQ(mpich.rank, 3);
  EXPECT_EQ(mpich.size, 4);
  EXPECT_EQ(mpich.local_rank, 1);
  EXPECT_FALSE(mpich.first_of_node());

  const Launcher open_mpi = launcher({{"OMPI_COMM_WORLD_RANK", "0"},
                                      {"OMPI_COMM_WORLD_SIZE", "8"},
                                      {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}});
  EXPECT_TRUE(open_mpi.present);
  EXPECT_EQ(open_mpi.size, 8);

  const Launcher pmix = launcher({{"PMIX_RANK", "5"}, {"SLURM_STEP_NUM_TASKS", "6"}});
  EXPECT_TRUE(pmix.present);
  EXPECT_EQ(pmix.size, 6);

  EXPECT_EQ(launcher({{"PMIX_RANK", "5"}}).size, 0);
}

TEST(Launcher, KnowsTheRanksOfItsNode) {
  const auto size = [](const Variables& variables) { return launcher(variables).local_size; };
  EXPECT_EQ(size({}), 0);
  EXPECT_EQ(size({{"MPI_LOCALNRANKS", "3"}}), 3);
  EXPECT_EQ(size({{"OMPI_COMM_WORLD_LOCAL_SIZE", "5"}}), 5);
  const auto slurm = [&](const char* list, const char* node) {
    return size({{"SLURM_STEP_TASKS_PER_NODE", list}, {"SLURM_NODEID", node}});
  };
  EXPECT_EQ(slurm("4", "0"), 4);
  EXPECT_EQ(slurm("2(x3),1", "0"), 2);
  EXPECT_EQ(slurm("2(x3),1", "2"), 2);
  EXPECT_EQ(slurm("2(x3),1", "3"), 1);
  EXPECT_EQ(slurm("2(x3),1", "4"), 0);
  for (const char* damaged : {"", "x", "2(x", "2(x3", "(x3)", ","})
    EXPECT_LE(slurm(damaged, "1"), 2);
}

TEST(Launcher, IsAbsentOnALaptop) {
  EXPECT_FALSE(launcher({}).present);
  EXPECT_EQ(launcher({}).size, 1);
  EXPECT_FALSE(launcher({{"PMI_RANK", "x"}}).present);
}

RunConfig config(const std::vector<std::string>& overrides) {
  return parse_run_config(
      "[run]\nname='a'\noutput='b'\n[model]\nwidths=[1,2]\n[data]\nfile='c'\n"
      "[parallel]\nplacement='replicated'\nmicro_batches=4\n"
      "[train]\nmicro_batch_size=1\nsteps=5\n",
      "x.toml", overrides);
}

std::string refusal(const Variables& variables, const std::vector<std::string>& overrides = {}) {
  try {
    check_launch(config(overrides), launcher(variables));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(Launcher, AutomaticTransportFollowsTheLauncher) {
  EXPECT_EQ(chosen_transport(config({}), launcher({})), TransportKind::local);
  EXPECT_EQ(chosen_transport(config({}), launcher(hydra)), TransportKind::mpi);
  EXPECT_EQ(chosen_transport(config({"parallel.transport=local"}), launcher(hydra)),
            TransportKind::local);
  EXPECT_EQ(chosen_transport(config({"parallel.transport=rounds"}), launcher(hydra)),
            TransportKind::mpi);
  EXPECT_EQ(chosen_transport(config({"parallel.transport=nccl"}), launcher(hydra)),
            TransportKind::nccl);
}

TEST(Launcher, AcceptsWhatFits) {
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal(hydra), "");
  EXPECT_EQ(refusal({{"PMIX_RANK", "0"}}), "");
  EXPECT_EQ(refusal(batch_script, {"parallel.transport=local"}), "");
}

TEST(Launcher, RefusesWhatDoesNot) {
  EXPECT_EQ(refusal(hydra, {"parallel.micro_batches=3"}),
            "x.toml:9:1: the plan has 3 devices (placement replicated, 3 micro-batches), but 4 "
            "ranks were started; start 3");
  EXPECT_THAT(refusal(hydra, {"parallel.placement=model", "parallel.stages=4"}),
              HasSubstr("10 devices (placement"));
  EXPECT_THAT(refusal(hydra, {"parallel.placement=single"}), HasSubstr("1 device (placement"));
  EXPECT_THAT(refusal(hydra, {"parallel.transport=local"}), HasSubstr("4 were started"));
  EXPECT_THAT(refusal({}, {"parallel.transport=mpi"}), HasSubstr("4 ranks with mpiexec or srun"));
  EXPECT_THAT(refusal({}, {"parallel.transport=nccl"}), HasSubstr("\"nccl\" needs a launcher"));
  EXPECT_THAT(refusal({}, {"parallel.transport=mpi", "parallel.placement=single"}),
              HasSubstr("1 rank with"));
}

// Stock MPICH under srun without --mpi=pmi2 is N worlds of one rank.
TEST(Launcher, RefusesSlurmWithoutMpi) {
  EXPECT_THAT(refusal(srun_alone), HasSubstr("srun --mpi=pmi2"));
  EXPECT_THAT(refusal(srun_alone, {"parallel.transport=local"}), HasSubstr("srun --mpi=pmi2"));
  EXPECT_THAT(refusal(batch_script), HasSubstr("srun --mpi=pmi2"));
  EXPECT_EQ(launcher(srun_alone).rank, 2);
}

}  // namespace
}  // namespace carousel
