// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/base/range.hpp"
#include "core/engine/layer.hpp"
#include "layers/pixel.hpp"

namespace carousel::kernels {
namespace {

/// How n slices, rows or columns are shared out among `size` windows.
struct Shares {
  int n;
  int size;

  [[nodiscard]] KOKKOS_FUNCTION int begin(int o) const {
    return static_cast<int>(std::int64_t{o} * n / size);
  }
  [[nodiscard]] KOKKOS_FUNCTION int end(int o) const {
    return static_cast<int>(((o + std::int64_t{1}) * n + size - 1) / size);
  }
  /// Rows of window o.
  [[nodiscard]] KOKKOS_FUNCTION int of(int o) const { return end(o) - begin(o); }
  /// The windows that row i lies in.
  [[nodiscard]] KOKKOS_FUNCTION int first_with(int i) const {
    return static_cast<int>(std::int64_t{i} * size / n);
  }
  [[nodiscard]] KOKKOS_FUNCTION int behind_last_with(int i) const {
    return static_cast<int>(((i + std::int64_t{1}) * size + n - 1) / n);
  }
};

class AdaptiveAveragePool final : public Layer {
 public:
  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    static const std::string label = "carousel::layers::adaptive_avg_pool_forward";
    const Shares slices{arguments.input.shape.depth, arguments.output.shape.depth};
    const Shares rows{arguments.input.shape.height, arguments.output.shape.height};
    const Shares columns{arguments.input.shape.width, arguments.output.shape.width};
    const real* x = arguments.input.data;
    real* y = arguments.output.data;
    Kokkos::parallel_for(
        label, range(exec, arguments.output.size()), KOKKOS_LAMBDA(std::int64_t i) {
          const Pixel at(i, slices.size, rows.size, columns.size);
          const real* plane = x + at.plane * slices.n * rows.n * columns.n;
          real sum = 0;
          for (int q = slices.begin(at.z); q < slices.end(at.z); ++q) {
            for (int r = rows.begin(at.y); r < rows.end(at.y); ++r) {
              for (int c = columns.begin(at.x); c < columns.end(at.x); ++c)
                sum += plane[(q * rows.n + r) * columns.n + c];
            }
          }
          y[i] = sum / (slices.of(at.z) * rows.of(at.y) * columns.of(at.x));
        });
  }

  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    static const std::string label = "carousel::layers::adaptive_avg_pool_backward";
    if (arguments.d_input.data == nullptr) return;
    const Shares slices{arguments.d_input.shape.depth, arguments.d_output.shape.depth};
    const Shares rows{arguments.d_input.shape.height, arguments.d_output.shape.height};
    const Shares columns{arguments.d_input.shape.width, arguments.d_output.shape.width};
    const real* d_y = arguments.d_output.data;
    real* d_x = arguments.d_input.data;
    const bool adds = arguments.adds_input;
    Kokkos::parallel_for(
        label, range(exec, arguments.d_input.size()), KOKKOS_LAMBDA(std::int64_t i) {
          const Pixel at(i, slices.n, rows.n, columns.n);
          const real* plane = d_y + at.plane * slices.size * rows.size * columns.size;
          real sum = adds ? d_x[i] : 0;
          for (int oz = slices.first_with(at.z); oz < slices.behind_last_with(at.z); ++oz) {
            for (int oy = rows.first_with(at.y); oy < rows.behind_last_with(at.y); ++oy) {
              const real* from = plane + (oz * rows.size + oy) * columns.size;
              const int pixels = slices.of(oz) * rows.of(oy);
              for (int ox = columns.first_with(at.x); ox < columns.behind_last_with(at.x); ++ox)
                sum += from[ox] / (pixels * columns.of(ox));
            }
          }
          d_x[i] = sum;
        });
  }
};

}  // namespace

std::unique_ptr<Layer> adaptive_avg_pool(const LayerSpec& /*spec*/, int /*samples*/,
                                         const Engine& /*engine*/) {
  return std::make_unique<AdaptiveAveragePool>();
}

}  // namespace carousel::kernels
