// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/stage.hpp"

#include "core/base/check.hpp"

namespace carousel {

Stage::Stage(const Model& model, const StageMemory& memory, const LayerFactory& factory)
    : memory_(memory) {
  for (int k = 0; k < memory_.layers; ++k) {
    specs_.push_back(model.layers[memory_.first + k]);
    layers_.push_back(factory(specs_.back()));
  }
}

real* Stage::resolve(const Place& place, const StageArguments& arguments) {
  switch (place.region) {
    case Region::absent:
      return nullptr;
    // A layer in place on the images changes only their shape.
    case Region::stage_input:
      return const_cast<real*>(arguments.input);
    case Region::frame:
      return reinterpret_cast<real*>(arguments.frame + place.offset);
    case Region::scratch:
      return reinterpret_cast<real*>(arguments.scratch + place.offset);
    case Region::d_output:
      return arguments.d_output;
    case Region::d_input:
      return arguments.d_input;
  }
  return nullptr;
}

const real* Stage::output(const std::byte* frame) const {
  const Place& place = memory_.outputs.back();
  CAROUSEL_CHECK(place.region == Region::frame, "stage output is not in its frame");
  return reinterpret_cast<const real*>(frame + place.offset);
}

void Stage::forward(const ExecutionSpace& exec, const StageArguments& arguments,
                    Transport& transport) {
  const int n = arguments.samples;
  const real* input = arguments.input;
  for (int k = 0; k < memory_.layers; ++k) {
    real* output = resolve(memory_.outputs[k], arguments);
    layers_[k]->forward(exec, {.input = {input, n, specs_[k].input},
                               .output = {output, n, specs_[k].output},
                               .parameters = arguments.parameters + memory_.parameter_offset[k],
                               .labels = arguments.labels,
                               .metrics = arguments.metrics});
    input = output;
    transport.progress();
  }
}

void Stage::backward(const ExecutionSpace& exec, const StageArguments& arguments,
                     Transport& transport) {
  const int n = arguments.samples;
  real* d_output = arguments.d_output;
  for (int k = memory_.layers - 1; k >= 0; --k) {
    const real* input = k == 0 ? arguments.input : resolve(memory_.outputs[k - 1], arguments);
    real* d_input = resolve(memory_.d_inputs[k], arguments);
    // Below the first parameters nobody needs gradients.
    const bool needed = d_input != nullptr || !specs_[k].parameters.empty();
    if (needed) {
      layers_[k]->backward(exec,
                           {.input = {input, n, specs_[k].input},
                            .output = {resolve(memory_.outputs[k], arguments), n, specs_[k].output},
                            .d_output = {d_output, n, specs_[k].output},
                            .d_input = {d_input, n, specs_[k].input},
                            .parameters = arguments.parameters + memory_.parameter_offset[k],
                            .d_parameters = arguments.d_parameters + memory_.parameter_offset[k],
                            .labels = arguments.labels});
    }
    d_output = d_input;
    transport.progress();
  }
}

}  // namespace carousel
