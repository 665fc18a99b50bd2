// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Images and volumes made larger by a whole factor. Backward gathers: every pixel of the input
// looks at the pixels of the output that it is part of, so that no two threads write to one place.

#include <string>

#include "core/base/range.hpp"
#include "core/engine/layer.hpp"
#include "core/model/op.hpp"
#include "layers/pixel.hpp"

namespace carousel {

/// Of n slices, rows or columns, each becomes `factor`: the one that it is a copy of.
struct NearestRows {
  int n;
  int factor;

  [[nodiscard]] KOKKOS_FUNCTION int first_of(int o) const { return o / factor; }
  [[nodiscard]] KOKKOS_FUNCTION int last_of(int o) const { return o / factor; }
  /// What row o of the output has of row i.
  [[nodiscard]] KOKKOS_FUNCTION real weight(int /*o*/, int /*i*/) const { return 1; }
  /// Rows of the output that row i may be part of.
  [[nodiscard]] KOKKOS_FUNCTION int begin(int i) const { return i * factor; }
  [[nodiscard]] KOKKOS_FUNCTION int end(int i) const { return (i + 1) * factor; }
};

/// The same with the two rows whose middles are next to that of the row of the output; at the
/// edges, one.
struct LinearRows {
  int n;
  int factor;

  [[nodiscard]] KOKKOS_FUNCTION real place(int o) const {
    return Kokkos::max(real(0), (real(o) + real(0.5)) / real(factor) - real(0.5));
  }
  [[nodiscard]] KOKKOS_FUNCTION int first_of(int o) const {
    return Kokkos::min(static_cast<int>(place(o)), n - 1);
  }
  [[nodiscard]] KOKKOS_FUNCTION int last_of(int o) const {
    return Kokkos::min(first_of(o) + 1, n - 1);
  }
  [[nodiscard]] KOKKOS_FUNCTION real weight(int o, int i) const {
    const int first = first_of(o);
    if (first == n - 1) return i == first ? real(1) : real(0);
    const real behind = place(o) - real(first);
    return i == first ? 1 - behind : i == first + 1 ? behind : real(0);
  }
  [[nodiscard]] KOKKOS_FUNCTION int begin(int i) const { return Kokkos::max(0, (i - 1) * factor); }
  [[nodiscard]] KOKKOS_FUNCTION int end(int i) const {
    return Kokkos::min(n * factor, (i + 2) * factor);
  }
};

template <class Rows>
class Upsample final : public Layer {
 public:
  explicit Upsample(const LayerSpec& spec)
      : slices_{spec.input().depth, spec.output.depth / spec.input().depth},
        rows_{spec.input().height, spec.output.height / spec.input().height},
        columns_{spec.input().width, spec.output.width / spec.input().width},
        forward_label_("carousel::layers::" + std::string(spec.kind->name) + "_forward"),
        backward_label_("carousel::layers::" + std::string(spec.kind->name) + "_backward") {}

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    const Rows slices = slices_;
    const Rows rows = rows_;
    const Rows columns = columns_;
    const real* x = arguments.input.data;
    real* y = arguments.output.data;
    const int depth = slices.n * slices.factor;
    const int height = rows.n * rows.factor;
    const int width = columns.n * columns.factor;
    Kokkos::parallel_for(
        forward_label_, range(exec, arguments.output.size()), KOKKOS_LAMBDA(std::int64_t k) {
          const Pixel at(k, depth, height, width);
          const real* plane = x + at.plane * slices.n * rows.n * columns.n;
          real sum = 0;
          for (int q = slices.first_of(at.z); q <= slices.last_of(at.z); ++q) {
            for (int r = rows.first_of(at.y); r <= rows.last_of(at.y); ++r) {
              const real weight = slices.weight(at.z, q) * rows.weight(at.y, r);
              for (int c = columns.first_of(at.x); c <= columns.last_of(at.x); ++c)
                sum += weight * columns.weight(at.x, c) * plane[(q * rows.n + r) * columns.n + c];
            }
          }
          y[k] = sum;
        });
  }

  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    if (arguments.d_input.data == nullptr) return;
    const Rows slices = slices_;
    const Rows rows = rows_;
    const Rows columns = columns_;
    const real* d_y = arguments.d_output.data;
    real* d_x = arguments.d_input.data;
    const bool adds = arguments.adds_input;
    const int width = columns.n * columns.factor;
    const int height = rows.n * rows.factor;
    const std::int64_t outputs = std::int64_t{slices.n} * slices.factor * height * width;
    Kokkos::parallel_for(
        backward_label_, range(exec, arguments.d_input.size()), KOKKOS_LAMBDA(std::int64_t k) {
          const Pixel at(k, slices.n, rows.n, columns.n);
          const real* plane = d_y + at.plane * outputs;
          real sum = adds ? d_x[k] : 0;
          for (int oz = slices.begin(at.z); oz < slices.end(at.z); ++oz) {
            for (int oy = rows.begin(at.y); oy < rows.end(at.y); ++oy) {
              const real* from = plane + (std::int64_t{oz} * height + oy) * width;
              real row = 0;
              for (int ox = columns.begin(at.x); ox < columns.end(at.x); ++ox)
                row += columns.weight(ox, at.x) * from[ox];
              sum += slices.weight(oz, at.z) * rows.weight(oy, at.y) * row;
            }
          }
          d_x[k] = sum;
        });
  }

 private:
  Rows slices_;
  Rows rows_;
  Rows columns_;
  std::string forward_label_;
  std::string backward_label_;
};

}  // namespace carousel
