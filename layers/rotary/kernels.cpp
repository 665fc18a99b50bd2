// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/base/check.hpp"
#include "core/base/range.hpp"
#include "core/engine/layer.hpp"
#include "layers/rotary/op.hpp"
#include "layers/tokens.hpp"

namespace carousel::kernels {
namespace {

using carousel::detail::TokenRows;

struct Turns {
  int pairs;  // of features of a head
  double base;
  real* table;  // [tokens, pairs, 2] cosine and sine
};

void find_turns(const ExecutionSpace& exec, const Turns& turns, int tokens) {
  static const std::string label = "carousel::layers::rotary_turns";
  Kokkos::parallel_for(
      label, range(exec, std::int64_t{tokens} * turns.pairs), KOKKOS_LAMBDA(std::int64_t i) {
        const auto pair = static_cast<double>(i % turns.pairs);
        const std::int64_t token = i / turns.pairs;
        const double angle =
            static_cast<double>(token) * Kokkos::pow(turns.base, -pair / turns.pairs);
        turns.table[2 * i] = static_cast<real>(Kokkos::cos(angle));
        turns.table[2 * i + 1] = static_cast<real>(Kokkos::sin(angle));
      });
}

/// Queries, keys and values of a token in each of its heads.
template <class Stored>
struct Turn {
  TokenRows tokens;
  Turns turns;
  bool back;
  bool adds;
  bool in_place;
  const Stored* x;
  Stored* y;

  /// Parts of a token, of which an index is one: heads of queries, keys and values.
  [[nodiscard]] KOKKOS_FUNCTION int parts() const { return tokens.channels() / (2 * turns.pairs); }
  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t row = index / parts();
    const int part = static_cast<int>(index % parts());
    const bool is_value = part >= parts() / 3 * 2;
    if (is_value && in_place) return;
    const int token = static_cast<int>(row % tokens.tokens);
    const real* const turn = turns.table + std::int64_t{token} * turns.pairs * 2;
    for (int j = 0; j < turns.pairs; ++j) {
      const std::int64_t first = at(row / tokens.tokens, token, part * 2 * turns.pairs + j);
      const std::int64_t second =
          at(row / tokens.tokens, token, part * 2 * turns.pairs + turns.pairs + j);
      const real a = full(x[first]);
      const real b = full(x[second]);
      const real cosine = is_value ? 1 : turn[2 * j];
      const real sine = is_value ? 0 : back ? -turn[2 * j + 1] : turn[2 * j + 1];
      leave(first, a * cosine - b * sine);
      leave(second, b * cosine + a * sine);
    }
  }

 private:
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t at(std::int64_t image, int token, int c) const {
    return tokens.offset(image, c / tokens.block, token) + c % tokens.block;
  }
  KOKKOS_FUNCTION void leave(std::int64_t i, real value) const {
    put(y[i], adds ? full(y[i]) + value : value);
  }
};

class Rotary final : public Layer {
 public:
  Rotary(const LayerSpec& spec, const Engine& engine)
      : turns_{spec.output.channels / 3 / spec.as<op::Rotary>().heads / 2,
               spec.as<op::Rotary>().base, reinterpret_cast<real*>(engine.workspace.data())},
        format_(spec.output_format) {
    CAROUSEL_CHECK(spec.input() == spec.output, "{} becomes {}", to_string(spec.input()),
                   to_string(spec.output));
  }

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    static const std::string label = "carousel::layers::rotary_forward";
    turn(exec, label, arguments.input, arguments.output, false, false);
  }
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    static const std::string label = "carousel::layers::rotary_backward";
    if (arguments.d_input.data == nullptr) return;
    turn(exec, label, arguments.d_output, arguments.d_input, true, arguments.adds_input);
  }

 private:
  void turn(const ExecutionSpace& exec, const std::string& label, const ConstTensor& from,
            const Tensor& to, bool back, bool adds) const {
    const TokenRows tokens(to.shape, format_);
    find_turns(exec, turns_, tokens.tokens);
    with_stored(format_.type, [&]<class Stored>() {
      const Turn<Stored> kernel{tokens,
                                turns_,
                                back,
                                adds,
                                from.data == to.data,
                                reinterpret_cast<const Stored*>(from.data),
                                reinterpret_cast<Stored*>(to.data)};
      const std::int64_t rows = std::int64_t{to.n} * tokens.tokens;
      Kokkos::parallel_for(label, range(exec, rows * kernel.parts()), kernel);
    });
  }

  Turns turns_;
  TensorFormat format_;
};

}  // namespace

std::unique_ptr<Layer> rotary(const LayerSpec& spec, int /*samples*/, const Engine& engine) {
  return std::make_unique<Rotary>(spec, engine);
}

}  // namespace carousel::kernels
