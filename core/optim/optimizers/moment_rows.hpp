// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The keys of optimizers that keep means of gradients and of their squares, as Adam does.

#include <vector>

#include "core/deck/row.hpp"

namespace carousel {

/// Of an optimizer with beta1, beta2 and epsilon.
template <class Kind>
[[nodiscard]] std::vector<Row<Kind>> moment_rows() {
  return {key("beta1", &Kind::beta1, below_one,
              "Share of the mean of gradients that is kept from step to step."),
          key("beta2", &Kind::beta2, below_one,
              "Share of the mean of their squares that is kept from step to step."),
          key("epsilon", &Kind::epsilon, at_least(1e-37),  // not 0 as a float
              "What is added to the root of that mean, by which gradients are divided.")};
}

}  // namespace carousel
