// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a model starts from, flat and in layer order, as the engine's first values. It knows no
// stages and no device.

#include "core/train/initialise.hpp"
#include "tests/reference/serial_trainer.hpp"

namespace carousel::reference {

[[nodiscard]] inline State initial_state(const Model& model, std::uint64_t seed) {
  const auto append = [seed](Numbers& all, const std::vector<ParameterSpec>& tensors) {
    for (const ParameterSpec& tensor : tensors) {
      all.resize(all.size() + tensor.size());
      initialise(tensor, seed, std::span(all).last(tensor.size()));
    }
  };
  State state;
  for (const LayerSpec& layer : model.layers) {
    append(state.parameters, layer.parameters);
    append(state.buffers, layer.buffers);
  }
  return state;
}

}  // namespace carousel::reference
