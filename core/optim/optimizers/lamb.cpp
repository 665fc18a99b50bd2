// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/optim/optimizers/lamb.hpp"

namespace carousel {

std::vector<Row<Lamb>> Lamb::rows() {
  return {key("beta1", &Lamb::beta1, below_one,
              "Share of the mean of gradients that is kept from step to step."),
          key("beta2", &Lamb::beta2, below_one,
              "Share of the mean of their squares that is kept from step to step."),
          key("epsilon", &Lamb::epsilon, at_least(1e-37),  // not 0 as a float
              "What is added to the root of that mean, by which gradients are divided.")};
}

}  // namespace carousel
