// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The multi-layer perceptron as a model description.

#include "core/base/check.hpp"
#include "core/model/builder.hpp"

namespace carousel {

Model build_mlp(const std::vector<int>& widths, const SampleShape& input, const TargetSpec& target,
                double dropout, const TaskConfig& task) {
  if (widths.size() < 2)
    fail(ExitCode::usage, "model.widths needs at least two numbers, features and classes");
  if (widths.front() != input.size())
    fail(ExitCode::usage, "model.widths starts with {}, but a sample of the data set has {} values",
         widths.front(), input.size());
  if (widths.back() != target.outputs().size())
    fail(ExitCode::usage, "model.widths ends with {}, but the data set has {}", widths.back(),
         to_string(target));

  ModelBuilder builder("mlp", input, target);
  builder.add("flatten");
  // torchvision.ops.MLP is a Sequential of (Linear, ReLU, Dropout) groups: layer l is number 3 l.
  for (std::size_t l = 1; l < widths.size(); ++l) {
    const std::size_t number = 3 * (l - 1);
    LayerSpec& linear =
        builder.add("linear", std::to_string(number), {{"features", 1.0 * widths[l]}});
    linear.parameters[0].initial = kaiming_uniform(widths[l - 1]);
    linear.parameters[1].initial = zeros();
    if (l + 1 == widths.size()) break;
    builder.add("relu", std::to_string(number + 1));
    if (dropout > 0) builder.add("dropout", std::to_string(number + 2), {{"probability", dropout}});
  }
  builder.add_loss(task);
  return builder.model();
}

}  // namespace carousel
