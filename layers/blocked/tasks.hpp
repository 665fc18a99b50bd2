// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Independent pieces of a kernel's work on the threads of the host, each with memory that fits a
// cache. What is as large as a layer lies in the workspace that plans know, not here.

#include <string>

#include "core/base/align.hpp"
#include "core/base/view.hpp"
#include "layers/blocked/lanes.hpp"

namespace carousel::blocked {

/// Calls work(task, scratch) for 0 <= task < tasks, with `scratch` room for so many numbers.
template <class Work>
void for_each_task(const ExecutionSpace& exec, const std::string& label, int tasks,
                   std::int64_t scratch, const Work& work) {
  const std::int64_t bytes = align_up(scratch * std::int64_t{sizeof(real)});
  TeamPolicy policy(exec, tasks, 1);
  policy.set_scratch_size(1, Kokkos::PerTeam(static_cast<int>(bytes + tensor_alignment)));
  Kokkos::parallel_for(label, policy, [=](const Team& team) {
    auto* memory = team.team_scratch(1).get_shmem_aligned(bytes, tensor_alignment);
    work(team.league_rank(), static_cast<real*>(memory));
  });
}
template <class Work>
void for_each_task(const ExecutionSpace& exec, const std::string& label, int tasks,
                   const Work& work) {
  Kokkos::parallel_for(label, TeamPolicy(exec, tasks, 1),
                       [=](const Team& team) { work(team.league_rank()); });
}

}  // namespace carousel::blocked
