// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/workspace.hpp"

namespace carousel {
namespace {

constexpr std::int64_t real_bytes = sizeof(real);
/// So many pieces of work that the cores of a node have enough.
constexpr int wanted_tasks = 32;

std::int64_t tile_bytes(int channels_in, int channels_out, int block) {
  return winograd_products * real_bytes *
         (winograd_pitch(channels_in, block) + winograd_pitch(channels_out, block));
}

/// Few enough tiles for a third cache, but so many that their products cost more than fetching the
/// sums.
int most_tiles(int channels_in, int channels_out, int block) {
  constexpr std::int64_t cache = std::int64_t{8} << 20;
  constexpr int least = 64;
  return std::max(least, static_cast<int>(cache / tile_bytes(channels_in, channels_out, block)));
}

/// Transformed weights, and their gradient with the tiles that it is summed over.
std::vector<SampleBytes> winograd_workspace(const LayerSpec& spec, int block) {
  const int in = spec.input().channels;
  const int out = spec.output.channels;
  const std::int64_t tile = tile_bytes(in, out, block);
  const std::int64_t weights = winograd_matrix(std::int64_t{in} * out, block);
  const std::int64_t gaps = 2 * winograd_matrix(0, block);  // of both tensors of tiles
  return {{winograd_products * real_bytes * (weights + gaps), winograd_tiles(spec.input()) * tile,
           most_tiles(in, out, block) * tile}};
}

/// Packed weights are as large as one chunk of their gradient.
std::vector<SampleBytes> direct_workspace(const LayerSpec& spec, int block) {
  const std::int64_t bytes = spec.weights().size() * real_bytes;
  const int blocks = (spec.input().channels + block - 1) / block;
  return {{0, bytes, ((wanted_tasks + blocks - 1) / blocks) * bytes}};
}

/// Two sums in double per channel and image.
SampleBytes norm_sums(const LayerSpec& spec) {
  return {0, 2 * std::int64_t{sizeof(double)} * spec.input().channels};
}

}  // namespace

int winograd_tiles_at_once(int tiles, int channels_in, int channels_out, int block) {
  return std::min(tiles, most_tiles(channels_in, channels_out, block));
}

int weight_chunks(int images, int blocks) {
  return std::min(images, (wanted_tasks + blocks - 1) / blocks);
}

std::vector<SampleBytes> blocked_workspace(const LayerSpec& spec, int block) {
  std::vector<SampleBytes> parts;
  if (spec.is<kind::Convolution>())
    parts = spec.as<kind::Convolution>().winograd ? winograd_workspace(spec, block)
                                                  : direct_workspace(spec, block);
  if (spec.is<kind::Linear>() || spec.is<kind::PatchEmbedding>())
    parts = direct_workspace(spec, block);
  if (!spec.buffers.empty()) parts.push_back(norm_sums(spec));
  return parts;
}

}  // namespace carousel
