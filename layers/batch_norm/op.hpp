// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a batch norm does besides, where others were fused with it, and what layers need that make
// one of their input on the way.

#include "core/model/op.hpp"

namespace carousel::op {

struct BatchNorm {
  double epsilon = 1e-5;   // beside the variance
  bool adds = false;       // the second input, to what is normalised
  bool rectifies = false;  // what comes out
};

}  // namespace carousel::op

namespace carousel {

/// What forward saves of the batch norm of a layer's input: mean, deviation and what is made of
/// them once.
[[nodiscard]] SavedTensor norm_statistics(const LayerSpec& layer);

/// Batch norm and ReLU in front of a layer of that kind, which makes them on the way and never
/// keeps them, where its attributes say `normalises`, with that `epsilon`.
template <class Attributes>
[[nodiscard]] Fusion norm_in_front_of(std::string_view kind) {
  const auto complete = [](std::span<const LayerSpec> run, LayerSpec& fused) {
    auto attributes = run.back().as<Attributes>();
    attributes.normalises = true;
    attributes.epsilon = run.front().as<op::BatchNorm>().epsilon;
    fused.attributes = attributes;
    fused.name = run.back().name;
  };
  return {.ops = {"batch_norm", "relu", kind},
          .complete = complete,
          .is_sole_reader = true,
          .recomputes = true};
}

}  // namespace carousel
