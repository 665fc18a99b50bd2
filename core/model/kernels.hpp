// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// From a network to the layers that kernels compute: which of them are one, how activations lie in
// memory, and by which algorithm. It changes no parameter and follows from shapes alone, never from
// timing or from the samples of a micro-batch.

#include "core/model/model.hpp"
#include "core/model/vendor.hpp"

namespace carousel {

/// What backward makes again instead of finding it in memory.
enum class Recompute : std::uint8_t {
  none,
  cheap,  // norms and activation functions in front of a convolution, linear layer or pooling
  stage,  // all of that, and then all activations of a stage, from what came into it
};
[[nodiscard]] const char* to_string(Recompute recompute);

struct KernelChoice {
  int block = 1;         // channels side by side in images; 1: portable kernels alone; 0: all
  bool winograd = true;  // where it is faster than direct sums
  Recompute recompute = Recompute::cheap;
  // Of activations between layers, and of weights as kernels read them; biases, norms and all sums
  // are always full.
  DataType type = DataType::full;
  VendorKernels vendor = VendorKernels::none;
};

/// A layer of images in blocks of channels, or with all of them side by side, with what its kernels
/// save and work with. Formats of its inputs are set.
[[nodiscard]] LayerSpec with_blocks(LayerSpec layer, const KernelChoice& choice);

/// The model in blocks of channels, its batch norms fused with their neighbours; as it is where
/// channels do not fill blocks or a layer has no such kernels. Its tensors are of the type chosen.
[[nodiscard]] Model choose_kernels(Model model, const KernelChoice& choice);

}  // namespace carousel
