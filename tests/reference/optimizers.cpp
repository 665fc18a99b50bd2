// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/optimizers.hpp"

#include <cmath>

namespace carousel::reference {

void update(const Sgd& sgd, const OptimizerConfig& config, double rate, const Numbers& gradient,
            Kept& kept, Numbers& parameters) {
  const bool first = kept.of.empty();
  if (first) kept.of.assign(1, Numbers(parameters.size()));
  Numbers& velocity = kept.of[0];
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    double d = gradient[k] + config.weight_decay * parameters[k];
    if (sgd.momentum != 0) {
      const double v = first ? d : sgd.momentum * velocity[k] + (1 - sgd.dampening) * d;
      velocity[k] = static_cast<real>(v);
      d = sgd.nesterov ? d + sgd.momentum * v : v;
    }
    parameters[k] = static_cast<real>(parameters[k] - rate * d);
  }
}

void update(const AdamW& adamw, const OptimizerConfig& config, double rate, const Numbers& gradient,
            Kept& kept, Numbers& parameters) {
  if (kept.of.empty()) kept.of.assign(2, Numbers(parameters.size()));
  const int t = ++kept.updates;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const double g = gradient[k];
    const double m = adamw.beta1 * kept.of[0][k] + (1 - adamw.beta1) * g;
    const double v = adamw.beta2 * kept.of[1][k] + (1 - adamw.beta2) * g * g;
    kept.of[0][k] = static_cast<real>(m);
    kept.of[1][k] = static_cast<real>(v);
    const double corrected_m = m / (1 - std::pow(adamw.beta1, t));
    const double corrected_v = v / (1 - std::pow(adamw.beta2, t));
    const double decayed = parameters[k] * (1 - rate * config.weight_decay);
    parameters[k] =
        static_cast<real>(decayed - rate * corrected_m / (std::sqrt(corrected_v) + adamw.epsilon));
  }
}

void update(const Lion& lion, const OptimizerConfig& config, double rate, const Numbers& gradient,
            Kept& kept, Numbers& parameters) {
  if (kept.of.empty()) kept.of.assign(1, Numbers(parameters.size()));
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const double g = gradient[k];
    const double m = kept.of[0][k];
    const double c = lion.beta1 * m + (1 - lion.beta1) * g;
    const double sign = c > 0 ? 1 : c < 0 ? -1 : 0;
    parameters[k] =
        static_cast<real>(parameters[k] - rate * (sign + config.weight_decay * parameters[k]));
    kept.of[0][k] = static_cast<real>(lion.beta2 * m + (1 - lion.beta2) * g);
  }
}

void update(const Lamb& lamb, const OptimizerConfig& config, double rate, const Numbers& gradient,
            Kept& kept, Numbers& parameters) {
  if (kept.of.empty()) kept.of.assign(2, Numbers(parameters.size()));
  const int t = ++kept.updates;
  std::vector<double> direction(parameters.size());
  double parameter_squares = 0;
  double direction_squares = 0;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const double g = gradient[k];
    const double m = lamb.beta1 * kept.of[0][k] + (1 - lamb.beta1) * g;
    const double v = lamb.beta2 * kept.of[1][k] + (1 - lamb.beta2) * g * g;
    kept.of[0][k] = static_cast<real>(m);
    kept.of[1][k] = static_cast<real>(v);
    const double corrected_m = m / (1 - std::pow(lamb.beta1, t));
    const double corrected_v = v / (1 - std::pow(lamb.beta2, t));
    direction[k] =
        corrected_m / (std::sqrt(corrected_v) + lamb.epsilon) + config.weight_decay * parameters[k];
    parameter_squares += static_cast<double>(parameters[k]) * parameters[k];
    direction_squares += direction[k] * direction[k];
  }
  const bool both = parameter_squares > 0 && direction_squares > 0;
  const double trust = both ? std::sqrt(parameter_squares / direction_squares) : 1;
  for (std::size_t k = 0; k < parameters.size(); ++k)
    parameters[k] = static_cast<real>(parameters[k] - rate * trust * direction[k]);
}

}  // namespace carousel::reference
