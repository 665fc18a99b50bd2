// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The small kernels of the executor itself, on borrowed memory: sums that run in the order in which
// they are enqueued. The update is in core/train/optimizer.hpp.

#include "core/train/layer.hpp"

namespace carousel {

/// destination += source, element by element.
void add(const ExecutionSpace& exec, const Vector& destination, const ConstVector& source);

/// Adds what one micro-batch reports to the sum of those before it.
void add(const ExecutionSpace& exec, Metrics* destination, const Metrics* source);

}  // namespace carousel
