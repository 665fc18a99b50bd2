// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/optim/optimizers/sgd.hpp"

#include "core/base/check.hpp"

namespace carousel {

std::vector<Row<Sgd>> Sgd::rows() {
  return {key("momentum", &Sgd::momentum, zero_to_one,
              "Share of its velocity that a parameter keeps from step to step."),
          key("dampening", &Sgd::dampening, zero_to_one,
              "Share of a gradient that does not enter the velocity."),
          key("nesterov", &Sgd::nesterov, anything,
              "Nesterov's momentum. It needs momentum above 0 and dampening = 0.")};
}

std::vector<NoEffect> Sgd::without_effect() const {
  std::vector<NoEffect> found;
  const std::vector<std::string> momentum_key = {"train.optimizer.momentum"};
  if (dampening > 0 && momentum == 0)
    found.push_back({"train.optimizer.dampening", momentum_key, "it needs momentum"});
  if (nesterov && momentum == 0)
    found.push_back({"train.optimizer.nesterov", momentum_key, "it needs momentum"});
  return found;
}

void Sgd::check() const {
  if (nesterov && dampening != 0)
    fail(ExitCode::usage, "train.optimizer.nesterov = true needs train.optimizer.dampening = 0");
}

std::vector<std::string> Sgd::states() const {
  if (momentum == 0) return {};
  return {"momentum"};
}

}  // namespace carousel
