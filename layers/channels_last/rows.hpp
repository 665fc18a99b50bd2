// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Activations whose channels lie side by side, pixel by pixel, as tensor cores want them: rows of
// numbers as they are stored.

#include <cstdint>

#include "core/base/check.hpp"
#include "core/base/range.hpp"
#include "core/engine/layer.hpp"
#include "layers/stored.hpp"

namespace carousel::channels_last {

/// [rows, channels]
template <class Stored>
struct Rows {
  Stored* data = nullptr;
  std::int64_t rows = 0;
  int channels = 0;

  Rows() = default;
  template <class Real>
  explicit Rows(const BasicTensor<Real>& tensor)
      : data(reinterpret_cast<Stored*>(tensor.data)),
        rows(tensor.n * tensor.shape.pixels()),
        channels(tensor.shape.channels) {}

  [[nodiscard]] std::int64_t size() const { return rows * channels; }
};

/// Calls visit(c, i) for every number i of all rows, whose channel is c; a thread of a host takes
/// several that follow each other, and those of a GPU take neighbours.
template <class Visit>
void for_each_number(const ExecutionSpace& exec, const std::string& label, std::int64_t size,
                     int channels, const Visit& visit) {
  constexpr int most = 8;
  const int count = runs_on_host && channels % most == 0 ? most : 1;
  Kokkos::parallel_for(
      label, range(exec, size / count), KOKKOS_LAMBDA(std::int64_t k) {
        const std::int64_t first = k * count;
        const int c = static_cast<int>(first % channels);
        for (int l = 0; l < count; ++l) visit(c + l, first + l);
      });
}

/// Neighbouring channels that a thread takes at once, where their number is a multiple.
inline constexpr int pack_width = 8;

namespace detail {

template <int Width, class Visitor>
void visit_packs(const ExecutionSpace& exec, const std::string& label, std::int64_t size,
                 int channels, const Visitor& visitor) {
  // Each on a GPU: what a thread reads of its channels serves so many packs.
  constexpr std::int64_t most = runs_on_host ? 1 : 4;
  const std::int64_t across = channels / Width;
  const std::int64_t packs = size / Width;
  const std::int64_t threads = (packs + most * across - 1) / (most * across) * across;
  Kokkos::parallel_for(
      label, range(exec, threads), KOKKOS_LAMBDA(std::int64_t k) {
        visitor.template visit<Width>(static_cast<int>(k % across) * Width, k * Width,
                                      threads * Width, size);
      });
}

}  // namespace detail

/// Calls visitor.visit<Width>(c, first, step, end) for packs of so many numbers that begin at
/// first, first + step and so on before end, all of channel c and those behind it.
template <class Visitor>
void for_each_pack(const ExecutionSpace& exec, const std::string& label, std::int64_t size,
                   int channels, const Visitor& visitor) {
  if (channels % pack_width == 0)
    detail::visit_packs<pack_width>(exec, label, size, channels, visitor);
  else
    detail::visit_packs<1>(exec, label, size, channels, visitor);
}

}  // namespace carousel::channels_last
