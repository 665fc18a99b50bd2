// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a training says of itself before its first step, for people. It measures nothing: the engine
// knows the machine, the plan everything else.

#include <cstdint>
#include <string>

#include "app/run_config.hpp"
#include "core/plan/agenda.hpp"
#include "core/prepare/prepare.hpp"

namespace carousel {

/// How the processes of a run use the node that they share.
struct NodeUse {
  std::string space = {};  // where kernels run, as Kokkos names it
  int ranks = 1;           // on the node
  bool in_order = true;    // these follow each other
  int threads = 1;         // of each, that compute
  int cores = 0;           // that all of them together may use; 0: unknown
  std::string place = {};  // "cores 0-15, NUMA domain 0"; empty: anywhere on the node
  int gpu = -1;            // of those that this rank sees; -1: none
  std::string gpu_name = {};
  int gpu_ranks = 1;  // of the node that have this very GPU
};

/// Model, data, labels, rule, devices, memory, steps and run folder, a line each. `processes` are
/// those of the whole run, which may hold several devices each; `classes` is what
/// describe_classes() tells.
[[nodiscard]] std::string describe_start(const RunConfig& config, const PreparedRun& run,
                                         const Agenda& agenda, const NodeUse& node, int processes,
                                         const std::string& classes);

/// "16 threads on cores 0-15, NUMA domain 0", "GPU 2 (NVIDIA H100), cores 0-15, ...": what of its
/// node a rank uses.
[[nodiscard]] std::string describe_place(const NodeUse& node);

/// A warning, with what to change, where so many layers of the run have slow gradients of weights;
/// else nothing.
[[nodiscard]] std::string slow_gradients(std::uint64_t layers);

/// A warning, with what to change, where threads outnumber the cores of the node or ranks its GPUs;
/// else nothing.
[[nodiscard]] std::string crowding(const NodeUse& node);

/// A warning, with what to change, where devices of a slot that share a stage lie on several nodes;
/// else nothing.
[[nodiscard]] std::string scattering(const ParallelConfig& parallel, const NodeUse& node);

}  // namespace carousel
