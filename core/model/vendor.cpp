// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/vendor.hpp"

namespace carousel {
namespace {

/// Features of a sample, or of each token, side by side.
bool has_rows(const SampleShape& shape, const TensorFormat& format) {
  return shape.width == 1 && (shape.height == 1 || format.block == shape.channels);
}

bool is_product(const LayerSpec& layer) {
  const TensorFormat& input = layer.inputs.front().format;
  const TensorFormat& output = layer.output_format;
  return layer.is<kind::Linear>() && layer.parameters.size() == 2 && input.type == output.type &&
         layer.weights().type == output.type && has_rows(layer.input(), input) &&
         has_rows(layer.output, output);
}

bool takes_channels_last(const LayerSpec& layer) {
  if (layer.is<kind::BatchNorm>()) return true;
  if (layer.is<kind::MaxPool>()) return !layer.as<kind::MaxPool>().normalises;
  return layer.is<kind::AveragePool>() && layer.as<kind::AveragePool>().window.kernel == 0;
}

}  // namespace

void choose_channels_last(LayerSpec& layer) {
  layer.native = takes_channels_last(layer);
  if (layer.is<kind::BatchNorm>()) layer.workspace = {{norm_workspace, 0}};
}

void choose_vendor(LayerSpec& layer) {
  if (!is_product(layer)) return;
  layer.native = layer.by_vendor = true;
  // Behind it, the bias in the type of the result.
  layer.workspace = {{product_workspace + 2 * std::int64_t{layer.output.channels}, 0}};
}

}  // namespace carousel
