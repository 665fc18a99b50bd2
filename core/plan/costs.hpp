// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the actions of a stage cost: FLOPs and bytes counted from the model, and seconds by the
// roofline of a machine; communication is the simulator's business. What a run has measured takes
// the place of the seconds in core/io/measured_costs.hpp.

#include <functional>
#include <optional>
#include <vector>

#include "core/model/model.hpp"
#include "core/plan/action.hpp"
#include "core/plan/machine.hpp"
#include "core/plan/partition.hpp"
#include "core/plan/placements/layout.hpp"

namespace carousel {

/// Arithmetic and traffic of device memory.
struct Work {
  double flops = 0;
  double bytes = 0;
};

/// Work of one stage: of one micro-batch, of adding or measuring one of its gradients, of one
/// update.
struct StageCosts {
  std::vector<Work> forward;   // [layer of the stage]
  std::vector<Work> backward;  // [layer of the stage]
  Work load;                   // images of a micro-batch; of the first stage
  Work copy;                   // of its parameters
  Work accumulate;
  Work measure;
  Work update;
};

/// Counts for micro-batches of `batch` samples, with w = sizeof(real):
///   forward    batch * flops of the layer; bytes = w (batch * (inputs + output) + parameters)
///   backward   likewise with its own flops; twice the bytes: for the gradient of the input and for
///              that of the parameters; and all of forward once more where stages are recomputed
///   load       2 w batch * image: read and write
///   copy       2 w * (parameters + buffers): likewise
///   accumulate 3 w * (parameters + buffers): read two, write one
///   measure    w * parameters: read one
///   update     w * parameters * (3 + 2 states): read gradient and parameters, write parameters,
///              read and write each of `states` numbers of the optimizer per parameter
/// A layer that only renames what it reads (flatten) costs nothing.
[[nodiscard]] std::vector<StageCosts> stage_costs(const Model& model, const Partition& partition,
                                                  int batch, int states);

/// Picoseconds of forward and backward of every layer, [layer]: the loads of Balance::time. Whole
/// numbers, so that sums of them, and with them the cut, are the same wherever they are made.
[[nodiscard]] std::vector<double> layer_times(const Model& model, int batch,
                                              const Machine& machine);

/// Cuts by any balance; Balance::time needs a machine, and throws Error(usage) without.
[[nodiscard]] Partition cut_model(const Model& model, const ParallelConfig& parallel, int batch,
                                  const std::optional<Machine>& machine);

/// The roofline of Williams et al. 2009 (doi 10.1145/1498765.1498785): arithmetic and traffic
/// overlap perfectly, and the longer one counts.
[[nodiscard]] double roofline_seconds(const Work& work, const Machine& machine);

/// Seconds of the computing actions of one stage; a load is the first one's. All others cost
/// nothing.
struct StageSeconds {
  double load = 0;
  double copy = 0;
  double forward = 0;
  double backward = 0;
  double accumulate = 0;
  double measure = 0;
  double update = 0;

  [[nodiscard]] double of(ActionKind kind) const;
};

/// The sum over layers of their rooflines, [stage].
[[nodiscard]] std::vector<StageSeconds> stage_seconds(const std::vector<StageCosts>& costs,
                                                      const Machine& machine);

/// The same for the simulator, on any device. What is about one of the `pieces` of a stage,
/// [stage], takes its share.
[[nodiscard]] std::function<double(int, const Action&)> action_seconds(
    std::vector<StageSeconds> stages, const std::vector<std::vector<PieceBytes>>& pieces = {});

}  // namespace carousel
