// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/freeze.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/base/text.hpp"
#include "core/model/op.hpp"

namespace carousel {
namespace {

/// What is left of backward: the gradients of inputs, where something before them learns, and of
/// parameters that learn.
void set_costs(Model& model) {
  const std::vector<bool> learns = learning_layers(model);
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    LayerSpec& layer = model.layers[l];
    if (layer.is_loss()) continue;
    const bool before = std::ranges::any_of(layer.inputs, [&](const LayerInput& input) {
      return input.layer >= 0 && learns[static_cast<std::size_t>(input.layer)];
    });
    if (!learns[l]) {
      layer.backward_flops = 0;
    } else if (!before && layer.backward_flops > 0) {
      layer.backward_flops = inferred(model, layer, false).backward_flops;
    } else if (layer.is_frozen()) {
      const double of_both = inferred(model, layer, true).backward_flops;
      const double of_parameters = inferred(model, layer, false).backward_flops;
      if (of_both > of_parameters) layer.backward_flops = of_both - of_parameters;
    }
  }
}

}  // namespace

void freeze(Model& model, const std::vector<std::string>& patterns) {
  if (patterns.empty()) return;
  std::vector<bool> used(patterns.size(), false);
  for (LayerSpec& layer : model.layers) {
    for (ParameterSpec& parameter : layer.parameters) {
      for (std::size_t k = 0; k < patterns.size(); ++k) {
        if (!matches(parameter.name, patterns[k])) continue;
        used[k] = parameter.frozen = true;
      }
    }
    const auto learned = std::ranges::find_if_not(layer.parameters, &ParameterSpec::frozen);
    const auto frozen = std::ranges::find_if(layer.parameters, &ParameterSpec::frozen);
    if (learned != layer.parameters.end() && frozen != layer.parameters.end())
      fail(ExitCode::usage,
           "train.freeze: {} matches and {} does not; a layer is frozen whole or not at all",
           frozen->name, learned->name);
  }
  if (const auto idle = std::ranges::find(used, false); idle != used.end())
    fail(ExitCode::usage, "train.freeze: '{}' matches no parameter of {}",
         patterns[idle - used.begin()], model.name);
  if (model.learned_size() == 0)
    fail(ExitCode::usage, "train.freeze: nothing of {} would learn", model.name);
  set_costs(model);
}

}  // namespace carousel
