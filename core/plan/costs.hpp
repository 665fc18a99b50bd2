// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the actions of a stage cost: FLOPs and bytes counted from the model, and seconds by the
// roofline of a machine. Nothing is measured; communication is the simulator's business.

#include <functional>
#include <vector>

#include "core/model/model.hpp"
#include "core/plan/action.hpp"
#include "core/plan/machine.hpp"
#include "core/plan/partition.hpp"

namespace carousel {

/// Arithmetic and traffic of device memory.
struct Work {
  double flops = 0;
  double bytes = 0;
};

/// Work of one stage: of one micro-batch, of adding one of its gradients, of one update.
struct StageCosts {
  std::vector<Work> forward;   // [layer of the stage]
  std::vector<Work> backward;  // [layer of the stage]
  Work load;                   // images of a micro-batch; of the first stage
  Work accumulate;
  Work update;
};

/// Counts for micro-batches of `batch` samples, with w = sizeof(real):
///   forward    batch * flops of the layer; bytes = w (batch * (inputs + output) + parameters)
///   backward   likewise with its own flops; twice the bytes: for the gradient of the input and for
///              that of the parameters
///   load       2 w batch * image: read and write
///   accumulate 3 w * (parameters + buffers): read two, write one
///   update     w * parameters * (3 + 2 states): read gradient and parameters, write parameters,
///              read and write each of `states` numbers of the optimizer per parameter
/// A layer that only renames what it reads (flatten) costs nothing.
[[nodiscard]] std::vector<StageCosts> stage_costs(const Model& model, const Partition& partition,
                                                  int batch, int states);

/// The roofline of Williams et al. 2009 (doi 10.1145/1498765.1498785): arithmetic and traffic
/// overlap perfectly, and the longer one counts.
[[nodiscard]] double roofline_seconds(const Work& work, const Machine& machine);

/// Seconds of every computing action for the simulator, on any device: the sum over layers of their
/// rooflines. Release and save cost nothing.
[[nodiscard]] std::function<double(int, const Action&)> action_seconds(
    const std::vector<StageCosts>& costs, const Machine& machine);

}  // namespace carousel
