// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a network is trained for: which loss, what it is told, and what is reported beside it.

#include <string>
#include <vector>

#include "core/model/arguments.hpp"
#include "core/model/metric.hpp"
#include "core/model/target.hpp"

namespace carousel {

struct Op;

template <class Struct>
struct Row;

/// The `[task]` table of a deck.
struct TaskConfig {
  std::string loss = "cross-entropy";     // as LossFacts name it
  std::vector<std::string> metrics = {};  // the first one says what is best; none: the loss's own
  std::vector<double> weights = {};       // of the classes; none: all alike
  Arguments arguments = {};               // of the loss; what is not given has its default

  [[nodiscard]] static std::vector<Row<TaskConfig>> rows();
  /// Error(usage) for metrics that are named twice, and weights of nothing.
  void check() const;
};

/// Classes that weights may be given for: kernels are told them all at once.
inline constexpr int most_weights = 256;

/// The kind of layer that computes a loss. Error(usage) where none has the name.
[[nodiscard]] const Op& loss_named(std::string_view name);
/// The names of losses that compare with such targets, for people: "mse, huber".
[[nodiscard]] std::string losses_for(TargetKind kind);
/// What is reported beside the loss.
[[nodiscard]] std::vector<const Metric*> metrics_of(const TaskConfig& task,
                                                    const TargetSpec& target);

}  // namespace carousel
