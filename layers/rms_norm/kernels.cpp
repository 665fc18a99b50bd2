// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/base/check.hpp"
#include "core/base/range.hpp"
#include "core/engine/layer.hpp"
#include "layers/rms_norm/op.hpp"
#include "layers/tokens.hpp"

namespace carousel::kernels {
namespace {

using carousel::detail::TokenRows;

template <class Stored>
struct RmsForward {
  TokenRows tokens;
  double epsilon;
  const Stored* x;
  Stored* y;
  const real* weight;  // [c]
  real* saved;         // [n, tokens]
  bool again;          // `saved` is there

  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    if (!again) {
      double squares = 0;
      tokens.for_each(row, [&](std::int64_t i, int) {
        const double value = full(x[i]);
        squares += value * value;
      });
      saved[row] = static_cast<real>(1 / Kokkos::sqrt(squares / tokens.channels() + epsilon));
    }
    const real inverse = saved[row];
    tokens.for_each(row,
                    [&](std::int64_t i, int c) { put(y[i], full(x[i]) * inverse * weight[c]); });
  }
};

/// With g = d_y weight and z the normalised input: d_x = (g - z mean(g z)) inverse.
template <class Stored>
struct RmsInputGradient {
  TokenRows tokens;
  const Stored* x;
  const Stored* d_y;
  Stored* d_x;
  bool adds;
  const real* weight;
  const real* saved;

  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    const real inverse = saved[row];
    double products = 0;
    tokens.for_each(row, [&](std::int64_t i, int c) {
      products += double{full(d_y[i]) * weight[c]} * double{full(x[i])};
    });
    const auto of_square =
        static_cast<real>(products / tokens.channels() * double{inverse} * double{inverse});
    tokens.for_each(row, [&](std::int64_t i, int c) {
      const real gradient = (full(d_y[i]) * weight[c] - full(x[i]) * of_square) * inverse;
      put(d_x[i], adds ? full(d_x[i]) + gradient : gradient);
    });
  }
};

/// Of a channel over all tokens.
template <class Stored>
struct RmsWeightGradient {
  TokenRows tokens;
  int n;
  const Stored* x;
  const Stored* d_y;
  const real* saved;
  real* d_weight;

  KOKKOS_FUNCTION void operator()(std::int64_t c) const {
    const int b = static_cast<int>(c) / tokens.block;
    const int l = static_cast<int>(c) % tokens.block;
    double sum = 0;
    for (int image = 0; image < n; ++image) {
      for (int t = 0; t < tokens.tokens; ++t) {
        const std::int64_t i = tokens.offset(image, b, t) + l;
        const real inverse = saved[std::int64_t{image} * tokens.tokens + t];
        sum += double{full(d_y[i])} * double{full(x[i]) * inverse};
      }
    }
    d_weight[c] = static_cast<real>(sum);
  }
};

template <class Stored>
void run(const ExecutionSpace& exec, const RmsWeightGradient<Stored>& kernel) {
  static const std::string label = "carousel::layers::rms_norm_backward_weight";
  Kokkos::parallel_for(label, pieces(exec, kernel.tokens.channels()), kernel);
}

/// Parameters: weight [c]. Saves 1 / root of the mean square, [n, tokens].
class RmsNorm final : public Layer {
 public:
  explicit RmsNorm(const LayerSpec& spec)
      : epsilon_(spec.as<op::RmsNorm>().epsilon), format_(spec.output_format) {
    CAROUSEL_CHECK(spec.input() == spec.output && spec.inputs.front().format == format_ &&
                       spec.parameter_size() == std::int64_t{spec.output.channels},
                   "{} has {} parameters", spec.label(), spec.parameter_size());
  }

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    static const std::string label = "carousel::layers::rms_norm_forward";
    const TokenRows tokens(arguments.input.shape, format_);
    with_stored(format_.type, [&]<class Stored>() {
      Kokkos::parallel_for(
          label, pieces(exec, std::int64_t{arguments.input.n} * tokens.tokens),
          RmsForward<Stored>{tokens, epsilon_,
                             reinterpret_cast<const Stored*>(arguments.input.data),
                             reinterpret_cast<Stored*>(arguments.output.data), arguments.parameters,
                             reinterpret_cast<real*>(arguments.saved), arguments.again});
    });
  }

  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    static const std::string label = "carousel::layers::rms_norm_backward";
    const TokenRows tokens(arguments.input.shape, format_);
    const int n = arguments.input.n;
    const auto* saved = reinterpret_cast<const real*>(arguments.saved);
    with_stored(format_.type, [&]<class Stored>() {
      const auto* x = reinterpret_cast<const Stored*>(arguments.input.data);
      const auto* d_y = reinterpret_cast<const Stored*>(arguments.d_output.data);
      run(exec, RmsWeightGradient<Stored>{tokens, n, x, d_y, saved, arguments.d_parameters});
      if (arguments.d_input.data == nullptr) return;
      Kokkos::parallel_for(label, pieces(exec, std::int64_t{n} * tokens.tokens),
                           RmsInputGradient<Stored>{
                               tokens, x, d_y, reinterpret_cast<Stored*>(arguments.d_input.data),
                               arguments.adds_input, arguments.parameters, saved});
    });
  }

 private:
  double epsilon_;
  TensorFormat format_;
};

}  // namespace

std::unique_ptr<Layer> rms_norm(const LayerSpec& spec, int /*samples*/, const Engine& /*engine*/) {
  return std::make_unique<RmsNorm>(spec);
}

}  // namespace carousel::kernels
