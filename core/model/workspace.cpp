// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/workspace.hpp"

#include <algorithm>

#include "core/base/align.hpp"
#include "core/model/op.hpp"

namespace carousel {
namespace {

constexpr std::int64_t real_bytes = sizeof(real);
/// So many pieces of work that the cores of a node have enough.
constexpr int wanted_tasks = 32;

std::int64_t tile_bytes(int channels_in, int channels_out, int block) {
  return winograd_products * real_bytes *
         (winograd_pitch(channels_in, block) + winograd_pitch(channels_out, block));
}

/// Of the second cache of a core, what sums and the tiles that are added to them may take.
constexpr std::int64_t near_cache = std::int64_t{896} << 10;
/// Of a cache that all cores share.
constexpr std::int64_t far_cache = std::int64_t{8} << 20;

/// Few enough tiles for a third cache, but so many that their products cost more than fetching the
/// sums.
int most_tiles(int channels_in, int channels_out, int block) {
  constexpr int least = 64;
  return std::max(least,
                  static_cast<int>(far_cache / tile_bytes(channels_in, channels_out, block)));
}

/// Of sums over so many slices of a sample. Packed weights are as large as one chunk of their
/// gradient.
std::vector<SampleBytes> chunks_of(const ParameterSpec& weights, int slices, int blocks) {
  const std::int64_t bytes = weights.size() * real_bytes;
  return {{0, slices * bytes, ((wanted_tasks + blocks - 1) / blocks) * bytes}};
}

std::int64_t sum_bytes(int channels_in, int channels_out) {
  return winograd_products * real_bytes * channels_in * channels_out;
}

bool sums_fit(int channels_in, int channels_out) {
  return sum_bytes(channels_in, channels_out) <= 2 * near_cache / 3;
}

/// Of sums in chunks: fewer tiles are little work beside adding their sums, and fewer chunks leave
/// cores without work.
constexpr int least_tiles = 48;
constexpr int least_chunks = 16;

/// There is room for so many.
int most_chunks(int tiles, int channels_in, int channels_out) {
  const std::int64_t most = far_cache / sum_bytes(channels_in, channels_out);
  return std::min((tiles - 1) / 16 + 1,
                  static_cast<int>(std::clamp<std::int64_t>(most, least_chunks, 64)));
}

std::int64_t chunk_bytes(int channels_in, int channels_out, int block) {
  return winograd_products * real_bytes *
         winograd_matrix(std::int64_t{channels_in} * channels_out, block);
}

/// Tiles that the room of all chunks holds at once beside one sum.
int tiles_in_place_of_chunks(int tiles, int channels_in, int channels_out, int block) {
  const std::int64_t chunk = chunk_bytes(channels_in, channels_out, block);
  const std::int64_t gaps = 2 * winograd_products * real_bytes * winograd_matrix(0, block);
  const std::int64_t room = (most_chunks(tiles, channels_in, channels_out) - 1) * chunk - gaps;
  return static_cast<int>(
      std::clamp<std::int64_t>(room / tile_bytes(channels_in, channels_out, block), 0, tiles));
}

}  // namespace

bool winograd_sums_in_chunks(int tiles, int channels_in, int channels_out, int block) {
  if (!sums_fit(channels_in, channels_out)) return false;
  const int chunks = winograd_chunks(tiles, channels_in, channels_out);
  return tiles >= chunks * least_tiles ||
         tiles_in_place_of_chunks(tiles, channels_in, channels_out, block) <
             std::min(tiles, least_tiles);
}

int winograd_chunks(int tiles, int channels_in, int channels_out) {
  return std::min(most_chunks(tiles, channels_in, channels_out),
                  std::max(least_chunks, tiles / least_tiles));
}

int winograd_tiles_in_cache(int channels_in, int channels_out) {
  const std::int64_t tile = winograd_products * real_bytes * (channels_in + channels_out);
  return static_cast<int>(
      std::clamp<std::int64_t>((near_cache - sum_bytes(channels_in, channels_out)) / tile, 12, 48));
}

int winograd_tiles_at_once(int tiles, int channels_in, int channels_out, int block) {
  const int most = std::min(tiles, most_tiles(channels_in, channels_out, block));
  if (!sums_fit(channels_in, channels_out)) return most;
  return std::min(most, tiles_in_place_of_chunks(tiles, channels_in, channels_out, block));
}

int weight_chunks(int slices, int blocks) {
  return std::min(slices, (wanted_tasks + blocks - 1) / blocks);
}

/// Transformed weights, and their gradient with the tiles that it is summed over.
std::vector<SampleBytes> winograd_workspace(const LayerSpec& spec, int block) {
  const int in = spec.input().channels;
  const int out = spec.output.channels;
  const std::int64_t tile = tile_bytes(in, out, block);
  const std::int64_t weights = winograd_matrix(std::int64_t{in} * out, block);
  const std::int64_t gaps = 2 * winograd_matrix(0, block);  // of both tensors of tiles
  if (sums_fit(in, out)) {
    const std::int64_t chunk = chunk_bytes(in, out, block);
    return {{0, most_chunks(winograd_tiles(spec.input()), in, out) * chunk,
             most_chunks(std::numeric_limits<int>::max(), in, out) * chunk}};
  }
  return {{winograd_products * real_bytes * (weights + gaps), winograd_tiles(spec.input()) * tile,
           most_tiles(in, out, block) * tile}};
}

std::vector<SampleBytes> direct_workspace(const LayerSpec& spec, int block) {
  // Pixel by pixel, as one block.
  const bool reads_images = !lies_in_blocks(spec.input(), spec.inputs.front().format, block);
  return chunks_of(spec.weights(), spec.output.depth,
                   reads_images ? 1 : spec.input().channels / block);
}

std::vector<SampleBytes> transposed_workspace(const LayerSpec& spec, int block) {
  return chunks_of(spec.weights(), spec.input().depth, spec.output.channels / block);
}

SampleBytes depthwise_sums(const LayerSpec& spec) {
  return {0, spec.weights().size() * std::int64_t{sizeof(double)}};
}

SampleBytes channel_sums(const LayerSpec& spec) {
  return {0, 2 * std::int64_t{sizeof(double)} * spec.input().channels};
}

SampleBytes norm_sums(const LayerSpec& spec) {
  return {0, channel_sums(spec).per_sample * spec.input().depth};
}

std::int64_t bias_bytes(const LayerSpec& layer) {
  return align_up(2 * std::int64_t{layer.output.channels});
}

SampleBytes per_sample(std::int64_t none, std::int64_t one) {
  return {none, align_up(one - none)};
}

}  // namespace carousel
