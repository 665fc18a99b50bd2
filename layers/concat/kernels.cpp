// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/engine/layer.hpp"
#include "layers/row_chunks.hpp"
#include "layers/stored.hpp"

namespace carousel::kernels {
namespace {

/// Rows of some numbers of a wider tensor, from a column on.
struct Columns {
  std::int64_t rows;
  std::int64_t width;  // of the wider tensor
  std::int64_t begin;
  std::int64_t count;

  [[nodiscard]] KOKKOS_FUNCTION RowChunks chunks() const { return {rows, count}; }
};

/// Calls visit(number of the narrow tensor, of the wide one) for those of an index.
template <class Visit>
KOKKOS_FUNCTION void visit_columns(const Columns& at, std::int64_t index, const Visit& visit) {
  const RowChunk chunk = at.chunks().at(index);
  const std::int64_t narrow = chunk.row * at.count;
  const std::int64_t wide = chunk.row * at.width + at.begin;
  for (std::int64_t k = chunk.first; k < chunk.end; ++k) visit(narrow + k, wide + k);
}

template <class Stored>
void put_columns(const ExecutionSpace& exec, const std::string& label, const Columns& at,
                 const real* from, real* to) {
  const auto* x = reinterpret_cast<const Stored*>(from);
  auto* y = reinterpret_cast<Stored*>(to);
  Kokkos::parallel_for(
      label, at.chunks().indices(exec), KOKKOS_LAMBDA(std::int64_t index) {
        visit_columns(at, index,
                      [&](std::int64_t narrow, std::int64_t wide) { y[wide] = x[narrow]; });
      });
}

template <class Stored>
void take_columns(const ExecutionSpace& exec, const std::string& label, const Columns& at,
                  const real* from, real* to, bool adds) {
  const auto* d_y = reinterpret_cast<const Stored*>(from);
  auto* d_x = reinterpret_cast<Stored*>(to);
  Kokkos::parallel_for(
      label, at.chunks().indices(exec), KOKKOS_LAMBDA(std::int64_t index) {
        const bool adds_here = adds;
        visit_columns(at, index, [&](std::int64_t narrow, std::int64_t wide) {
          if (adds_here)
            put(d_x[narrow], full(d_x[narrow]) + full(d_y[wide]));
          else
            d_x[narrow] = d_y[wide];
        });
      });
}

class Concat final : public Layer {
 public:
  explicit Concat(const LayerSpec& spec) : type_(spec.output_format.type) {
    // In plain order and in blocks an input is one run of numbers of a sample; with all channels
    // side by side, of a pixel.
    const std::int64_t pixels = spec.output.pixels();
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
