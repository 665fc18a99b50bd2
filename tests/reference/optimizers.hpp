// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One update of one tensor in plain loops of doubles, as PyTorch's documentation or the paper of an
// optimizer writes it. It shares no code with the kernels. An optimizer without one here does not
// compile in tests.

#include <vector>

#include "core/base/real.hpp"
#include "core/optim/optimizer.hpp"

namespace carousel::reference {

using Numbers = std::vector<real>;

/// What an optimizer keeps of one tensor; empty before the first update.
struct Kept {
  std::vector<Numbers> of;
  int updates = 0;
};

/// `config` has the weight decay of the tensor.
void update(const Sgd& sgd, const OptimizerConfig& config, double rate, const Numbers& gradient,
            Kept& kept, Numbers& parameters);
void update(const AdamW& adamw, const OptimizerConfig& config, double rate, const Numbers& gradient,
            Kept& kept, Numbers& parameters);
void update(const Lion& lion, const OptimizerConfig& config, double rate, const Numbers& gradient,
            Kept& kept, Numbers& parameters);
void update(const Lamb& lamb, const OptimizerConfig& config, double rate, const Numbers& gradient,
            Kept& kept, Numbers& parameters);

/// By whatever optimizer it is.
inline void update(const OptimizerConfig& config, double rate, const Numbers& gradient, Kept& kept,
                   Numbers& parameters) {
  std::visit([&](const auto& kind) { update(kind, config, rate, gradient, kept, parameters); },
             config.kind);
}

}  // namespace carousel::reference
