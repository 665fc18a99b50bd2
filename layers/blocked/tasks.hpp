// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Independent pieces of a kernel's work on the threads of the host, each with memory that fits a
// cache. What is as large as a layer lies in the workspace that plans know, not here.

#include <algorithm>
#include <string>

#include "core/base/align.hpp"
#include "core/base/range.hpp"
#include "core/base/view.hpp"
#include "layers/blocked/lanes.hpp"

namespace carousel::blocked {

/// One thread each; whoever is done takes the next, since a core may be slower than another.
using TaskPolicy = Kokkos::TeamPolicy<ExecutionSpace, Kokkos::Schedule<Kokkos::Dynamic>>;
using Task = TaskPolicy::member_type;

/// Calls work(task, scratch) for 0 <= task < tasks, with `scratch` room for so many numbers.
template <class Work>
void for_each_task(const ExecutionSpace& exec, const std::string& label, int tasks,
                   std::int64_t scratch, const Work& work) {
  const std::int64_t bytes = align_up(scratch * std::int64_t{sizeof(real)});
  TaskPolicy policy(exec, tasks, 1);
  policy.set_scratch_size(1, Kokkos::PerTeam(static_cast<int>(bytes + tensor_alignment)));
  Kokkos::parallel_for(label, policy, [=](const Task& task) {
    auto* memory = task.team_scratch(1).get_shmem_aligned(bytes, tensor_alignment);
    work(task.league_rank(), static_cast<real*>(memory));
  });
}
template <class Work>
void for_each_task(const ExecutionSpace& exec, const std::string& label, int tasks,
                   const Work& work) {
  Kokkos::parallel_for(label, TaskPolicy(exec, tasks, 1),
                       [=](const Task& task) { work(task.league_rank()); });
}

/// Calls work(result, sum) for all blocks of weights, of which a task has a few side by side.
template <class Work>
void for_each_blocks(const ExecutionSpace& exec, const std::string& label, int result_blocks,
                     int sum_blocks, const Work& work) {
  const int tasks = 8 * concurrency(exec);  // at least
  const int parts = std::clamp((tasks + result_blocks - 1) / result_blocks, 1, sum_blocks);
  for_each_task(exec, label, result_blocks * parts, [=](int task) {
    const std::int64_t part = task % parts;
    const auto end = static_cast<int>((part + 1) * sum_blocks / parts);
    for (auto b = static_cast<int>(part * sum_blocks / parts); b < end; ++b) work(task / parts, b);
  });
}

}  // namespace carousel::blocked
