// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tiles of images that Winograd's convolutions work on: where they are, and how a tile of one
// block of channels is read, transformed and written. Products are made elsewhere.

#include "layers/blocked/tensor.hpp"
#include "layers/blocked/winograd_transforms.hpp"

namespace carousel::blocked::winograd {

/// A tile of 4x4 outputs.
struct TilePlace {
  int image;
  int y;  // of its first output
  int x;
};

/// Tiles of a micro-batch, image after image and row after row.
struct TileGrid {
  int images;
  int down;
  int across;

  TileGrid(int n, int h, int w)
      : images(n), down((h + tile - 1) / tile), across((w + tile - 1) / tile) {}
  [[nodiscard]] int size() const { return images * down * across; }
  [[nodiscard]] TilePlace place(int number) const {
    const int row = number / across;
    return {row / down, row % down * tile, number % across * tile};
  }
};

/// From one tile's numbers of so many blocks to the next's, where they are many.
[[nodiscard]] inline std::int64_t pitch(int blocks) {
  return winograd_pitch(blocks * lanes, lanes);
}

/// Writes B^T d B of one block of channels to to[k * stride], k = 0 .. 35; beyond the image are
/// zeros.
template <class Source, class Stored>
[[gnu::always_inline]] inline void read_patch(const Planes<const Stored>& x, const Source& source,
                                              const TilePlace& at, int block, real* to,
                                              std::int64_t stride) {
  const int top = at.y - 1;
  const int left = at.x - 1;
  const bool inside = top >= 0 && left >= 0 && top + patch <= x.h && left + patch <= x.w;
  const Stored* plane = x.plane(at.image, block);
  Lanes half[patch][patch];
  CAROUSEL_UNROLL_ALL
  for (int j = 0; j < patch; ++j) {
    Lanes d[patch];
    if (inside) {
      const Stored* column = plane + (std::int64_t{top} * x.w + left + j) * lanes;
      CAROUSEL_UNROLL_ALL
      for (int i = 0; i < patch; ++i)
        d[i] = made_of(source, column + std::int64_t{i} * x.w * lanes, block);
    } else {
      for (int i = 0; i < patch; ++i) {
        const bool exists = top + i >= 0 && top + i < x.h && left + j >= 0 && left + j < x.w;
        d[i] = exists ? made_of(source, plane + (std::int64_t{top + i} * x.w + left + j) * lanes,
                                block)
                      : Lanes{};
      }
    }
    Lanes column[patch];
    transform_input(d, column);
    CAROUSEL_UNROLL_ALL
    for (int i = 0; i < patch; ++i) half[i][j] = column[i];
  }
  CAROUSEL_UNROLL_ALL
  for (int i = 0; i < patch; ++i) {
    Lanes row[patch];
    transform_input(half[i], row);
    CAROUSEL_UNROLL_ALL
    for (int j = 0; j < patch; ++j) store(to + (i * patch + j) * stride, row[j]);
  }
}

/// Writes A d_y A^T of one block of channels to to[k * stride]; beyond the image are zeros.
template <class Stored>
[[gnu::always_inline]] inline void read_gradient(const Planes<const Stored>& d_y,
                                                 const TilePlace& at, int block, real* to,
                                                 std::int64_t stride) {
  const Stored* plane = d_y.plane(at.image, block);
  Lanes half[patch][tile];
  CAROUSEL_UNROLL_ALL
  for (int j = 0; j < tile; ++j) {
    Lanes d[tile];
    for (int i = 0; i < tile; ++i) {
      const bool exists = at.y + i < d_y.h && at.x + j < d_y.w;
      d[i] = exists ? load(plane + (std::int64_t{at.y + i} * d_y.w + at.x + j) * lanes) : Lanes{};
    }
    Lanes column[patch];
    transform_d_output(d, column);
    CAROUSEL_UNROLL_ALL
    for (int i = 0; i < patch; ++i) half[i][j] = column[i];
  }
  CAROUSEL_UNROLL_ALL
  for (int i = 0; i < patch; ++i) {
    Lanes row[patch];
    transform_d_output(half[i], row);
    CAROUSEL_UNROLL_ALL
    for (int j = 0; j < patch; ++j) store(to + (i * patch + j) * stride, row[j]);
  }
}

/// Writes A^T m A of one block of channels, with m at from[k * stride], where the image is.
template <class Stored>
[[gnu::always_inline]] inline void write_tile(const real* from, std::int64_t stride,
                                              const Planes<Stored>& y, const TilePlace& at,
                                              int block, bool adds) {
  Lanes half[tile][patch];
  CAROUSEL_UNROLL_ALL
  for (int j = 0; j < patch; ++j) {
    Lanes m[patch];
    CAROUSEL_UNROLL_ALL
    for (int i = 0; i < patch; ++i) m[i] = load(from + (i * patch + j) * stride);
    Lanes column[tile];
    transform_output(m, column);
    CAROUSEL_UNROLL_ALL
    for (int i = 0; i < tile; ++i) half[i][j] = column[i];
  }
  Stored* plane = y.plane(at.image, block);
  CAROUSEL_UNROLL_ALL
  for (int i = 0; i < tile; ++i) {
    if (at.y + i >= y.h) break;
    Lanes row[tile];
    transform_output(half[i], row);
    Stored* to = plane + (std::int64_t{at.y + i} * y.w + at.x) * lanes;
    CAROUSEL_UNROLL_ALL
    for (int j = 0; j < tile; ++j) {
      if (at.x + j < y.w) store(to + j * lanes, adds ? load(to + j * lanes) + row[j] : row[j]);
    }
  }
}

}  // namespace carousel::blocked::winograd
