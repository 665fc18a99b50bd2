// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/kernels.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/version.hpp"
#include "core/model/op.hpp"

namespace carousel {
namespace {

/// Why there are no kernels for a layer that is converted so; empty where there are, with what
/// fit() says in `layer`.
std::string fit(LayerSpec& layer, Converted converted, const KernelChoice& choice) {
  layer.converted = converted;
  LayerSpec computed = layer.as_computed();
  std::string reason = fit_kernels(computed, choice);
  if (!reason.empty()) return reason;
  // All but how tensors are stored.
  for (std::size_t k = 0; k < layer.inputs.size(); ++k)
    computed.inputs[k].format = layer.inputs[k].format;
  computed.output_format = layer.output_format;
  for (std::size_t k = 0; k < layer.parameters.size(); ++k)
    computed.parameters[k].type = layer.parameters[k].type;
  computed.converted = converted;
  layer = std::move(computed);
  return "";
}

void set_formats(LayerSpec& layer, const KernelChoice& choice) {
  // Another shape has another order.
  const TensorFormat& input = layer.inputs.front().format;
  if (layer.output != layer.input() && input.block != 1) layer.in_place = false;
  layer.output_format = layer.in_place ? input : stored_format(layer.output, choice);
  for (ParameterSpec& parameter : layer.parameters)
    parameter.type = parameter.is_per_feature() ? DataType::full : choice.type;
}

/// Finds kernels, with conversions up to `most`. Returns why there are none.
std::string find_kernels(LayerSpec& layer, Converted most, const KernelChoice& choice) {
  layer.products = choice.products;
  set_formats(layer, choice);
  const std::string first = fit(layer, Converted::nothing, choice);
  std::string reason = first;
  if (!reason.empty() && !has_full_numbers(layer)) reason = fit(layer, Converted::types, choice);
  if (!reason.empty() && most == Converted::orders) {
    reason = fit(layer, Converted::orders, choice);
    if (layer.slow_because.empty()) layer.slow_because = first;
  }
  if (layer.inputs.size() > 1 && layer.inputs[1].format != layer.output_format)
    layer.aliases_second_gradient = false;
  return reason;
}

/// [layer] how many inputs of layers read what it left.
std::vector<int> readers_of(const Model& model) {
  std::vector<int> readers(model.layers.size(), 0);
  for (const LayerSpec& layer : model.layers) {
    for (const LayerInput& input : layer.inputs) {
      if (input.layer >= 0) ++readers[input.layer];
    }
  }
  return readers;
}

/// A fusion with the kind that it makes.
struct Fusing {
  const Op* op;
  const Fusion* fusion;
};

/// The longest first.
std::vector<Fusing> fusions_for(const KernelChoice& choice) {
  std::vector<Fusing> all;
  for (const Op& op : all_ops()) {
    for (const Fusion& fusion : op.fusions) {
      if (!fusion.recomputes || choice.recompute != Recompute::none) all.push_back({&op, &fusion});
    }
  }
  std::ranges::stable_sort(all, std::ranges::greater(),
                           [](const Fusing& each) { return each.fusion->ops.size(); });
  return all;
}

/// Goes through a network and makes that of its kernels.
class Chooser {
 public:
  Chooser(const Model& model, const KernelChoice& choice)
      : model_(model),
        choice_(choice),
        fusions_(fusions_for(choice)),
        readers_(readers_of(model)),
        learns_(learning_layers(model)),
        becomes_(model.layers.size()),
        result_(model) {
    result_.layers.clear();
    result_.makes_outputs_again = choice.recompute != Recompute::none;
    result_.recomputes_stages = choice.recompute == Recompute::stage;
  }

  Model run() {
    for (std::size_t l = 0; l < model_.layers.size();) l += take(l);
    return std::move(result_);
  }

 private:
  /// Appends what stands for the layers from `first` on, and returns how many they are.
  std::size_t take(std::size_t first) {
    for (const Fusing& fusing : fusions_) {
      if (!matches(*fusing.fusion, first)) continue;
      LayerSpec layer = fused(fusing, first);
      read_results(layer);
      if (find_kernels(layer, Converted::types, choice_).empty())
        return append(std::move(layer), first, fusing.fusion->ops.size());
    }
    LayerSpec layer = model_.layers[first];
    read_results(layer);
    layer.in_place = layer.in_place && !begins_to_learn(first) && may_overwrite(layer, first + 1);
    choose_kernels(layer, choice_);
    return append(std::move(layer), first, 1);
  }

  [[nodiscard]] bool matches(const Fusion& fusion, std::size_t first) const {
    const std::size_t length = fusion.ops.size();
    if (first + length > model_.layers.size()) return false;
    const int read = model_.layers[first].inputs.front().layer;
    if (fusion.is_sole_reader && (read < 0 || readers_[read] != 1)) return false;
    std::optional<bool> frozen;
    for (std::size_t k = 0; k < length; ++k) {
      const LayerSpec& layer = model_.layers[first + k];
      if (!layer.is(fusion.ops[k])) return false;
      // What becomes one layer is frozen whole or not at all.
      if (!layer.parameters.empty() && frozen.value_or(layer.is_frozen()) != layer.is_frozen())
        return false;
      if (!layer.parameters.empty()) frozen = layer.is_frozen();
      const auto before = static_cast<int>(first + k) - 1;
      if (k > 0 && (layer.inputs.front().layer != before || readers_[before] != 1)) return false;
    }
    return true;
  }

  [[nodiscard]] LayerSpec fused(const Fusing& fusing, std::size_t first) const {
    const std::span<const LayerSpec> run =
        std::span(model_.layers).subspan(first, fusing.fusion->ops.size());
    LayerSpec result;
    result.kind = fusing.op;
    result.name = run.front().name;
    result.output = run.back().output;
    for (const LayerSpec& layer : run) {
      for (const LayerInput& input : layer.inputs) {
        if (input.layer < static_cast<int>(first)) result.inputs.push_back(input);
      }
      result.parameters.insert(result.parameters.end(), layer.parameters.begin(),
                               layer.parameters.end());
      result.buffers.insert(result.buffers.end(), layer.buffers.begin(), layer.buffers.end());
      result.forward_flops += layer.forward_flops;
      result.backward_flops += layer.backward_flops;
    }
    fusing.fusion->complete(run, result);
    return result;
  }

  /// Inputs become those of the result, in the formats that they have there.
  void read_results(LayerSpec& layer) const {
    for (LayerInput& input : layer.inputs) {
      if (input.layer < 0) continue;
      input.layer = becomes_[input.layer];
      input.format = result_.layers[input.layer].output_format;
    }
  }

  /// Whether a layer learns and its first input does not: as one tensor they would have a gradient
  /// and none.
  [[nodiscard]] bool begins_to_learn(std::size_t l) const {
    const int input = model_.layers[l].inputs.front().layer;
    return learns_[l] && (input < 0 || !learns_[static_cast<std::size_t>(input)]);
  }

  /// Whether the next layer of the result may change its first input, which no layer from `others`
  /// on, and no backward of a layer before, reads as it is now. What it changes, the layer right
  /// before made: both are in one stage. Losses leave their input as it is.
  [[nodiscard]] bool may_overwrite(const LayerSpec& layer, std::size_t others) const {
    const auto& made = result_.layers;
    if (layer.is_loss() || layer.only_reshapes()) return true;
    int at = layer.inputs.front().layer;
    if (at + 1 != static_cast<int>(made.size())) return false;
    for (bool is_changed = true; is_changed; at = made[at].inputs.front().layer) {
      if (at < 0 || is_read(at, others)) return false;
      if (layer.inputs.back().layer == at && layer.inputs.size() > 1) return false;
      const bool reads_less = made[at].reads_signs && layer.scales;
      if (made[at].saves_output && !reads_less) return false;
      is_changed = made[at].in_place;
    }
    return true;
  }

  /// Whether a layer from `others` on reads what layer `at` of the result leaves.
  [[nodiscard]] bool is_read(int at, std::size_t others) const {
    const auto first = static_cast<int>(others) - 1;
    return std::any_of(model_.layers.begin() + static_cast<std::ptrdiff_t>(others),
                       model_.layers.end(), [&](const LayerSpec& layer) {
                         return std::ranges::any_of(layer.inputs, [&](const LayerInput& input) {
                           return input.layer >= 0 && input.layer < first &&
                                  becomes_[input.layer] == at;
                         });
                       });
  }

  std::size_t append(LayerSpec layer, std::size_t first, std::size_t length) {
    std::fill_n(becomes_.begin() + static_cast<std::ptrdiff_t>(first), length,
                static_cast<int>(result_.layers.size()));
    result_.layers.push_back(std::move(layer));
    return length;
  }

  const Model& model_;
  const KernelChoice& choice_;
  std::vector<Fusing> fusions_;
  std::vector<int> readers_;
  std::vector<bool> learns_;  // [layer]
  std::vector<int> becomes_;  // [layer] its number in the result
  Model result_;
};

/// Why layers that libraries compute are left to us.
std::string left_because(VendorKernels kernels) {
  if (kernels == VendorKernels::none)
    return build_info().kernels.empty() ? "this program was built without cuBLASLt"
                                        : "engine.vendor is \"none\"";
  if (kernels == VendorKernels::products) return "this program was built without cuDNN";
  if (!wants_channels_last(kernels)) return "cuDNN is not used in double precision";
  return "cuDNN has it in bf16 alone, see engine.precision";
}

}  // namespace

VendorKernels built_kernels() {
  if (build_info().kernels.empty()) return VendorKernels::none;
  return build_info().graphs.empty() ? VendorKernels::products : VendorKernels::graphs;
}

TensorFormat stored_format(const SampleShape& shape, const KernelChoice& choice) {
  TensorFormat format = {.type = choice.type};
  // Of one pixel, channels lie side by side in any case.
  if (shape.pixels() == 1 || shape.channels % filled_block(choice) != 0) return format;
  format.block = choice.channels_last() ? shape.channels : choice.block;
  return format;
}

void choose_kernels(LayerSpec& layer, const KernelChoice& choice) {
  const std::string reason = find_kernels(layer, Converted::orders, choice);
  CAROUSEL_CHECK(reason.empty(), "{}: no portable kernels: {}", layer.label(), reason);
}

Model choose_kernels(const Model& model, const KernelChoice& choice) {
  KernelChoice chosen = choice;
  if (wants_channels_last(choice.vendor)) chosen.block = 0;
  return Chooser(model, chosen).run();
}

std::string vendor_layers(const Model& model) {
  const auto count = [&](bool graphs) {
    return std::ranges::count_if(model.layers, [&](const LayerSpec& layer) {
      return layer.kernels == Kernels::vendor && layer.kind->by_graph == graphs;
    });
  };
  const std::ptrdiff_t graphs = count(true);
  const std::ptrdiff_t products = count(false);
  std::string text;
  if (graphs > 0) text += fmt::format("{} by cuDNN", graphs);
  if (products > 0) text += fmt::format("{}{} by cuBLASLt", graphs > 0 ? ", " : "", products);
  return text;
}

std::string slow_kernels(const Model& model, VendorKernels kernels, bool on_gpu) {
  const auto is_slow = [](const LayerSpec& layer) { return !layer.slow_because.empty(); };
  if (const auto slow = std::ranges::count_if(model.layers, is_slow); slow > 0) {
    constexpr std::size_t columns = 30;
    const LayerSpec& first = *std::ranges::find_if(model.layers, is_slow);
    return fmt::format("{} layer{}, beginning with {}: {}", slow, slow == 1 ? "" : "s",
                       first.label(columns), first.slow_because);
  }
  if (!on_gpu) return {};
  std::vector<std::pair<std::string, int>> left;  // in the order in which they come
  for (const LayerSpec& layer : model.layers) {
    if (layer.kind->of_vendor == nullptr || layer.kernels == Kernels::vendor) continue;
    const auto known =
        std::ranges::find(left, layer.kind->of_vendor, [](auto& each) { return each.first; });
    if (known == left.end())
      left.emplace_back(layer.kind->of_vendor, 1);
    else
      ++known->second;
  }
  if (left.empty()) return {};
  std::string text;
  for (const auto& [what, count] : left)
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", count, what, count == 1 ? "" : "s");
  return fmt::format("{} by our own: {}", text, left_because(kernels));
}

bool may_be_slow(const LayerSpec& layer) {
  return layer.kernels == Kernels::vendor && layer.kind->by_graph && !layer.parameters.empty() &&
         layer.output_format.type == DataType::bfloat16;
}

}  // namespace carousel
