// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/serial_trainer.hpp"

#include "core/base/check.hpp"

namespace carousel::reference {
namespace {

/// The weight and the bias of a linear layer, copied out of the parameters of the model.
struct LinearParameters {
  Numbers weight;
  Numbers bias;
};

LinearParameters linear_parameters(const LayerSpec& layer, const Numbers& all, std::int64_t at) {
  const std::int64_t weights = layer.parameters.at(0).size();
  const std::int64_t biases = layer.parameters.at(1).size();
  return {{all.begin() + at, all.begin() + at + weights},
          {all.begin() + at + weights, all.begin() + at + weights + biases}};
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

ModelGradient gradient_of(const Model& model, const Numbers& parameters, const MicroBatch& batch) {
  const auto n = static_cast<int>(batch.labels.size());
  ModelGradient result;
  result.gradient.resize(parameters.size());

  std::vector<Numbers> inputs;  // of every layer
  Numbers x = batch.images;
  std::int64_t at = 0;
  for (const LayerSpec& layer : model.layers) {
    inputs.push_back(x);
    if (layer.kind == LayerKind::linear) {
      const LinearParameters p = linear_parameters(layer, parameters, at);
      x = linear(x, p.weight, p.bias, n);
    } else if (layer.kind == LayerKind::relu) {
      x = relu(x);
    }
    at += layer.parameter_size();
  }
  result.logits = x;
  const Loss loss = softmax_cross_entropy(x, batch.labels);
  result.loss = loss.mean;

  Numbers d = softmax_cross_entropy_gradient(loss.probabilities, batch.labels);
  for (std::size_t l = model.layers.size(); l-- > 0;) {
    const LayerSpec& layer = model.layers[l];
    at -= layer.parameter_size();
    if (layer.kind == LayerKind::relu) {
      d = relu_gradient(relu(inputs[l]), d);
    } else if (layer.kind == LayerKind::linear) {
      const LinearParameters p = linear_parameters(layer, parameters, at);
      const LinearGradients gradients = linear_gradients(inputs[l], p.weight, d, n);
      std::copy(gradients.d_w.begin(), gradients.d_w.end(), result.gradient.begin() + at);
      std::copy(gradients.d_b.begin(), gradients.d_b.end(),
                result.gradient.begin() + at + static_cast<std::int64_t>(p.weight.size()));
      d = gradients.d_x;
    }
  }
  return result;
}

void sgd(const OptimizerConfig& config, double learning_rate, const Numbers& gradient,
         Numbers& velocity, Numbers& parameters) {
  const bool first = velocity.empty();
  velocity.resize(parameters.size());
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    double d = gradient[k] + config.weight_decay * parameters[k];
    if (config.momentum != 0) {
      const double v = first ? d : config.momentum * velocity[k] + (1 - config.dampening) * d;
      velocity[k] = static_cast<real>(v);
      d = config.nesterov ? d + config.momentum * v : v;
    }
    parameters[k] = static_cast<real>(parameters[k] - learning_rate * d);
  }
}

SerialResult train_serially(const SerialTraining& training, const Numbers& initial,
                            std::int64_t steps) {
  const CyclicRule& rule = training.rule;
  CAROUSEL_CHECK(static_cast<int>(training.stage_begin.size()) == rule.stages,
                 "{} stage boundaries, S = {}", training.stage_begin.size(), rule.stages);
  // The stage of every parameter.
  std::vector<int> stage_of;
  int stage = -1;
  for (std::size_t l = 0; l < training.model.layers.size(); ++l) {
    while (stage + 1 < rule.stages && training.stage_begin[stage + 1] == static_cast<int>(l))
      ++stage;
    stage_of.insert(stage_of.end(), training.model.layers[l].parameter_size(), stage);
  }

  SerialResult result{{initial}, {}};
  Numbers current = initial;   // theta_t
  Numbers previous = initial;  // theta_{t-1}
  Numbers velocity;
  for (std::int64_t t = 0; t < steps; ++t) {
    Numbers sum(initial.size());
    double loss = 0;
    for (int i = 0; i < rule.micro_batches; ++i) {
      Numbers read(initial.size());  // theta_hat_{i,t}
      for (std::size_t k = 0; k < read.size(); ++k)
        read[k] = rule.reads_new(i, stage_of[k]) ? current[k] : previous[k];
      const ModelGradient g = gradient_of(training.model, read, training.micro_batch(t, i));
      for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += g.gradient[k];
      loss += g.loss / rule.micro_batches;
    }
    for (real& value : sum) value *= real{1} / static_cast<real>(rule.micro_batches);
    previous = current;
    sgd(training.optimizer, training.learning_rate(t), sum, velocity, current);
    result.parameters.push_back(current);
    result.losses.push_back(loss);
  }
  return result;
}

}  // namespace carousel::reference
