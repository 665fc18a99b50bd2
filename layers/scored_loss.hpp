// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A loss with the metrics of its spec: after the loss itself, which leaves what it reads as it is
// in forward, the sums of each, and the class that each sample is taken for, where that is wanted.
// Where nothing but outputs is wanted, there are no targets, and it hands those out.

#include <memory>

#include "core/engine/layer.hpp"

namespace carousel {

[[nodiscard]] std::unique_ptr<Layer> with_metrics(std::unique_ptr<Layer> loss,
                                                  const LayerSpec& spec);

}  // namespace carousel
