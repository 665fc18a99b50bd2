// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Forward and backward of one micro-batch through a whole model, layer by layer in plain loops. It
// follows the description of the model and nothing else: every layer has an output of its own.

#include <vector>

#include "core/model/model.hpp"
#include "tests/reference/layers.hpp"

namespace carousel::reference {

struct MicroBatch {
  Numbers images;           // [n, c, h, w]
  std::vector<int> labels;  // [n]
};

struct ModelGradient {
  Numbers gradient;         // of every parameter, in layer order
  Numbers statistics = {};  // of the micro-batch for every buffer, in layer order
  Numbers logits = {};      // [n, classes]
  double loss = 0;
  double margin = 1;  // the least input of a rectifier, as a share of the largest of its layer
};

[[nodiscard]] ModelGradient gradient_of(const Model& model, const Numbers& parameters,
                                        const MicroBatch& batch);

}  // namespace carousel::reference
