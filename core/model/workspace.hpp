// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What memory the blocked kernels of layers/blocked work with for the time of a call, in numbers
// that plans and kernels share. All of it follows from shapes; threads have no part in it.

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

/// Whether the sums that give the gradient of the weights stay in the second cache of a core.
[[nodiscard]] bool winograd_sums_fit(int channels_in, int channels_out);
/// If they do: chunks of the tiles, whose sums are made apart, then added in order, and tiles of a
/// chunk that are transformed at once.
[[nodiscard]] int winograd_chunks(int tiles, int channels_in, int channels_out);
[[nodiscard]] int winograd_tiles_in_cache(int channels_in, int channels_out);
/// If not: of `tiles`, those that the gradient of the weights transforms before it multiplies.
[[nodiscard]] int winograd_tiles_at_once(int tiles, int channels_in, int channels_out, int block);

/// Parts of a micro-batch whose gradients of weights are added up apart, then in order, so that
/// cores have work where the channels, in `blocks`, are few.
[[nodiscard]] int weight_chunks(int images, int blocks);

/// Of any layer in blocks.
[[nodiscard]] std::vector<SampleBytes> blocked_workspace(const LayerSpec& spec, int block);

}  // namespace carousel
