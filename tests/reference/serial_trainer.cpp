// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/serial_trainer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

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
      if (parameter.frozen) {
        at += parameter.size();
        continue;
      }
      const bool decays = training.optimizer.decay_norm_and_bias || parameter.shape.size() > 1;
      slices.push_back({at, at + parameter.size(), stage, decays});
      at = slices.back().end;
    }
  }
  return slices;
}

/// running = (1 - m) running + m of the mean over N micro-batches, each buffer with its own m.
void count(const Model& model, const Numbers& statistics_sum, int micro_batches, Numbers& running) {
  std::size_t at = 0;
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& buffer : layer.buffers) {
      for (const std::size_t end = at + buffer.size(); at < end; ++at)
        running[at] = static_cast<real>((1 - buffer.momentum) * running[at] +
                                        buffer.momentum * statistics_sum[at] / micro_batches);
    }
  }
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

int CyclicRule::start(int worker) const {
  // Every slot has 2 k time steps more than the one before. Those that would then be at the stage
  // of an earlier one wait for a stage that nobody is at: first even numbers of stages, then odd
  // ones back.
  const int workers = micro_batches / passes;
  const int slot = stages * worker / workers;
  int blocks = 1;  // of slots that are all at different stages
  for (int d = 2; d <= std::min(passes, stages); ++d) {
    if (passes % d == 0 && stages % d == 0) blocks = d;
  }
  std::vector<int> waits;
  for (int w = 0; w < blocks; w += 2) waits.push_back(w);
  for (int w = blocks - 1 - blocks % 2; w > 0; w -= 2) waits.push_back(w);
  return 2 * (passes * slot + waits.at(slot / (stages / blocks)));
}

bool CyclicRule::reads_new(int i, int j) const {
  if (!cyclic) return true;
  // The forward of stage j comes j time steps behind the start of its pass, of 2 S each. The
  // backward of stage j in the last pass of the last worker of the step before ends 2 S - j time
  // steps behind the start of that pass; two time steps per unit of slack are given to messages.
  const int step = 2 * stages * passes;
  const int reads = start(i / passes) + i % passes * 2 * stages + j;
  const int complete =
      start(micro_batches / passes - 1) + (passes - 1) * 2 * stages + (2 * stages - j) - step;
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
  Numbers before = initial.parameters;    // theta_{t-2}
  for (std::int64_t t = 0; t < steps; ++t) {
    Numbers gradient;
    Numbers statistics;
    Numbers of_worker;
    Numbers statistics_of_worker;
    double loss = 0;
    double margin = 1;
    for (int i = 0; i < rule.micro_batches; ++i) {
      Numbers read = previous;  // theta_hat_{i,t}
      for (std::size_t k = 0; rule.predict > 0 && k < read.size(); ++k)
        read[k] += static_cast<real>(rule.predict) * (previous[k] - before[k]);
      for (const Slice& slice : slices) {
        if (rule.reads_new(i, slice.stage))
          std::ranges::copy(slice.of(current.parameters), read.begin() + slice.begin);
      }
      const ModelGradient g = training.gradient
                                  ? ModelGradient{.gradient = training.gradient(read)}
                                  : gradient_of(training.model, read, training.micro_batch(t, i));
      accumulate(of_worker, g.gradient);
      accumulate(statistics_of_worker, g.statistics);
      if (i % rule.passes == rule.passes - 1) {
        accumulate(gradient, std::exchange(of_worker, {}));
        accumulate(statistics, std::exchange(statistics_of_worker, {}));
      }
      loss += g.loss / rule.micro_batches;
      margin = std::min(margin, g.margin);
    }
    for (real& value : gradient) value *= real{1} / static_cast<real>(rule.micro_batches);
    clip(training, slices, gradient);
    before = std::exchange(previous, current.parameters);
    for (std::size_t k = 0; k < slices.size(); ++k) {
      OptimizerConfig optimizer = training.optimizer;
      if (!slices[k].decays) optimizer.weight_decay = 0;
      Numbers theta = slices[k].of(previous);
      const Numbers g = slices[k].of(gradient);
      update(optimizer, training.learning_rate(t), g, kept[k], theta);
      std::ranges::copy(theta, current.parameters.begin() + slices[k].begin);
    }
    count(training.model, statistics, rule.micro_batches, current.buffers);
    result.states.push_back(current);
    result.losses.push_back(loss);
    result.margins.push_back(margin);
    if (!training.given.empty()) current = training.given.at(t);
  }
  return result;
}

}  // namespace carousel::reference
