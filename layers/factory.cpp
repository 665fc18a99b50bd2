// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/factory.hpp"

#include "core/base/check.hpp"
#include "layers/add.hpp"
#include "layers/batch_norm.hpp"
#include "layers/convolution.hpp"
#include "layers/dropout.hpp"
#include "layers/flatten.hpp"
#include "layers/linear.hpp"
#include "layers/pool.hpp"
#include "layers/relu.hpp"
#include "layers/softmax_cross_entropy.hpp"

namespace carousel {

namespace {

/// The kernels of each kind, by overload.
struct Maker {
  const LayerSpec& spec;

  using Made = std::unique_ptr<Layer>;
  Made operator()(const kind::Flatten&) const { return std::make_unique<Flatten>(); }
  Made operator()(const kind::Linear&) const { return std::make_unique<Linear>(spec); }
  Made operator()(const kind::Relu&) const { return std::make_unique<Relu>(); }
  Made operator()(const kind::Dropout&) const { return std::make_unique<Dropout>(spec); }
  Made operator()(const kind::Convolution&) const { return std::make_unique<Convolution>(spec); }
  Made operator()(const kind::BatchNorm&) const { return std::make_unique<BatchNorm>(spec); }
  Made operator()(const kind::MaxPool&) const { return std::make_unique<MaxPool>(spec); }
  Made operator()(const kind::AveragePool&) const { return std::make_unique<AveragePool>(spec); }
  Made operator()(const kind::Add&) const { return std::make_unique<Add>(spec); }
  Made operator()(const kind::SoftmaxCrossEntropy&) const {
    return std::make_unique<SoftmaxCrossEntropy>(spec);
  }
};

}  // namespace

std::unique_ptr<Layer> make_layer(const LayerSpec& spec, int samples, const Engine& engine) {
  CAROUSEL_CHECK(std::ssize(engine.workspace) >= spec.workspace.of(samples),
                 "{}: a workspace of {} bytes", spec.label(), engine.workspace.size());
  const auto check = [&](const TensorFormat& format) {
    CAROUSEL_CHECK(format == TensorFormat{}, "{}: no kernels for {}", spec.label(),
                   to_string(format));
  };
  for (const LayerInput& input : spec.inputs) check(input.format);
  check(spec.output_format);
  return std::visit(Maker{spec}, spec.kind);
}

}  // namespace carousel
