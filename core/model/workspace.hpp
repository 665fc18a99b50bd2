// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What memory kernels that several kinds of layers share work with for the time of a call: those
// of layers/blocked and layers/channels_last, and those of libraries. In numbers that plans and
// kernels share; all of it follows from shapes, threads have no part in it.

#include <cstdint>
#include <vector>

#include "core/model/layer_spec.hpp"

namespace carousel {

/// Numbers of a transformed tile of Winograd's F(4x4, 3x3), and outputs of a tile along an axis.
inline constexpr int winograd_products = 36;
inline constexpr int winograd_tile = 4;

[[nodiscard]] constexpr int winograd_tiles(const SampleShape& image) {
  return ((image.height + winograd_tile - 1) / winograd_tile) *
         ((image.width + winograd_tile - 1) / winograd_tile);
}

/// Rows of transformed tiles are a block longer than their numbers, so that rows that are powers of
/// two do not share the sets of a cache.
[[nodiscard]] constexpr std::int64_t winograd_pitch(int channels, int block) {
  return std::int64_t{channels} + block;
}

/// From one of the 36 matrices of a transformed tensor to the next, in numbers: a block more than
/// they have, so that the same place of all of them is not in one set of a cache.
[[nodiscard]] constexpr std::int64_t winograd_matrix(std::int64_t numbers, int block) {
  return numbers + block;
}

/// Whether so many tiles, each with `numbers` per product, take no more memory than the transformed
/// weights do, where they can lie in their place.
[[nodiscard]] constexpr bool winograd_tiles_are_few(int tiles, std::int64_t numbers,
                                                    int channels_in, int channels_out) {
  return tiles * numbers <= std::int64_t{channels_in} * channels_out;
}

/// Whether the sums that give the gradient of the weights are made in chunks of the tiles: where
/// they stay in the second cache of a core, and tiles are so many that every chunk has enough, or
/// so few that there is no room for more than chunks.
[[nodiscard]] bool winograd_sums_in_chunks(int tiles, int channels_in, int channels_out, int block);
/// If they are: chunks, whose sums are made apart, then added in order, and tiles of a chunk that
/// are transformed at once.
[[nodiscard]] int winograd_chunks(int tiles, int channels_in, int channels_out);
[[nodiscard]] int winograd_tiles_in_cache(int channels_in, int channels_out);
/// If not: of `tiles`, those that the gradient of the weights transforms before it multiplies.
[[nodiscard]] int winograd_tiles_at_once(int tiles, int channels_in, int channels_out, int block);

/// Parts of a micro-batch whose gradients of weights are added up apart, then in order, so that
/// cores have work where the channels, in `blocks`, are few.
[[nodiscard]] int weight_chunks(int slices, int blocks);

/// Of a convolution or a linear layer in blocks, by direct sums or by Winograd's algorithm: packed
/// or transformed weights, and their gradient.
[[nodiscard]] std::vector<SampleBytes> direct_workspace(const LayerSpec& spec, int block);
/// Likewise of a transposed convolution, whose gradient is that of the convolution back.
[[nodiscard]] std::vector<SampleBytes> transposed_workspace(const LayerSpec& spec, int block);
/// Taps that the window of a depthwise convolution in blocks has at most, and what its gradient
/// takes: sums in double of each image.
inline constexpr int most_depthwise_taps = 121;
[[nodiscard]] SampleBytes depthwise_sums(const LayerSpec& spec);
[[nodiscard]] std::vector<SampleBytes> winograd_workspace(const LayerSpec& spec, int block);
/// Two sums in double per channel of an image; of a batch norm in blocks, or what is fused with
/// one, per channel of a slice of it.
[[nodiscard]] SampleBytes channel_sums(const LayerSpec& spec);
[[nodiscard]] SampleBytes norm_sums(const LayerSpec& spec);

/// What libraries may take for a product: NVIDIA advises 32 MiB for sm_90 (cuBLAS 13, section
/// "Workspace").
inline constexpr std::int64_t product_workspace = std::int64_t{32} << 20;

/// What they may take for a graph; gradients of weights, which are added up in parts, take most.
inline constexpr std::int64_t graph_workspace = std::int64_t{64} << 20;

/// Sums of a norm whose channels lie side by side over chunks of rows, of which there are the fewer
/// the more channels there are: of so many teams of up to 256 channels, with two doubles each.
inline constexpr int norm_teams = 1024;
inline constexpr int norm_slab = 256;
inline constexpr std::int64_t norm_workspace =
    std::int64_t{norm_teams} * norm_slab * 2 * sizeof(double);

/// Room for a bias in the type of the result.
[[nodiscard]] std::int64_t bias_bytes(const LayerSpec& layer);
/// What n samples need at most, where none and one need so much and each part is aligned.
[[nodiscard]] SampleBytes per_sample(std::int64_t none, std::int64_t one);

}  // namespace carousel
