// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Copies a tensor of activations from one format to another: type, order, or both.

#include "core/base/view.hpp"
#include "core/model/tensor_format.hpp"

namespace carousel {

/// What a copy is of.
struct StoredTensor {
  void* data = nullptr;
  TensorFormat format;
};

/// Enqueues to = from for n samples; bf16 is rounded to. Blocks are filled by the channels.
void convert(const ExecutionSpace& exec, const StoredTensor& from, const StoredTensor& to,
             const SampleShape& shape, int n);

}  // namespace carousel
