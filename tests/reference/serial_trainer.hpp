// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The oracle of all rules: one micro-batch after the other, in plain loops, with both versions of
// the parameters kept whole. It shares no code with the planner, the executor or the kernels.

#include <cstdint>
#include <functional>
#include <vector>

#include "core/model/model.hpp"
#include "core/train/config.hpp"
#include "tests/reference/model_gradient.hpp"

namespace carousel::reference {

/// An update rule, as the delays of section 3 of the paper (arXiv 2403.08837) state it.
struct CyclicRule {
  bool cyclic = false;    // false: dp, every micro-batch reads theta_t
  int micro_batches = 1;  // N
  int stages = 1;         // S
  int slack = 0;          // 0: v2 ... S passes: v1
  int passes = 1;         // k, micro-batches that a worker takes one after the other
  // kappa: who reads theta_{t-1} gets theta_{t-1} + kappa (theta_{t-1} - theta_{t-2}).
  double predict = 0;

  /// Time steps by which a worker starts late.
  [[nodiscard]] int start(int worker) const;
  /// Whether micro-batch i of step t finds theta_t of stage j complete when its forward starts.
  [[nodiscard]] bool reads_new(int i, int j) const;
};

/// All that a model has learned or counted, in layer order.
struct State {
  Numbers parameters;  // theta
  Numbers buffers;     // running statistics
};

struct SerialTraining {
  Model model;
  std::vector<int> stage_begin;  // first layer of every stage, S numbers
  CyclicRule rule;
  OptimizerConfig optimizer;
  std::function<double(std::int64_t t)> learning_rate;
  std::function<MicroBatch(std::int64_t t, int i)> micro_batch;
  std::vector<State> given = {};  // [t] what step t + 1 starts from; empty: what step t has made
  std::function<Numbers(const Numbers& theta)> gradient = {};  // of another loss than the model's
};

struct SerialResult {
  std::vector<State> states;    // theta_0 .. theta_steps
  std::vector<double> losses;   // mean over the micro-batches of every step
  std::vector<double> margins;  // of every step; see ModelGradient
};

/// Trains from theta_{-2} = theta_{-1} = theta_0 = `initial`. Running statistics learn the mean
/// over the micro-batches of a step of their batch statistics, whatever parameters these have read.
[[nodiscard]] SerialResult train_serially(const SerialTraining& training, const State& initial,
                                          std::int64_t steps);

}  // namespace carousel::reference
