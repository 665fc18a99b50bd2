// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which cores and which GPU of its node a rank takes, by what its launcher says and the node has.
// The front end binds to cores, before OpenMP looks where it is; the engine takes the GPU.

#include <string>
#include <vector>

#include "app/launcher.hpp"

namespace carousel {

struct Core {
  int domain = 0;                 // of NUMA
  std::vector<int> threads = {};  // of the hardware, as the system numbers them
};

/// What a process sees of its node.
struct Node {
  std::vector<Core> cores = {};  // that it may run on
  bool whole = true;             // these are all that the node has
  std::vector<int> gpus = {};  // that it can use: the NUMA domain that each is next to; -1: unknown
};

struct Binding {
  std::vector<int> threads = {};  // of the hardware, ascending; empty: stay where you are
  int gpu = -1;                   // of those the process sees; -1: none
};

/// Gives each rank of a node cores of its own, neighbours where it can, and the GPU next to them.
/// Cores only where nobody has given them out yet: the node is not shared, the launcher binds
/// nothing, and `threads_per_rank` (0: as many as there are) fit. `device` is what the deck asks
/// for, -1 if it does not; Error(usage) if there is no such GPU.
[[nodiscard]] Binding choose_binding(const Launcher& launcher, const Node& node,
                                     int threads_per_rank, int device);

/// The hardware threads that this process may run on, ascending; none where the system does not
/// say.
[[nodiscard]] std::vector<int> allowed_threads();

/// The node as the system describes it, with `gpus` GPUs visible to this process.
[[nodiscard]] Node this_node(int gpus);

/// How many GPUs this process will see, as far as the system tells without CUDA.
[[nodiscard]] int expected_gpus();

/// Makes this process, which has one thread yet, run on these hardware threads only.
void bind_to(const std::vector<int>& threads);

/// "cores 0-15, NUMA domain 0": where this process may run, as the system tells now. Nothing if it
/// may run everywhere.
[[nodiscard]] std::string describe_cores(const Node& node);

/// "0-3,8" of ascending numbers, as the kernel writes them, and back. What is none ends the list.
[[nodiscard]] std::string to_ranges(const std::vector<int>& numbers);
[[nodiscard]] std::vector<int> from_ranges(const std::string& text);

}  // namespace carousel
