// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/layer_norm/layer_norm.hpp"

#include "core/base/range.hpp"
#include "layers/layer_norm/op.hpp"
#include "layers/tokens.hpp"

namespace carousel {
namespace {

using detail::Tokens;

/// Neighbouring tokens that one piece of work normalises.
template <int Block>
constexpr int group_size = Block > 1 ? 8 : 1;

/// The features of such tokens, and sums over them: in lanes of a block, then of all lanes.
template <int Block>
struct Group {
  Tokens<Block> at;
  int image;
  int first;
  int count;

  KOKKOS_FUNCTION Group(const Tokens<Block>& tokens, std::int64_t number) : at(tokens) {
    const int groups = groups_of(tokens);
    image = static_cast<int>(number / groups);
    first = static_cast<int>(number % groups) * group_size<Block>;
    count = Kokkos::min(int{group_size<Block>}, tokens.tokens - first);
  }
  [[nodiscard]] KOKKOS_FUNCTION static int groups_of(const Tokens<Block>& tokens) {
    return (tokens.tokens + group_size<Block> - 1) / group_size<Block>;
  }

  /// Calls visit(offset, token of the group, channel, lane) for every number.
  template <class Visit>
  KOKKOS_FUNCTION void for_each(const Visit& visit) const {
    for (int b = 0; b < at.blocks; ++b) {
      const std::int64_t begin = at.offset(image, b, first);
      for (int t = 0; t < count; ++t) {
        for (int l = 0; l < Block; ++l) visit(begin + t * Block + l, t, b * Block + l, l);
      }
    }
  }
  /// sums[t] = the sum of term(offset, t, channel) over the features.
  template <class Term>
  KOKKOS_FUNCTION void sum(double* sums, const Term& term) const {
    real partial[group_size<Block>][Block] = {};
    for_each([&](std::int64_t i, int t, int c, int l) { partial[t][l] += term(i, t, c); });
    for (int t = 0; t < count; ++t) {
      sums[t] = 0;
      for (int l = 0; l < Block; ++l) sums[t] += partial[t][l];
    }
  }
};

template <int Block, class Stored>
struct Forward {
  Tokens<Block> tokens;
  const Stored* x;
  Stored* y;
  const real* weight;  // [c]
  const real* bias;    // [c]; null: none
  real* saved;         // [n, 2, tokens]
  bool again;          // `saved` is there
  double epsilon;

  KOKKOS_FUNCTION void find(const Group<Block>& group, real* means, real* inverses) const {
    constexpr int most = group_size<Block>;
    const int channels = tokens.channels();
    double sums[most];
    real mean[most] = {};
    group.sum(sums, [&](std::int64_t i, int, int) { return full(x[i]); });
    for (int t = 0; t < group.count; ++t)
      means[t] = mean[t] = static_cast<real>(sums[t] / channels);
    // In a second pass, so that a mean far from zero does no harm.
    group.sum(sums, [&](std::int64_t i, int t, int) {
      const real d = full(x[i]) - mean[t];
      return d * d;
    });
    for (int t = 0; t < group.count; ++t)
      inverses[t] = static_cast<real>(1 / Kokkos::sqrt(sums[t] / channels + epsilon));
  }

  KOKKOS_FUNCTION void operator()(std::int64_t number) const {
    const Group<Block> group(tokens, number);
    real* means = saved + std::int64_t{2} * group.image * tokens.tokens + group.first;
    real* inverses = means + tokens.tokens;
    if (!again) find(group, means, inverses);
    real mean[group_size<Block>] = {};
    real inverse[group_size<Block>] = {};
    for (int t = 0; t < group.count; ++t) {
      mean[t] = means[t];
      inverse[t] = inverses[t];
    }
    group.for_each([&](std::int64_t i, int t, int c, int) {
      put(y[i],
          (full(x[i]) - mean[t]) * inverse[t] * weight[c] + (bias == nullptr ? real(0) : bias[c]));
    });
  }
};

/// With g = d_y weight and z the normalised input: d_x = (g - mean(g) - z mean(g z)) inverse.
template <int Block, class Stored>
struct InputGradient {
  Tokens<Block> tokens;
  const Stored* x;
  const Stored* d_y;
  Stored* d_x;
  bool adds;
  const real* weight;
  const real* saved;

  KOKKOS_FUNCTION void operator()(std::int64_t number) const {
    constexpr int most = group_size<Block>;
    const Group<Block> group(tokens, number);
    const int channels = tokens.channels();
    const real* means = saved + std::int64_t{2} * group.image * tokens.tokens + group.first;
    real mean[most] = {};
    real inverse[most] = {};
    for (int t = 0; t < group.count; ++t) {
      mean[t] = means[t];
      inverse[t] = means[tokens.tokens + t];
    }
    double sums[most];
    real of_mean[most] = {};
    real of_variance[most] = {};
    group.sum(sums, [&](std::int64_t i, int, int c) { return full(d_y[i]) * weight[c]; });
    for (int t = 0; t < group.count; ++t) of_mean[t] = static_cast<real>(sums[t] / channels);
    group.sum(sums, [&](std::int64_t i, int t, int c) {
      return full(d_y[i]) * weight[c] * (full(x[i]) - mean[t]);
    });
    for (int t = 0; t < group.count; ++t)
      of_variance[t] = static_cast<real>(sums[t] * inverse[t] * inverse[t] / channels);
    const bool adds_here = adds;
    group.for_each([&](std::int64_t i, int t, int c, int) {
      const real gradient =
          (full(d_y[i]) * weight[c] - of_mean[t] - (full(x[i]) - mean[t]) * of_variance[t]) *
          inverse[t];
      put(d_x[i], adds_here ? full(d_x[i]) + gradient : gradient);
    });
  }
};

/// Of a block of channels over all tokens.
template <int Block, class Stored>
struct WeightGradient {
  Tokens<Block> tokens;
  int n;
  const Stored* x;
  const Stored* d_y;
  const real* saved;
  real* d_weight;  // [c]
  real* d_bias;    // [c]; null: none

  KOKKOS_FUNCTION void operator()(std::int64_t b) const {
    double weight[Block] = {};
    double bias[Block] = {};
    for (int i = 0; i < n; ++i) {
      const real* mean = saved + std::int64_t{2} * i * tokens.tokens;
      const real* inverse = mean + tokens.tokens;
      const std::int64_t begin = tokens.offset(i, static_cast<int>(b), 0);
      for (int t = 0; t < tokens.tokens; ++t) {
        const Stored* at = x + begin + std::int64_t{t} * Block;
        const Stored* d = d_y + begin + std::int64_t{t} * Block;
        for (int l = 0; l < Block; ++l) {
          weight[l] += static_cast<double>(full(d[l]) * ((full(at[l]) - mean[t]) * inverse[t]));
          bias[l] += static_cast<double>(full(d[l]));
        }
      }
    }
    for (int l = 0; l < Block; ++l) {
      const std::int64_t c = b * Block + l;
      d_weight[c] = static_cast<real>(weight[l]);
      if (d_bias != nullptr) d_bias[c] = static_cast<real>(bias[l]);
    }
  }
};

}  // namespace

LayerNorm::LayerNorm(const LayerSpec& spec)
    : format_(spec.output_format),
      epsilon_(spec.as<op::LayerNorm>().epsilon),
      has_bias_(spec.as<op::LayerNorm>().bias) {
  CAROUSEL_CHECK(
      spec.input() == spec.output && spec.inputs.front().format == format_ &&
          spec.parameter_size() == (has_bias_ ? 2 : 1) * std::int64_t{spec.output.channels},
      "layer norm {} has {} parameters", spec.name, spec.parameter_size());
}

void LayerNorm::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::layer_norm_forward";
  detail::with_format(format_, [&]<int Block, class Stored>() {
    const Tokens<Block> tokens(arguments.input.shape);
    const Forward<Block, Stored> kernel{
        tokens,
        reinterpret_cast<const Stored*>(arguments.input.data),
        reinterpret_cast<Stored*>(arguments.output.data),
        arguments.parameters,
        has_bias_ ? arguments.parameters + tokens.channels() : nullptr,
        reinterpret_cast<real*>(arguments.saved),
        arguments.again,
        epsilon_};
    Kokkos::parallel_for(
        label, pieces(exec, std::int64_t{arguments.input.n} * Group<Block>::groups_of(tokens)),
        kernel);
  });
}

void LayerNorm::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::layer_norm_backward";
  static const std::string weight_label = "carousel::layers::layer_norm_backward_weight";
  const auto* saved = reinterpret_cast<const real*>(arguments.saved);
  detail::with_format(format_, [&]<int Block, class Stored>() {
    const Tokens<Block> tokens(arguments.input.shape);
    const int n = arguments.input.n;
    const auto* x = reinterpret_cast<const Stored*>(arguments.input.data);
    const auto* d_y = reinterpret_cast<const Stored*>(arguments.d_output.data);
    Kokkos::parallel_for(weight_label, pieces(exec, tokens.blocks),
                         WeightGradient<Block, Stored>{
                             tokens, n, x, d_y, saved, arguments.d_parameters,
                             has_bias_ ? arguments.d_parameters + tokens.channels() : nullptr});
    if (arguments.d_input.data == nullptr) return;
    Kokkos::parallel_for(label, pieces(exec, std::int64_t{n} * Group<Block>::groups_of(tokens)),
                         InputGradient<Block, Stored>{
                             tokens, x, d_y, reinterpret_cast<Stored*>(arguments.d_input.data),
                             arguments.adds_input, arguments.parameters, saved});
  });
}

}  // namespace carousel
