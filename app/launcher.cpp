// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/launcher.hpp"

#include <charconv>
#include <initializer_list>
#include <string_view>

#include "core/plan/placements/traits.hpp"

namespace carousel {
namespace {

/// The first of `names` that holds a number, or `otherwise`.
int number(const Environment& environment, std::initializer_list<const char*> names,
           int otherwise) {
  for (const char* name : names) {
    const char* text = environment(name);
    if (text == nullptr) continue;
    const std::string_view view(text);
    int value = 0;
    const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
    if (error == std::errc{} && end == view.data() + view.size() && value >= 0) return value;
  }
  return otherwise;
}

/// Of "2(x3),1": the first three nodes have two tasks each, the fourth has one. 0 for no such list.
int tasks_on_node(const char* list, int node) {
  if (list == nullptr) return 0;
  const std::string_view text(list);
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int tasks = 0;
    int nodes = 1;
    const auto [next, error] = std::from_chars(at, end, tasks);
    if (error != std::errc{}) return 0;
    at = next;
    if (std::string_view(at, end).starts_with("(x")) {
      const auto [close, wrong] = std::from_chars(at + 2, end, nodes);
      if (wrong != std::errc{} || close == end) return 0;
      at = close + 1;
    }
    if (node < nodes) return tasks;
    node -= nodes;
    if (at < end) ++at;  // the comma
  }
  return 0;
}

void check_slurm(const RunConfig& config, const Launcher& launcher) {
  if (launcher.slurm_step)
    fail(ExitCode::usage,
         "Slurm started {} tasks without MPI, so each would train alone; use srun --mpi=pmi2",
         launcher.slurm_tasks);
  if (launcher.slurm_tasks > 1 && config.transport != TransportKind::local)
    fail(ExitCode::usage,
         "the Slurm job has {} tasks, but this is one process; use srun --mpi=pmi2, or "
         "parallel.transport=local for one process",
         launcher.slurm_tasks);
}

}  // namespace

Launcher find_launcher(const Environment& environment) {
  Launcher launcher;
  launcher.rank = number(environment, {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"}, -1);
  launcher.present = launcher.rank >= 0;
  if (launcher.present) {
    launcher.size =
        number(environment,
               {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, 0);
  } else {
    const int step_tasks = number(environment, {"SLURM_STEP_NUM_TASKS"}, 1);
    launcher.slurm_step = step_tasks > 1;
    launcher.slurm_tasks =
        launcher.slurm_step ? step_tasks : number(environment, {"SLURM_NTASKS"}, 1);
    launcher.rank = launcher.slurm_step ? number(environment, {"SLURM_PROCID"}, 0) : 0;
  }
  launcher.local_rank =
      number(environment, {"MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"},
             launcher.rank);
  launcher.local_size = number(environment, {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"}, 0);
  if (launcher.local_size == 0)
    launcher.local_size = tasks_on_node(environment("SLURM_STEP_TASKS_PER_NODE"),
                                        number(environment, {"SLURM_NODEID"}, 0));
  const char* binding = environment("SLURM_CPU_BIND_TYPE");
  launcher.binds = binding != nullptr && *binding != '\0' && std::string_view(binding) != "none";
  return launcher;
}

TransportKind chosen_transport(const RunConfig& config, const Launcher& launcher) {
  const TransportKind asked = config.transport;
  if (asked == TransportKind::local || asked == TransportKind::mpi || asked == TransportKind::nccl)
    return asked;
  return launcher.present ? TransportKind::mpi : TransportKind::local;
}

void check_launch(const RunConfig& config, const Launcher& launcher) {
  check_slurm(config, launcher);
  const std::string key = config.deck.where("parallel.transport") + ": parallel.transport";
  if (chosen_transport(config, launcher) == TransportKind::local) {
    if (launcher.size > 1)
      fail(ExitCode::usage,
           "{} = \"local\" is one process, but {} were started; start one, or set it to \"mpi\"",
           key, launcher.size);
    return;
  }
  const int needed = devices_of(config.parallel);
  if (!launcher.present)
    fail(ExitCode::usage, "{} = \"{}\" needs a launcher; start {} rank{} with mpiexec or srun", key,
         to_string(config.transport), needed, needed == 1 ? "" : "s");
  if (launcher.size > 0 && launcher.size != needed)
    fail(ExitCode::usage,
         "{}: the plan has {} device{} (placement {}, {} micro-batches), but {} rank{} started; "
         "start {}",
         config.deck.where("parallel.placement"), needed, needed == 1 ? "" : "s",
         to_string(config.parallel.placement), config.parallel.micro_batches, launcher.size,
         launcher.size == 1 ? " was" : "s were", needed);
}

}  // namespace carousel
