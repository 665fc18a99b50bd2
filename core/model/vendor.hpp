// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which layers a vendor's libraries compute, and which others then have all channels side by side,
// as those want them; and what memory both work with. It is a part of the plan, so that it is made
// without these libraries.

#include <string>

#include "core/model/layer_spec.hpp"
#include "core/model/model.hpp"

namespace carousel {

/// Which of a vendor's libraries a build has and a run uses.
enum class VendorKernels : std::uint8_t {
  none,
  products,  // of matrices: NVIDIA's cuBLASLt
  graphs,    // and graphs of operations on images and tokens: cuDNN
};

/// Those that this build has.
[[nodiscard]] VendorKernels built_kernels();

/// What libraries may take for a product: NVIDIA advises 32 MiB for sm_90 (cuBLAS 13, section
/// "Workspace").
inline constexpr std::int64_t product_workspace = std::int64_t{32} << 20;

/// What they may take for a graph; gradients of weights, which are added up in parts, take most.
inline constexpr std::int64_t graph_workspace = std::int64_t{64} << 20;

/// Sums of a batch norm over chunks of rows, of which there are the fewer the more channels there
/// are: of so many teams of up to 256 channels, with two doubles each.
inline constexpr int norm_teams = 1024;
inline constexpr int norm_slab = 256;
inline constexpr std::int64_t norm_workspace =
    std::int64_t{norm_teams} * norm_slab * 2 * sizeof(double);

/// Where a convolution of n samples by a graph lays what it works with, behind what is the
/// library's.
struct ConvolutionMemory {
  int channels;          // of what is convolved: pixels of photographs are filled up to vectors
  std::int64_t library;  // bytes; in fp32 it may bring all tensors into an order of its own
  std::int64_t sums;     // of the batch norm in front of it
  std::int64_t weights;  // in the library's order, or their gradient
  std::int64_t images;   // as they are convolved, or their gradient
  std::int64_t end;
};
[[nodiscard]] ConvolutionMemory convolution_memory(const LayerSpec& layer, int n);

/// Where a patch embedding of n samples lays patches as rows, and what they are multiplied to.
struct PatchMemory {
  std::int64_t rows;
  std::int64_t products;
  std::int64_t end;
};
[[nodiscard]] PatchMemory patch_memory(const LayerSpec& layer, int n);

/// Bytes of a sample's queries, keys and values, or of their gradients.
[[nodiscard]] std::int64_t attention_gradient_bytes(const LayerSpec& layer);

/// Whether networks of images and tokens have their channels side by side for these libraries.
[[nodiscard]] constexpr bool wants_channels_last(VendorKernels kernels) {
  return kernels == VendorKernels::graphs && sizeof(real) == sizeof(float);
}

/// Marks a layer that has kernels of ours for tensors as they are stored, all of whose channels lie
/// side by side.
void choose_channels_last(LayerSpec& layer);

/// Leaves a layer to the vendor, in the formats that it has, where that has kernels for it.
void choose_vendor(LayerSpec& layer, VendorKernels kernels);

/// How many layers are left to which library, for people; empty where none is.
[[nodiscard]] std::string vendor_layers(const Model& model);

/// What the model is computed slowly by, and why, for people; empty where nothing is known. On GPUs
/// that is whatever is left of products and convolutions to kernels of ours.
[[nodiscard]] std::string slow_kernels(const Model& model, VendorKernels kernels, bool on_gpu);

/// Whether the vendor's library may turn out to be slow with a layer, on the GPU that it runs on.
[[nodiscard]] bool may_be_slow(const LayerSpec& layer);

}  // namespace carousel
