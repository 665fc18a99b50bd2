// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the environment says about the MPI launcher, before and without MPI itself, so that the
// front end can refuse a wrong start on every rank and speak on one.

#include <functional>
#include <string>

#include "app/run_config.hpp"

namespace carousel {

/// Looks up an environment variable; null when it is not set.
using Environment = std::function<const char*(const char*)>;

struct Launcher {
  bool present = false;  // the process can find its peers through MPI
  int rank = 0;
  int size = 1;             // 0: the launcher does not say
  int local_rank = 0;       // among the ranks of this node
  int local_size = 0;       // ranks of this node; 0: the launcher does not say
  bool binds = false;       // says that it gives each rank cores of its own
  int slurm_tasks = 1;      // of the job, where Slurm is and MPI's start-up is not
  bool slurm_step = false;  // Slurm has started these tasks, each alone

  /// Whether others were started beside this process.
  [[nodiscard]] bool several() const { return present ? size != 1 : slurm_step; }
  /// One rank speaks for all about the deck, one per node about the node.
  [[nodiscard]] bool first() const { return rank == 0; }
  [[nodiscard]] bool first_of_node() const { return local_rank == 0; }
};

[[nodiscard]] Launcher find_launcher(const Environment& environment);

/// `local` or `mpi`, whatever the deck leaves to the environment.
[[nodiscard]] TransportKind chosen_transport(const RunConfig& config, const Launcher& launcher);

/// Throws Error(usage) when the processes that were started cannot run the deck.
void check_launch(const RunConfig& config, const Launcher& launcher);

}  // namespace carousel
