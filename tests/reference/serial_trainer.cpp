// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/serial_trainer.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"
#include "tests/reference/optimizers.hpp"

namespace carousel::reference {
namespace {

/// One parameter in the flat vector of the model.
struct Slice {
  std::ptrdiff_t begin = 0;
  std::ptrdiff_t end = 0;
  int stage = 0;
  bool decays = true;

  [[nodiscard]] Numbers of(const Numbers& all) const {
    return {all.begin() + begin, all.begin() + end};
  }
};

std::vector<Slice> slices_of(const SerialTraining& training) {
  std::vector<Slice> slices;
  std::ptrdiff_t at = 0;
  int stage = -1;
  for (std::size_t l = 0; l < training.model.layers.size(); ++l) {
    while (stage + 1 < training.rule.stages &&
           training.stage_begin[stage + 1] == static_cast<int>(l))
      ++stage;
    for (const ParameterSpec& parameter : training.model.layers[l].parameters) {
      const bool decays = training.optimizer.decay_norm_and_bias || parameter.shape.size() > 1;
      slices.push_back({at, at + parameter.size(), stage, decays});
      at = slices.back().end;
    }
  }
  return slices;
}

/// running = 9/10 running + 1/10 of the mean over N micro-batches.
void count(const Numbers& statistics_sum, int micro_batches, Numbers& running) {
  for (std::size_t k = 0; k < running.size(); ++k)
    running[k] = static_cast<real>(0.9 * running[k] + 0.1 * statistics_sum[k] / micro_batches);
}

void accumulate(Numbers& sum, const Numbers& terms) {
  sum = sum.empty() ? terms : add(sum, terms);
}

/// torch.nn.utils.clip_grad_norm_ of all parameters, or of those of each stage.
void clip(const SerialTraining& training, const std::vector<Slice>& slices, Numbers& gradient) {
  const bool together = training.optimizer.clip_norm > 0;
  const double limit = together ? training.optimizer.clip_norm : training.optimizer.clip_stage_norm;
  if (limit == 0) return;
  std::vector<double> squares(static_cast<std::size_t>(training.rule.stages));
  const auto square = [&](const Slice& slice) -> double& {
    return squares[together ? 0 : static_cast<std::size_t>(slice.stage)];
  };
  for (const Slice& slice : slices) {
    for (const real value : slice.of(gradient)) square(slice) += static_cast<double>(value) * value;
  }
  for (const Slice& slice : slices) {
    const double share = limit / (std::sqrt(square(slice)) + 1e-6);
    if (share >= 1) continue;
    for (std::ptrdiff_t k = slice.begin; k < slice.end; ++k)
      gradient[static_cast<std::size_t>(k)] *= static_cast<real>(share);
  }
}

}  // namespace

bool CyclicRule::reads_new(int i, int j) const {
  if (!cyclic) return true;
  // Micro-batch i starts 2 floor(S i / N) time steps late; its forward of stage j follows j later.
  // The backward of stage j by the last micro-batch of the step before, 2 S earlier, ends 2 S - j
  // time steps after that one's start; two time steps per unit of slack are given to messages.
  const auto start = [&](int k) { return 2 * (stages * k / micro_batches); };
  const int reads = start(i) + j;
  const int complete = start(micro_batches - 1) - 2 * stages + (2 * stages - j);
  return reads >= complete + 2 * slack;
}

SerialResult train_serially(const SerialTraining& training, const State& initial,
                            std::int64_t steps) {
  const CyclicRule& rule = training.rule;
  CAROUSEL_CHECK(static_cast<int>(training.stage_begin.size()) == rule.stages,
                 "{} stage boundaries, S = {}", training.stage_begin.size(), rule.stages);
  const std::vector<Slice> slices = slices_of(training);
  std::vector<Kept> kept(slices.size());

  SerialResult result{{initial}, {}, {}};
  State current = initial;                // theta_t
  Numbers previous = initial.parameters;  // theta_{t-1}
  for (std::int64_t t = 0; t < steps; ++t) {
    Numbers gradient;
    Numbers statistics;
    double loss = 0;
    double margin = 1;
    for (int i = 0; i < rule.micro_batches; ++i) {
      Numbers read = previous;  // theta_hat_{i,t}
      for (const Slice& slice : slices) {
        if (rule.reads_new(i, slice.stage))
          std::ranges::copy(slice.of(current.parameters), read.begin() + slice.begin);
      }
      const ModelGradient g = training.gradient
                                  ? ModelGradient{.gradient = training.gradient(read)}
                                  : gradient_of(training.model, read, training.micro_batch(t, i));
      accumulate(gradient, g.gradient);
      accumulate(statistics, g.statistics);
      loss += g.loss / rule.micro_batches;
      margin = std::min(margin, g.margin);
    }
    for (real& value : gradient) value *= real{1} / static_cast<real>(rule.micro_batches);
    clip(training, slices, gradient);
    previous = current.parameters;
    for (std::size_t k = 0; k < slices.size(); ++k) {
      OptimizerConfig optimizer = training.optimizer;
      if (!slices[k].decays) optimizer.weight_decay = 0;
      Numbers theta = slices[k].of(previous);
      const Numbers g = slices[k].of(gradient);
      update(optimizer, training.learning_rate(t), g, kept[k], theta);
      std::ranges::copy(theta, current.parameters.begin() + slices[k].begin);
    }
    count(statistics, rule.micro_batches, current.buffers);
    result.states.push_back(current);
    result.losses.push_back(loss);
    result.margins.push_back(margin);
    if (!training.given.empty()) current = training.given.at(t);
  }
  return result;
}

}  // namespace carousel::reference
