// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which cores and which GPU of its node a rank takes, by what its launcher says, the node has and,
// of GPUs, all ranks of the node see. The front end binds to cores, before OpenMP looks where it
// is; the engine takes the GPU.

#include <string>
#include <vector>

#include "app/launcher.hpp"

namespace carousel {

struct Core {
  int domain = 0;                 // of NUMA
  std::vector<int> threads = {};  // of the hardware, as the system numbers them
};

struct Gpu {
  int domain = -1;  // of NUMA, that it is next to; -1: unknown
  std::string address =
      {};  // on the bus of the node, whatever a process numbers it; empty: unknown
};

/// What a process sees of its node.
struct Node {
  std::vector<Core> cores = {};  // that it may run on
  bool whole = true;             // these are all that the node has
  std::vector<Gpu> gpus = {};    // that it can use
};

/// Gives each rank of a node hardware threads of cores of its own, ascending, neighbours where it
/// can and those next to its GPU; none where it should stay where it is. Only where nobody has
/// given them out yet: the node is not shared, the launcher binds nothing, and `threads_per_rank`
/// (0: as many as there are) fit.
[[nodiscard]] std::vector<int> choose_threads(const Launcher& launcher, const Node& node,
                                              int threads_per_rank);

/// What a rank tells the others of its node, so that all know alike who takes which GPU.
struct GpuSeeker {
  int domain = -1;             // of NUMA, whose cores it has; -1: of several
  std::vector<Gpu> gpus = {};  // that it may take
};
/// `device` is what the deck asks for, -1 if it does not.
[[nodiscard]] GpuSeeker seeker_of(const Node& node, int device);
[[nodiscard]] std::string to_text(const GpuSeeker& seeker);
[[nodiscard]] GpuSeeker seeker_from(const std::string& text);

/// For each rank of a node one of its GPUs, as it counts them, or -1. No GPU has two ranks while
/// one has none that one of them could take; as many ranks as can have one next to their cores.
[[nodiscard]] std::vector<int> share_gpus(const std::vector<GpuSeeker>& ranks);

/// The GPU of this rank, of those that it sees, which is `own` among the ranks of its node; -1:
/// none. Throws Error(usage) where the deck asks for one that there is not.
[[nodiscard]] int choose_gpu(const Node& node, int device, const std::vector<GpuSeeker>& ranks,
                             int own);

/// The hardware threads that this process may run on, ascending; none where the system does not
/// say.
[[nodiscard]] std::vector<int> allowed_threads();

/// The node as the system describes it, with GPUs of these addresses visible to this process.
[[nodiscard]] Node this_node(const std::vector<std::string>& gpus);

/// The addresses of the GPUs that this process will see, as far as the system tells without CUDA.
[[nodiscard]] std::vector<std::string> expected_gpus();

/// Makes this process, which has one thread yet, run on these hardware threads only.
void bind_to(const std::vector<int>& threads);

/// "cores 0-15, NUMA domain 0": where this process may run, as the system tells now. Nothing if it
/// may run everywhere.
[[nodiscard]] std::string describe_cores(const Node& node);

/// "0-3,8" of ascending numbers, as the kernel writes them, and back. What is none ends the list.
[[nodiscard]] std::string to_ranges(const std::vector<int>& numbers);
[[nodiscard]] std::vector<int> from_ranges(const std::string& text);

}  // namespace carousel
