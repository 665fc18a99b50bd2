// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/stage_memory.hpp"

#include <algorithm>
#include <map>

#include "core/base/check.hpp"
#include "core/base/real.hpp"

namespace carousel {
namespace {

constexpr std::int64_t real_bytes = sizeof(real);
constexpr int images = -1;  // as a tensor

/// Memory whose blocks come and go while the layers are walked; a new one takes the first gap.
class Scratch {
 public:
  Place take(std::int64_t bytes) {
    std::int64_t offset = 0;
    for (const auto& [begin, block] : blocks_) {
      if (begin - offset >= bytes) break;
      offset = begin + block.bytes;
    }
    blocks_[offset] = {bytes, 1};
    bytes_ = std::max(bytes_, offset + bytes);
    return {Region::scratch, offset};
  }
  void share(const Place& place) {
    if (place.region == Region::scratch) ++blocks_.at(place.offset).users;
  }
  void release(const Place& place) {
    if (place.region == Region::scratch && --blocks_.at(place.offset).users == 0)
      blocks_.erase(place.offset);
  }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  struct Block {
    std::int64_t bytes = 0;
    int users = 0;
  };
  std::map<std::int64_t, Block> blocks_;  // by offset
  std::int64_t bytes_ = 0;
};

/// What the whole model does with its tensors, one per layer that does not work in place; a tensor
/// is named after that layer.
class Tensors {
 public:
  Tensors(const Model& model, const Partition& partition, int batch)
      : model_(model),
        partition_(partition),
        batch_(batch),
        tensor_(tensors_of_layers(model)),
        kept_(tensors_kept(model)),
        again_(tensors_made_again(model)),
        learns_(learning_layers(model)) {
    check_tensors(model);
    for (int l = 0; l < layers(); ++l) {
      const LayerSpec& layer = model_.layers[l];
      for (const LayerInput& input : layer.inputs) last_use_[of(input.layer)] = l;
      const int first = layer.inputs.front().layer;
      CAROUSEL_CHECK(!layer.in_place || !learns_[l] || first == images || learns_[first],
                     "{} works in place on what does not learn", layer.label());
      last_use_.try_emplace(of(l), l);
    }
  }

  [[nodiscard]] int layers() const { return static_cast<int>(model_.layers.size()); }
  [[nodiscard]] int batch() const { return batch_; }
  /// The tensor that layer l leaves behind, or the images.
  [[nodiscard]] int of(int l) const { return l == images ? images : tensor_[l]; }
  [[nodiscard]] std::int64_t bytes(int tensor) const {
    if (tensor == images) return align_up(tensor_bytes(model_.input, {}, batch_));
    const LayerSpec& layer = model_.layers[tensor];
    return align_up(tensor_bytes(layer.output, layer.output_format, batch_));
  }
  /// Whether something learns that the tensor was made of, so that its gradient is wanted.
  [[nodiscard]] bool learns(int tensor) const { return tensor != images && learns_[tensor]; }
  [[nodiscard]] int last_use(int tensor) const { return last_use_.at(tensor); }
  [[nodiscard]] bool kept(int tensor) const {
    return kept_[tensor] || crosses(tensor, stage_of(tensor));
  }
  /// Whether backward makes it again; not so what leaves its stage, which is kept.
  [[nodiscard]] bool made_again(int tensor) const {
    return tensor != images && again_[tensor] && !crosses(tensor, stage_of(tensor));
  }
  [[nodiscard]] int stage_of(int tensor) const {
    int j = 0;
    while (partition_.first[j + 1] <= tensor) ++j;
    return j;
  }
  /// Whether a later stage uses a tensor made in stage `stage` or before.
  [[nodiscard]] bool crosses(int tensor, int stage) const {
    return tensor != images && tensor < partition_.first[stage + 1] &&
           last_use(tensor) >= partition_.first[stage + 1];
  }
  /// Whether a layer after `from` and before `to` uses the tensor.
  [[nodiscard]] bool used_between(int tensor, int from, int to) const {
    for (int l = from + 1; l < to; ++l) {
      for (const LayerInput& input : model_.layers[l].inputs) {
        if (of(input.layer) == tensor) return true;
      }
    }
    return false;
  }
  /// Where the gradients that cross the cut behind a stage lie, one after the other.
  [[nodiscard]] std::map<int, std::int64_t> crossing_gradients(int stage) const {
    std::map<int, std::int64_t> offsets;
    std::int64_t offset = 0;
    for (int t = 0; stage >= 0 && t < partition_.first[stage + 1]; ++t) {
      if (of(t) != t || !crosses(t, stage) || !learns(t)) continue;
      offsets[t] = offset;
      offset += bytes(t);
    }
    return offsets;
  }
  [[nodiscard]] std::int64_t crossing_gradient_bytes(int stage) const {
    std::int64_t sum = 0;
    for (const auto& [tensor, offset] : crossing_gradients(stage)) sum += bytes(tensor);
    return sum;
  }
  /// What was made before a stage and is used in it or later, images included; the tensors of the
  /// stage before it come first.
  [[nodiscard]] std::vector<int> crossing(int stage) const {
    std::vector<int> made_before;
    std::vector<int> passing;
    const int first = partition_.first[stage];
    if (stage > 0 && last_use(images) >= first) passing.push_back(images);
    for (int t = 0; t < first; ++t) {
      if (of(t) != t || last_use(t) < first) continue;
      (stage_of(t) == stage - 1 ? made_before : passing).push_back(t);
    }
    made_before.insert(made_before.end(), passing.begin(), passing.end());
    return made_before;
  }

 private:
  const Model& model_;
  const Partition& partition_;
  int batch_;
  std::vector<int> tensor_;      // [layer]
  std::vector<bool> kept_;       // [tensor] that some backward reads
  std::vector<bool> again_;      // [tensor] that need not be kept for that
  std::vector<bool> learns_;     // [layer]
  std::map<int, int> last_use_;  // [tensor], a layer
};

/// Where in the frame the tensors of a stage lie that cross the cut behind it, one after the other
/// at its end, so that they leave as they lie.
std::map<int, Place> place_leaving(StageMemory& stage, int j, const Model& model,
                                   const Tensors& tensors) {
  std::int64_t others = 0;
  std::map<int, Place> leaving;
  for (int l = stage.first; l < stage.first + stage.layers; ++l) {
    const LayerSpec& layer = model.layers[l];
    const bool in_frame = !layer.in_place && tensors.kept(l);
    if (in_frame && !tensors.crosses(l, j)) others += tensors.bytes(l);
    others += layer.saved_bytes(tensors.batch());
  }
  stage.leaving_offset = stage.frame_bytes = others;
  for (const int tensor : tensors.crossing(j + 1)) {
    if (tensor < stage.first) continue;
    leaving[tensor] = {Region::frame, stage.frame_bytes, j};
    stage.frame_bytes += tensors.bytes(tensor);
  }
  return leaving;
}

/// Forward: outputs, and where every layer finds its inputs. `outputs` has the tensors of all
/// stages so far.
void place_outputs(StageMemory& stage, int j, const Model& model, const Tensors& tensors,
                   std::map<int, Place>& outputs) {
  Scratch scratch;
  const bool last = stage.first + stage.layers == tensors.layers();
  std::map<int, Place> leaving;
  if (!last) leaving = place_leaving(stage, j, model, tensors);
  std::int64_t next = 0;  // free in the frame
  for (int k = 0; k < stage.layers; ++k) {
    const int l = stage.first + k;
    const LayerSpec& layer = model.layers[l];
    LayerPlaces& places = stage.places[k];
    for (std::size_t i = 0; i < layer.inputs.size(); ++i)
      places.inputs[i] = outputs.at(tensors.of(layer.inputs[i].layer));
    if (!layer.in_place) {
      Place& output = outputs[l];
      if (const auto leaves = leaving.find(l); leaves != leaving.end()) {
        output = leaves->second;
      } else if (tensors.kept(l)) {
        output = {Region::frame, next, j};
        next += tensors.bytes(l);
      } else {
        output = scratch.take(tensors.bytes(l));
      }
    }
    places.output = outputs.at(tensors.of(l));
    if (!layer.saved.empty()) {
      places.saved = {Region::frame, next, j};
      next += layer.saved_bytes(tensors.batch());
    }
    stage.workspace_bytes =
        std::max(stage.workspace_bytes, align_up(layer.workspace_bytes(tensors.batch())));
    for (int l_before = stage.first; l_before <= l; ++l_before) {
      if (tensors.of(l_before) == l_before && tensors.last_use(l_before) == l)
        scratch.release(outputs.at(l_before));
    }
  }
  if (last) stage.frame_bytes = stage.leaving_offset = next;
  stage.scratch_bytes = std::max(stage.scratch_bytes, scratch.bytes());
}

/// The flat vector of parameters, buffers and rider.
void place_parameters(StageMemory& stage, const Model& model) {
  stage.sums = sums_of(model.metrics(), model.target);
  std::vector<ParameterRange>& ranges = stage.parameter_ranges;
  std::int64_t stored = 0;
  const auto continues = [&](const ParameterSpec& parameter) {
    if (ranges.empty()) return false;
    const ParameterRange& last = ranges.back();
    return last.per_feature == parameter.is_per_feature() && last.type == parameter.type &&
           last.stored_begin + (last.end - last.begin) * size_of(last.type) == stored;
  };
  for (int k = 0; k < stage.layers; ++k) {
    const LayerSpec& layer = model.layers[stage.first + k];
    stage.parameter_offset.push_back(stage.parameter_size);
    stage.stored_offset.push_back(layer.is_frozen() ? stage.frozen_bytes : stored);
    for (const ParameterSpec& parameter : layer.parameters) {
      if (layer.is_frozen()) {
        stage.frozen_bytes += parameter.stored_bytes();
        stage.frozen_full += parameter.size();
        continue;
      }
      const std::int64_t begin = stage.parameter_size;
      if (!continues(parameter))
        ranges.push_back({begin, begin, parameter.is_per_feature(), parameter.type, stored});
      stage.parameter_size += parameter.size();
      stored += parameter.stored_bytes();
      ranges.back().end = stage.parameter_size;
      stage.tensors.push_back({begin, stage.parameter_size, parameter.is_per_feature(),
                               parameter.type, stored - parameter.stored_bytes()});
      stage.keeps_full = stage.keeps_full || parameter.type != DataType::full;
    }
  }
  if (stage.frozen_bytes == stage.frozen_full * real_bytes) stage.frozen_full = 0;
  for (int k = 0; k < stage.layers; ++k) {
    stage.buffer_offset.push_back(stage.rider_offset());
    stage.stored_buffer_offset.push_back(stored + stage.buffer_size * real_bytes);
    for (const ParameterSpec& buffer : model.layers[stage.first + k].buffers) {
      auto& alike = stage.statistics;
      if (alike.empty() || alike.back().momentum != buffer.momentum)
        alike.push_back({stage.buffer_size, stage.buffer_size, buffer.momentum});
      stage.buffer_size += buffer.size();
      alike.back().end = stage.buffer_size;
    }
  }
  stage.stored_rider_offset = stored + stage.buffer_size * real_bytes;
  stage.stored_bytes = align_up(stage.stored_rider_offset + stage.rider() * real_bytes);
  stage.message_size = align_up((stage.rider_offset() + stage.rider()) * real_bytes) / real_bytes;
}

/// Backward: walks the layers from the last to the first and knows where the gradient of every
/// tensor is that has one already.
class GradientPlaces {
 public:
  GradientPlaces(StageMemory& stage, int j, const Model& model, const Tensors& tensors)
      : stage_(stage),
        model_(model),
        tensors_(tensors),
        leaving_(tensors.crossing_gradients(j - 1)) {
    for (const auto& [tensor, offset] : tensors.crossing_gradients(j)) {
      const Place arrives{Region::d_output, offset};
      gradient_[tensor] = arrives;
      if (const auto leaves = leaving_.find(tensor); leaves != leaving_.end()) {
        gradient_[tensor] = {Region::d_input, leaves->second};
        stage_.passed.push_back({arrives, gradient_[tensor], tensors.bytes(tensor)});
      }
    }
  }

  void place() {
    for (int k = stage_.layers - 1; k >= 0; --k) place_layer(k);
    stage_.scratch_bytes = std::max(stage_.scratch_bytes, scratch_.bytes());
  }

 private:
  void place_layer(int k) {
    const int l = stage_.first + k;
    const LayerSpec& layer = model_.layers[l];
    LayerPlaces& places = stage_.places[k];
    const int output = tensors_.of(l);
    const bool is_loss = l + 1 == tensors_.layers();
    if (!tensors_.learns(l)) return;
    if (!is_loss) places.d_output = gradient_.at(output);
    if (layer.is_frozen())
      places.dropped = scratch_.take(align_up(layer.parameter_size() * real_bytes));
    find_input_again(k);
    for (std::size_t i = 0; i < layer.inputs.size(); ++i) {
      const int tensor = tensors_.of(layer.inputs[i].layer);
      if (!tensors_.learns(tensor)) continue;
      if (layer.in_place && i == 0 && !is_loss) {
        places.d_inputs[0] = places.d_output;
      } else if (i == 1 && shares_gradient(l, tensor)) {
        gradient_[tensor] = places.d_output;
        scratch_.share(places.d_output);
      } else {
        places.adds[i] = gradient_.contains(tensor);
        places.d_inputs[i] = gradient_of(tensor);
      }
    }
    scratch_.release(places.dropped);
    if (const auto done = again_.find(l); done != again_.end()) {
      scratch_.release(done->second);
      again_.erase(done);
    }
    if (const auto done = gradient_.find(l); done != gradient_.end()) {  // unless l works in place
      scratch_.release(done->second);
      gradient_.erase(done);
    }
  }

  /// An input that was not kept stays from the last of its readers to the layer that makes it.
  void find_input_again(int k) {
    const LayerSpec& layer = model_.layers[stage_.first + k];
    const int tensor = tensors_.of(layer.inputs[0].layer);
    if (!layer.saves_input || !tensors_.made_again(tensor)) return;
    const auto [found, is_new] = again_.try_emplace(tensor);
    if (is_new) {
      found->second = scratch_.take(tensors_.bytes(tensor));
      stage_.places[k].makes_again = tensor - stage_.first;
    }
    stage_.places[k].again = found->second;
  }

  /// What is left in the gradient of the output may be that of the second input as well. If it is
  /// also that of the first one, nobody may change it before the layer that made that has read it,
  /// that layer included.
  [[nodiscard]] bool shares_gradient(int l, int tensor) const {
    const LayerSpec& layer = model_.layers[l];
    if (!layer.aliases_second_gradient || gradient_.contains(tensor) || leaving_.contains(tensor))
      return false;
    if (!layer.in_place) return true;
    const int first = layer.inputs[0].layer;
    const bool second_changes_it = tensor > first && model_.layers[tensor].aliases_second_gradient;
    return tensors_.of(first) == first && !model_.layers[first].aliases_second_gradient &&
           !second_changes_it && !tensors_.used_between(tensor, first - 1, l);
  }

  const Place& gradient_of(int tensor) {
    const auto [found, is_new] = gradient_.try_emplace(tensor);
    if (is_new) {
      const auto leaves = leaving_.find(tensor);
      found->second = leaves != leaving_.end() ? Place{Region::d_input, leaves->second}
                                               : scratch_.take(tensors_.bytes(tensor));
    }
    return found->second;
  }

  StageMemory& stage_;
  const Model& model_;
  const Tensors& tensors_;
  std::map<int, std::int64_t> leaving_;  // tensors of earlier stages, offsets in d_input
  std::map<int, Place> gradient_;        // [tensor] that has one
  std::map<int, Place> again_;           // [tensor] that was not kept and is there
  Scratch scratch_;
};

/// Keeps of a frame only what leaves the stage. The rest lies in scratch, in front of what layers
/// hand on, and is made again before backward.
void keep_leaving(std::vector<StageMemory>& stages) {
  std::vector<std::int64_t> dropped;  // [stage] bytes at the begin of its frame
  const auto move = [&](Place& place, std::int64_t before_scratch) {
    if (place.region == Region::scratch) place.offset += before_scratch;
    if (place.region != Region::frame) return;
    if (place.offset < dropped[place.stage])
      place = {Region::scratch, place.offset};
    else
      place.offset -= dropped[place.stage];
  };
  for (StageMemory& stage : stages) {
    const std::int64_t bytes = stage.leaving_offset;
    dropped.push_back(bytes);
    for (LayerPlaces& places : stage.places) {
      for (Place& place : places.inputs) move(place, bytes);
      for (Place& place : places.d_inputs) move(place, bytes);
      for (Place* place :
           {&places.output, &places.saved, &places.d_output, &places.again, &places.dropped})
        move(*place, bytes);
    }
    for (CrossingTensor& tensor : stage.arriving) move(tensor.made, bytes);
    stage.frame_bytes -= bytes;
    stage.leaving_offset = 0;
    stage.scratch_bytes += bytes;
    stage.recomputes = true;
  }
}

}  // namespace

std::vector<StageMemory> plan_stages(const Model& model, const Partition& partition, int batch,
                                     int parts) {
  const Tensors tensors(model, partition, batch);
  std::map<int, Place> outputs = {{images, {Region::images}}};
  std::vector<StageMemory> stages;
  for (int j = 0; j < partition.stages(); ++j) {
    StageMemory stage;
    stage.parts = parts;
    stage.first = partition.first[j];
    stage.layers = partition.first[j + 1] - stage.first;
    CAROUSEL_CHECK(j == 0 || !model.layers[stage.first].in_place,
                   "stage {} begins with layer {}, which works in place", j, stage.first);
    stage.places.resize(stage.layers);
    for (const int tensor : tensors.crossing(j)) {
      stage.arriving.push_back({outputs.at(tensor), stage.input_bytes, tensors.bytes(tensor)});
      stage.input_bytes += tensors.bytes(tensor);
    }
    place_outputs(stage, j, model, tensors, outputs);
    GradientPlaces(stage, j, model, tensors).place();
    stage.output_bytes = tensors.crossing_gradient_bytes(j);
    place_parameters(stage, model);
    stages.push_back(std::move(stage));
  }
  if (model.recomputes_stages) keep_leaving(stages);
  return stages;
}

}  // namespace carousel
