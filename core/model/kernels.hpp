// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// From a network to the layers that kernels compute: which of them are one, how activations lie in
// memory, whose kernels compute each layer, and what is converted for them. It changes no parameter
// and follows from shapes alone, never from timing or from the samples of a micro-batch.

#include "core/model/kernel_choice.hpp"
#include "core/model/model.hpp"

namespace carousel {

/// How what a layer leaves is stored: in blocks of channels where it has more than one pixel and
/// its channels fill them, otherwise in plain order.
[[nodiscard]] TensorFormat stored_format(const SampleShape& shape, const KernelChoice& choice);

/// Sets the format of what a layer leaves, whose inputs have theirs, and finds its kernels, with
/// what they save and work with. Where there are none for a format or a type, tensors of this one
/// layer are converted.
void choose_kernels(LayerSpec& layer, const KernelChoice& choice);

/// The model with layers fused where that has kernels, and these chosen for each of them.
[[nodiscard]] Model choose_kernels(const Model& model, const KernelChoice& choice);

/// How many layers are left to which library of a vendor, for people; empty where none is.
[[nodiscard]] std::string vendor_layers(const Model& model);

/// Which layers are computed slowly, and why, for people; empty where none is known to be. On GPUs
/// that is whatever is left of products and convolutions to kernels of ours.
[[nodiscard]] std::string slow_kernels(const Model& model, VendorKernels kernels, bool on_gpu);

/// Whether the vendor's library may turn out to be slow with a layer, on the GPU that it runs on.
[[nodiscard]] bool may_be_slow(const LayerSpec& layer);

}  // namespace carousel
