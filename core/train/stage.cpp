// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/stage.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/base/copy.hpp"

namespace carousel {
namespace {

const real* numbers(const std::byte* bytes) {
  return reinterpret_cast<const real*>(bytes);
}

LayerWork work_of(const LayerSpec& spec, int samples) {
  constexpr double number = sizeof(real);
  const double n = samples;
  auto tensors = static_cast<double>(spec.output.size());
  for (const LayerInput& input : spec.inputs) tensors += static_cast<double>(input.shape.size());
  const double bytes = number * (n * tensors + static_cast<double>(spec.parameter_size()));
  return {.forward = {n * spec.forward_flops, bytes},
          .backward = {n * spec.backward_flops, 2 * bytes}};
}

}  // namespace

Stage::Stage(const Model& model, std::span<const StageMemory> stages, int index, int samples,
             const BufferCounts& counts, const LayerFactory& factory, const Engine& engine)
    : memory_(stages[index]) {
  for (int k = 0; k < memory_.layers; ++k) {
    specs_.push_back(model.layers[memory_.first + k]);
    layers_.push_back(factory(specs_.back(), samples, engine));
    work_.push_back(work_of(specs_.back(), samples));
  }
  if (index == counts.last_stage && index + 1 < std::ssize(stages))
    pass_by(stages[index + 1], index);
  if (counts.lands()) find_landings(stages[counts.first_stage], counts.first_stage);
}

/// What was made on other devices is read where it landed.
void Stage::find_landings(const StageMemory& first, int first_stage) {
  const auto land = [&](Place& place) {
    const bool elsewhere = place.region == Region::images ||
                           (place.region == Region::frame && place.stage < first_stage);
    if (!elsewhere) return;
    const auto found = std::ranges::find(first.arriving, place, &CrossingTensor::made);
    CAROUSEL_CHECK(found != first.arriving.end(), "an input of stage {} never lands", first_stage);
    place = {Region::landing, found->offset};
  };
  for (LayerPlaces& places : memory_.places) {
    for (Place& input : places.inputs) land(input);
    land(places.output);  // of a layer in place
  }
  for (PassedTensor& passed : passing_) land(passed.from);
}

void Stage::pass_by(const StageMemory& next, int index) {
  for (const CrossingTensor& tensor : next.arriving) {
    if (tensor.made.region == Region::frame && tensor.made.stage == index) continue;
    passing_.push_back({tensor.made,
                        {Region::frame, memory_.leaving_offset + tensor.offset, index},
                        tensor.bytes});
  }
}

real* Stage::resolve(const Place& place, const StageArguments& arguments) {
  switch (place.region) {
    case Region::absent:
      return nullptr;
    // A layer in place on the images changes only their shape.
    case Region::images:
      return const_cast<real*>(arguments.images);
    case Region::frame:
      return reinterpret_cast<real*>(arguments.frames[place.stage] + place.offset);
    case Region::landing:
      return const_cast<real*>(reinterpret_cast<const real*>(arguments.landing + place.offset));
    case Region::scratch:
      return reinterpret_cast<real*>(arguments.scratch + place.offset);
    case Region::d_output:
      return reinterpret_cast<real*>(arguments.d_output + place.offset);
    case Region::d_input:
      return reinterpret_cast<real*>(arguments.d_input + place.offset);
  }
  return nullptr;
}

void Stage::forward(const Workers& workers, const StageArguments& arguments) {
  for (const PassedTensor& passed : passing_) {
    copy<MemorySpace, MemorySpace>(workers.all(), resolve(passed.to, arguments),
                                   resolve(passed.from, arguments),
                                   static_cast<std::size_t>(passed.bytes));
  }
  run_layers(workers, arguments);
}

const real* Stage::parameters(int k, const StageArguments& arguments) const {
  return numbers((specs_[k].is_frozen() ? arguments.frozen : arguments.parameters) +
                 memory_.stored_offset[k]);
}

void Stage::run_layers(const Workers& workers, const StageArguments& arguments) {
  for (int k = 0; k < memory_.layers; ++k)
    run_layer(workers, k, memory_.places[k].output, false, arguments);
}

void Stage::run_layer(const Workers& workers, int k, const Place& output, bool again,
                      const StageArguments& arguments) {
  const int n = arguments.samples;
  const auto at = [&](const Place& place) { return resolve(place, arguments); };
  const LayerPlaces& places = memory_.places[k];
  const LayerSpec& spec = specs_[k];
  layers_[k]->forward(workers.of(work_[k].forward),
                      {.input = {at(places.inputs[0]), n, spec.input()},
                       .output = {at(output), n, spec.output},
                       .parameters = parameters(k, arguments),
                       .targets = arguments.targets,
                       .report = arguments.report,
                       .chosen = arguments.chosen,
                       .outputs = arguments.outputs,
                       .second = {at(places.inputs[1]), n, spec.inputs.back().shape},
                       .saved = reinterpret_cast<std::byte*>(at(places.saved)),
                       .buffers = numbers(arguments.parameters + memory_.stored_buffer_offset[k]),
                       .training = arguments.training,
                       .again = again,
                       .draw = arguments.draw});
}

void Stage::backward(const Workers& workers, const StageArguments& arguments) {
  const int n = arguments.samples;
  const auto at = [&](const Place& place) { return resolve(place, arguments); };
  const auto bytes = [&](const Place& place) { return reinterpret_cast<std::byte*>(at(place)); };
  for (const PassedTensor& passed : memory_.passed) {
    copy<MemorySpace, MemorySpace>(workers.all(), at(passed.to), at(passed.from),
                                   static_cast<std::size_t>(passed.bytes));
  }
  // What leaves the stage and what is reported get the same bits again.
  if (memory_.recomputes) run_layers(workers, arguments);
  for (int k = memory_.layers - 1; k >= 0; --k) {
    const LayerPlaces& places = memory_.places[k];
    const LayerSpec& spec = specs_[k];
    // Where nothing learns, at the model's beginning, nobody needs gradients.
    if (places.d_output.region != Region::absent || spec.is_loss()) {
      const Place& input = places.again.region != Region::absent ? places.again : places.inputs[0];
      if (places.makes_again >= 0)
        run_layer(workers, places.makes_again, places.again, true, arguments);
      layers_[k]->backward(
          workers.of(work_[k].backward),
          {.input = {at(input), n, spec.input()},
           .output = {at(places.output), n, spec.output},
           .d_output = {at(places.d_output), n, spec.output},
           .d_input = {at(places.d_inputs[0]), n, spec.input()},
           .parameters = parameters(k, arguments),
           .d_parameters = spec.is_frozen() ? at(places.dropped)
                                            : arguments.d_parameters + memory_.parameter_offset[k],
           .targets = arguments.targets,
           .d_second = {at(places.d_inputs[1]), n, spec.inputs.back().shape},
           .adds_input = places.adds[0],
           .adds_second = places.adds[1],
           .saved = bytes(places.saved),
           .statistics = arguments.d_parameters + memory_.buffer_offset[k],
           .draw = arguments.draw,
           .second = {at(places.inputs[1]), n, spec.inputs.back().shape}});
    }
  }
}

std::uint64_t Stage::slow_gradients() const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(layers_, [](const auto& layer) { return layer->has_slow_gradient(); }));
}

}  // namespace carousel
