// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/factory.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/base/vectors.hpp"
#include "layers/add.hpp"
#include "layers/attention.hpp"
#include "layers/batch_norm.hpp"
#include "layers/blocked/factory.hpp"
#include "layers/channels_last/factory.hpp"
#include "layers/converted.hpp"
#include "layers/convolution.hpp"
#include "layers/dropout.hpp"
#include "layers/first_token.hpp"
#include "layers/flatten.hpp"
#include "layers/gelu.hpp"
#include "layers/layer_norm.hpp"
#include "layers/linear.hpp"
#include "layers/patch_embedding.hpp"
#include "layers/pool.hpp"
#include "layers/relu.hpp"
#include "layers/softmax_cross_entropy.hpp"
#include "layers/vendor/vendor.hpp"

namespace carousel {

namespace {

/// The kernels of each kind, by overload.
struct Maker {
  const LayerSpec& spec;
  const Engine& engine;

  using Made = std::unique_ptr<Layer>;
  Made operator()(const kind::Flatten&) const { return std::make_unique<Flatten>(); }
  Made operator()(const kind::Linear&) const {
    if (spec.input().height > 1) return std::make_unique<Convolution>(spec);
    return std::make_unique<Linear>(spec);
  }
  Made operator()(const kind::Relu&) const { return std::make_unique<Relu>(spec); }
  Made operator()(const kind::Dropout&) const { return std::make_unique<Dropout>(spec); }
  Made operator()(const kind::Convolution&) const { return std::make_unique<Convolution>(spec); }
  Made operator()(const kind::BatchNorm&) const { return std::make_unique<BatchNorm>(spec); }
  Made operator()(const kind::MaxPool&) const { return std::make_unique<MaxPool>(spec); }
  Made operator()(const kind::AveragePool&) const { return std::make_unique<AveragePool>(spec); }
  Made operator()(const kind::Add&) const { return std::make_unique<Add>(spec); }
  Made operator()(const kind::PatchEmbedding&) const {
    return std::make_unique<PatchEmbedding>(
        spec, std::make_unique<Convolution>(convolution_of_patches(spec), 1));
  }
  Made operator()(const kind::LayerNorm&) const { return std::make_unique<LayerNorm>(spec); }
  Made operator()(const kind::Gelu&) const { return std::make_unique<Gelu>(spec); }
  Made operator()(const kind::Attention&) const {
    return std::make_unique<Attention>(spec, engine);
  }
  Made operator()(const kind::FirstToken&) const { return std::make_unique<FirstToken>(spec); }
  Made operator()(const kind::SoftmaxCrossEntropy&) const {
    return std::make_unique<SoftmaxCrossEntropy>(spec);
  }
};

/// Whether some tensor of the layer is in blocks of channels.
bool is_blocked(const LayerSpec& spec) {
  const auto blocked = [](const LayerInput& input) { return input.format.block > 1; };
  return spec.output_format.block > 1 || std::ranges::any_of(spec.inputs, blocked);
}

/// Kernels that work number by number do it in any order, and those of tokens in any blocks.
bool takes_blocks(const LayerSpec& spec) {
  return spec.is<kind::Relu>() || spec.is<kind::Add>() || spec.is<kind::Dropout>() ||
         spec.is<kind::Gelu>() || spec.is<kind::LayerNorm>() || spec.is<kind::FirstToken>();
}

}  // namespace

std::unique_ptr<Layer> make_layer(const LayerSpec& spec, int samples, const Engine& engine) {
  CAROUSEL_CHECK(std::ssize(engine.workspace) >= spec.workspace_bytes(samples),
                 "{}: a workspace of {} bytes", spec.label(), engine.workspace.size());
  if (spec.by_vendor) return vendor::make_layer(spec, samples, engine);
  if (spec.native) {
    if (auto layer = channels_last::make_layer(spec, samples, engine)) return layer;
    return std::visit(Maker{spec, engine}, spec.kind);
  }
  if (spec.is_converted()) return make_converted(spec, samples, engine, make_layer);
  const auto check = [&](const TensorFormat& format) {
    const bool known = format.block == 1 || format.block == vector_block;
    CAROUSEL_CHECK(known, "{}: no kernels for {}", spec.label(), to_string(format));
  };
  for (const LayerInput& input : spec.inputs) check(input.format);
  check(spec.output_format);
  if constexpr (runs_on_host) {
    if (is_blocked(spec)) {
      if (auto layer = blocked::make_layer(spec, samples, engine)) return layer;
      CAROUSEL_CHECK(takes_blocks(spec), "{}: no kernels for blocks of channels", spec.label());
    }
  } else {
    CAROUSEL_CHECK(!is_blocked(spec), "{}: no kernels for blocks of channels", spec.label());
  }
  return std::visit(Maker{spec, engine}, spec.kind);
}

}  // namespace carousel
