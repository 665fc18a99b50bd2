// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a build has and a run asks for when kernels are chosen. Plain data.

#include <cstdint>

#include "core/base/words.hpp"
#include "core/model/tensor_format.hpp"

namespace carousel {

/// What backward makes again instead of finding it in memory.
enum class Recompute : std::uint8_t {
  none,
  cheap,  // norms and activation functions in front of a convolution, linear layer or pooling
  stage,  // all of that, and then all activations of a stage, from what came into it
};
constexpr auto words_of(Recompute) {
  return all_words<Recompute>("none", "cheap", "stage");
}

/// Which of a vendor's libraries a build has and a run uses.
enum class VendorKernels : std::uint8_t {
  none,
  products,  // of matrices: NVIDIA's cuBLASLt
  graphs,    // and graphs of operations on images and tokens: cuDNN
};

/// Those that this build has.
[[nodiscard]] VendorKernels built_kernels();

/// Whether networks of images and tokens have their channels side by side for these libraries.
[[nodiscard]] constexpr bool wants_channels_last(VendorKernels kernels) {
  return kernels == VendorKernels::graphs && sizeof(real) == sizeof(float);
}

/// The order in which kernels in blocks add products of bf16, which processors multiply in pairs:
/// one after the other, or the first and the second ones of some pairs apart.
enum class ProductOrder : std::uint8_t { pairs, tiles };
constexpr auto words_of(ProductOrder) {
  return all_words<ProductOrder>("pairs", "tiles");
}

struct KernelChoice {
  int block = 1;         // channels side by side in images; 1: portable kernels alone; 0: all
  bool winograd = true;  // where it is faster
  Recompute recompute = Recompute::cheap;
  // Of activations between layers, and of weights as kernels read them; biases, norms and all sums
  // are always full.
  DataType type = DataType::full;
  VendorKernels vendor = VendorKernels::none;
  ProductOrder products = ProductOrder::pairs;

  /// Whether channels lie side by side in blocks that fill vector registers of a host.
  [[nodiscard]] bool blocks() const { return block > 1; }
  [[nodiscard]] bool channels_last() const { return block == 0; }
};

}  // namespace carousel
