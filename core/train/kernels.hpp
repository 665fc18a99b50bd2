// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The small kernels of the executor itself, on borrowed memory. The update is in
// core/train/optimizer.hpp, the sum of gradients in core/base/add.hpp.

#include "core/engine/layer.hpp"

namespace carousel {

/// Adds what one micro-batch reports to the sum of those before it.
void add(const ExecutionSpace& exec, Metrics* destination, const Metrics* source);

}  // namespace carousel
