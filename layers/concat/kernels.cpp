// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/base/range.hpp"
#include "core/engine/layer.hpp"
#include "layers/stored.hpp"

namespace carousel::kernels {
namespace {

/// Rows of some numbers of a wider tensor, from a column on.
struct Columns {
  std::int64_t rows;
  std::int64_t width;  // of the wider tensor
  std::int64_t begin;
  std::int64_t count;
};

template <class Stored>
void put_columns(const ExecutionSpace& exec, const std::string& label, const Columns& at,
                 const real* from, real* to) {
  const auto* x = reinterpret_cast<const Stored*>(from);
  auto* y = reinterpret_cast<Stored*>(to);
  Kokkos::parallel_for(
      label, range(exec, at.rows * at.count), KOKKOS_LAMBDA(std::int64_t i) {
        y[i / at.count * at.width + at.begin + i % at.count] = x[i];
      });
}

template <class Stored>
void take_columns(const ExecutionSpace& exec, const std::string& label, const Columns& at,
                  const real* from, real* to, bool adds) {
  const auto* d_y = reinterpret_cast<const Stored*>(from);
  auto* d_x = reinterpret_cast<Stored*>(to);
  Kokkos::parallel_for(
      label, range(exec, at.rows * at.count), KOKKOS_LAMBDA(std::int64_t i) {
        const Stored d = d_y[i / at.count * at.width + at.begin + i % at.count];
        if (adds)
          put(d_x[i], full(d_x[i]) + full(d));
        else
          d_x[i] = d;
      });
}

class Concat final : public Layer {
 public:
  explicit Concat(const LayerSpec& spec) : type_(spec.output_format.type) {
    // In plain order and in blocks an input is one run of numbers of a sample; with all channels
    // side by side, of a pixel.
    const std::int64_t pixels = std::int64_t{spec.output.height} * spec.output.width;
    const bool by_pixel = spec.output_format.block == spec.output.channels && pixels > 1;
    rows_ = by_pixel ? pixels : 1;
    for (const LayerInput& input : spec.inputs) counts_.push_back(input.shape.size() / rows_);
  }

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    static const std::string label = "carousel::layers::concat_forward";
    with_stored(type_, [&]<class Stored>() {
      const int n = arguments.output.n;
      put_columns<Stored>(exec, label, first(n), arguments.input.data, arguments.output.data);
      put_columns<Stored>(exec, label, second(n), arguments.second.data, arguments.output.data);
    });
  }
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    static const std::string label = "carousel::layers::concat_backward";
    const real* const d_y = arguments.d_output.data;
    const int n = arguments.d_output.n;
    with_stored(type_, [&]<class Stored>() {
      if (real* d_x = arguments.d_input.data)
        take_columns<Stored>(exec, label, first(n), d_y, d_x, arguments.adds_input);
      if (real* d_x = arguments.d_second.data)
        take_columns<Stored>(exec, label, second(n), d_y, d_x, arguments.adds_second);
    });
  }

 private:
  [[nodiscard]] Columns first(int n) const {
    return {n * rows_, counts_[0] + counts_[1], 0, counts_[0]};
  }
  [[nodiscard]] Columns second(int n) const {
    return {n * rows_, counts_[0] + counts_[1], counts_[0], counts_[1]};
  }

  DataType type_;
  std::int64_t rows_ = 1;             // of a sample
  std::vector<std::int64_t> counts_;  // [input] numbers in a row
};

}  // namespace

std::unique_ptr<Layer> concat(const LayerSpec& spec, int /*samples*/, const Engine& /*engine*/) {
  return std::make_unique<Concat>(spec);
}

}  // namespace carousel::kernels
