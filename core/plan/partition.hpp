// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Cuts a model into consecutive stages so that the heaviest stage is as light as possible. Exact,
// not a heuristic; what a stage weighs is the caller's choice of balance.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/model/model.hpp"
#include "core/plan/rule.hpp"

namespace carousel {

/// Stage j is the layers first[j] .. first[j + 1] - 1; first has S + 1 entries.
struct Partition {
  std::vector<int> first;
  std::vector<double> load;  // [S], in the unit of the balance

  [[nodiscard]] int stages() const { return static_cast<int>(first.size()) - 1; }
};

/// Cost of one layer in the unit of `balance`: FLOPs, activation bytes kept, parameters, or one
/// per layer with parameters. Time depends on more than the model; see layer_times.
[[nodiscard]] double layer_load(const Model& model, int layer, Balance balance);

/// Stages that the model can be cut into at most. A layer that works in place stays with the layer
/// before it.
[[nodiscard]] int most_stages(const Model& model);

/// Minimises the largest load over all contiguous cuts, and among those the sum of squared loads;
/// O(S L^2) dynamic programming over L possible cuts. `loads` are those of the layers. Throws
/// Error(usage) when the model has fewer pieces than stages.
[[nodiscard]] Partition partition_model(const Model& model, int stages,
                                        std::span<const double> loads);
[[nodiscard]] Partition partition_model(const Model& model, int stages, Balance balance);

/// A table of stages for people: first layer, parameters, load.
[[nodiscard]] std::string to_string(const Partition& partition, const Model& model);

}  // namespace carousel
