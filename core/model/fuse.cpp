// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/fuse.hpp"

#include <algorithm>

namespace carousel {
namespace {

template <class T>
void append(std::vector<T>& all, const std::vector<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
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

bool matches(const Fusion& fusion, const Model& model, const std::vector<int>& readers,
             std::size_t first) {
  const std::size_t length = fusion.matches.size();
  if (length == 0 || first + length > model.layers.size()) return false;
  const int read = model.layers[first].inputs.front().layer;
  if (fusion.is_sole_reader && (read < 0 || readers[read] != 1)) return false;
  for (std::size_t k = 0; k < length; ++k) {
    const LayerSpec& layer = model.layers[first + k];
    if (!fusion.matches[k](layer)) return false;
    const auto before = static_cast<int>(first + k) - 1;
    if (k > 0 && (layer.inputs.front().layer != before || readers[before] != 1)) return false;
  }
  return true;
}

LayerSpec fused(const Fusion& fusion, std::span<const LayerSpec> run, int first) {
  LayerSpec result;
  result.name = run.front().name;
  result.output = run.back().output;
  result.output_format = run.back().output_format;
  for (const LayerSpec& layer : run) {
    for (const LayerInput& input : layer.inputs) {
      if (input.layer < first) result.inputs.push_back(input);
    }
    append(result.parameters, layer.parameters);
    append(result.buffers, layer.buffers);
    result.forward_flops += layer.forward_flops;
    result.backward_flops += layer.backward_flops;
  }
  fusion.complete(run, result);
  return result;
}

}  // namespace

Model fuse(const Model& model, std::span<const Fusion> fusions) {
  const std::vector<int> readers = readers_of(model);
  Model result = model;
  result.layers.clear();
  std::vector<int> becomes(model.layers.size());  // [layer] its number in the result
  for (std::size_t l = 0; l < model.layers.size();) {
    const auto found = std::ranges::find_if(
        fusions, [&](const Fusion& fusion) { return matches(fusion, model, readers, l); });
    const std::size_t length = found == fusions.end() ? 1 : found->matches.size();
    const std::span<const LayerSpec> run = std::span(model.layers).subspan(l, length);
    LayerSpec layer =
        found == fusions.end() ? run.front() : fused(*found, run, static_cast<int>(l));
    for (LayerInput& input : layer.inputs) {
      if (input.layer >= 0) input.layer = becomes[input.layer];
    }
    std::fill_n(becomes.begin() + static_cast<std::ptrdiff_t>(l), length,
                static_cast<int>(result.layers.size()));
    result.layers.push_back(std::move(layer));
    l += length;
  }
  return result;
}

}  // namespace carousel
