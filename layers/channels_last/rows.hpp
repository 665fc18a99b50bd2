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
        rows(std::int64_t{tensor.n} * tensor.shape.height * tensor.shape.width),
        channels(tensor.shape.channels) {}

  [[nodiscard]] std::int64_t size() const { return rows * channels; }
};

/// Calls visit(c, i) for every number i of all rows, whose channel is c; a thread takes several
/// that follow each other.
template <class Visit>
void for_each_number(const ExecutionSpace& exec, const std::string& label, std::int64_t size,
                     int channels, const Visit& visit) {
  constexpr int most = 8;
  const int count = channels % most == 0 ? most : 1;
  Kokkos::parallel_for(
      label, range(exec, size / count), KOKKOS_LAMBDA(std::int64_t k) {
        const std::int64_t first = k * count;
        const int c = static_cast<int>(first % channels);
        for (int l = 0; l < count; ++l) visit(c + l, first + l);
      });
}

}  // namespace carousel::channels_last
