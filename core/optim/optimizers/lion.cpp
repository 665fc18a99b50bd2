// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/optim/optimizers/lion.hpp"

namespace carousel {

std::vector<Row<Lion>> Lion::rows() {
  return {
      key("beta1", &Lion::beta1, below_one,
          "Share of the mean in the direction of a step; the gradient has the rest."),
      key("beta2", &Lion::beta2, below_one, "Share of the mean that is kept from step to step.")};
}

}  // namespace carousel
