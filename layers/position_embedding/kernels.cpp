// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/base/check.hpp"
#include "core/base/range.hpp"
#include "core/engine/layer.hpp"
#include "layers/add_numbers.hpp"
#include "layers/tokens.hpp"

namespace carousel::kernels {
namespace {

using carousel::detail::TokenRows;

template <class Stored, class Weight>
void add_positions(const ExecutionSpace& exec, const TokenRows& tokens, int n, const Stored* x,
                   const Weight* weights, Stored* y) {
  static const std::string label = "carousel::layers::position_embedding_forward";
  const int pieces = tokens.pieces();
  Kokkos::parallel_for(
      label, range(exec, std::int64_t{n} * tokens.tokens * pieces), KOKKOS_LAMBDA(std::int64_t i) {
        const int piece = static_cast<int>(i % pieces);
        const int together = tokens.together();
        const std::int64_t row = i / pieces;
        const std::int64_t first = tokens.piece_offset(row, piece);
        const Weight* const added =
            weights + row % tokens.tokens * tokens.channels() + piece * together;
        for (int l = 0; l < together; ++l) put(y[first + l], full(x[first + l]) + full(added[l]));
      });
}

/// Of a place, over all samples in their order.
template <class Stored>
void add_up(const ExecutionSpace& exec, const TokenRows& tokens, int n, const Stored* d_y,
            real* d_weights) {
  static const std::string label = "carousel::layers::position_embedding_backward_weight";
  const int pieces = tokens.pieces();
  Kokkos::parallel_for(
      label, range(exec, std::int64_t{tokens.tokens} * pieces), KOKKOS_LAMBDA(std::int64_t i) {
        const int piece = static_cast<int>(i % pieces);
        const int together = tokens.together();
        const std::int64_t token = i / pieces;
        real* const sums = d_weights + token * tokens.channels() + piece * together;
        for (int image = 0; image < n; ++image) {
          const Stored* const from =
              d_y + tokens.piece_offset(std::int64_t{image} * tokens.tokens + token, piece);
          for (int l = 0; l < together; ++l)
            sums[l] = image == 0 ? full(from[l]) : sums[l] + full(from[l]);
        }
      });
}

/// Parameters: weight [tokens, c].
class PositionEmbedding final : public Layer {
 public:
  explicit PositionEmbedding(const LayerSpec& spec)
      : learns_(!spec.is_frozen()),
        format_(spec.output_format),
        weight_(spec.parameters.front().type) {
    CAROUSEL_CHECK(spec.input() == spec.output && spec.parameter_size() == spec.output.size(),
                   "{} has {} parameters", spec.label(), spec.parameter_size());
  }

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    const TokenRows tokens(arguments.input.shape, format_);
    with_stored(format_.type, [&]<class Stored>() {
      with_stored(weight_, [&]<class Weight>() {
        add_positions(exec, tokens, arguments.input.n,
                      reinterpret_cast<const Stored*>(arguments.input.data),
                      reinterpret_cast<const Weight*>(arguments.parameters),
                      reinterpret_cast<Stored*>(arguments.output.data));
      });
    });
  }

  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    static const std::string label = "carousel::layers::position_embedding_backward";
    const Tensor& d_x = arguments.d_input;
    const Tensor& d_y = arguments.d_output;
    with_stored(format_.type, [&]<class Stored>() {
      if (learns_)
        add_up(exec, TokenRows(d_y.shape, format_), d_y.n,
               reinterpret_cast<const Stored*>(d_y.data), arguments.d_parameters);
      if (d_x.data != nullptr && d_x.data != d_y.data)
        hand_on<Stored>(exec, label, d_y, d_x, arguments.adds_input);
    });
  }

 private:
  bool learns_;
  TensorFormat format_;
  DataType weight_;
};

}  // namespace

std::unique_ptr<Layer> position_embedding(const LayerSpec& spec, int /*samples*/,
                                          const Engine& /*engine*/) {
  return std::make_unique<PositionEmbedding>(spec);
}

}  // namespace carousel::kernels
