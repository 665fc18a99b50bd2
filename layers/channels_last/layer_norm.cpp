// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/channels_last/layer_norm.hpp"

#include "layers/channels_last/column_sums.hpp"
#include "layers/layer_norm/op.hpp"

namespace carousel::channels_last {
namespace {

constexpr int team_size = runs_on_host ? 1 : 128;  // threads for a token

/// Where the numbers of a token's statistics are.
template <class Real>
struct Saved {
  Real* data;
  std::int64_t tokens;

  [[nodiscard]] KOKKOS_FUNCTION Real& mean(std::int64_t row) const {
    return data[2 * (row / tokens) * tokens + row % tokens];
  }
  [[nodiscard]] KOKKOS_FUNCTION Real& inverse(std::int64_t row) const {
    return data[(2 * (row / tokens) + 1) * tokens + row % tokens];
  }
};

/// The sum of term(c) over the features of a token, for all threads of its team.
template <class Term>
KOKKOS_INLINE_FUNCTION real add_features(const Team& team, int channels, const Term& term) {
  real total = 0;
  Kokkos::parallel_reduce(
      Kokkos::TeamThreadRange(team, channels), [&](int c, real& sum) { sum += term(c); }, total);
  return total;
}

template <class Stored>
struct Forward {
  Rows<const Stored> x;
  Rows<Stored> y;
  const real* weight;  // [c]
  const real* bias;    // [c]; null: none
  Saved<real> saved;
  bool again;  // `saved` is there
  double epsilon;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t row = team.league_rank();
    const int channels = x.channels;
    const Stored* const at = x.data + row * channels;
    real mean = again ? saved.mean(row) : real{0};
    real inverse = again ? saved.inverse(row) : real{0};
    if (!again) {
      const auto size = static_cast<real>(channels);
      mean = add_features(team, channels, [&](int c) { return full(at[c]); }) / size;
      // In a second pass, so that a mean far from zero does no harm.
      const real squares = add_features(team, channels, [&](int c) {
        const real d = full(at[c]) - mean;
        return d * d;
      });
      inverse = static_cast<real>(1 / Kokkos::sqrt(double{squares} / channels + epsilon));
      Kokkos::single(Kokkos::PerTeam(team), [&] {
        saved.mean(row) = mean;
        saved.inverse(row) = inverse;
      });
    }
    Stored* const to = y.data + row * channels;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, channels), [&](int c) {
      put(to[c],
          (full(at[c]) - mean) * inverse * weight[c] + (bias == nullptr ? real(0) : bias[c]));
    });
  }
};

template <class Stored>
struct InputGradient {
  Rows<const Stored> x;
  Rows<const Stored> d_y;
  Rows<Stored> d_x;
  bool adds;
  const real* weight;
  Saved<const real> saved;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t row = team.league_rank();
    const int channels = x.channels;
    const Stored* const at = x.data + row * channels;
    const Stored* const d = d_y.data + row * channels;
    Stored* const to = d_x.data + row * channels;
    const real mean = saved.mean(row);
    const real inverse = saved.inverse(row);
    const auto size = static_cast<real>(channels);
    const real of_mean =
        add_features(team, channels, [&](int c) { return full(d[c]) * weight[c]; }) / size;
    const real of_variance =
        add_features(team, channels,
                     [&](int c) { return full(d[c]) * weight[c] * (full(at[c]) - mean); }) *
        inverse * inverse / size;
    const bool adds_here = adds;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, channels), [&](int c) {
      const real gradient =
          (full(d[c]) * weight[c] - of_mean - (full(at[c]) - mean) * of_variance) * inverse;
      put(to[c], adds_here ? full(to[c]) + gradient : gradient);
    });
  }
};

/// Sums of d_y and of its products with the normalised input.
template <class Stored>
struct WeightSums {
  Rows<const Stored> x;
  Rows<const Stored> d_y;
  Saved<const real> saved;

  template <int Width>
  KOKKOS_FUNCTION void add(int c, std::int64_t row, int stride, std::int64_t end,
                           Sums* sums) const {
    for (; row < end; row += stride) {
      const std::int64_t i = row * x.channels + c;
      const auto values = read_pack<Width>(x.data + i);
      const auto gradients = read_pack<Width>(d_y.data + i);
      const real mean = saved.mean(row);
      const real inverse = saved.inverse(row);
      for (int l = 0; l < Width; ++l) {
        const real d = full(gradients.at[l]);
        sums[l] += {double{d}, double{d * ((full(values.at[l]) - mean) * inverse)}};
      }
    }
  }
};

/// d_weight and d_bias: [c]; the latter may be null.
template <class Stored>
void find_weight_gradient(const ExecutionSpace& exec, const Rows<const Stored>& x,
                          const Rows<const Stored>& d_y, const Saved<const real>& saved,
                          double* partial, real* d_weight, real* d_bias) {
  static const std::string sum_label = "carousel::layers::layer_norm_backward_sums";
  static const std::string label = "carousel::layers::layer_norm_backward_weight";
  add_up(
      exec, {sum_label, label}, x.rows, x.channels, WeightSums<Stored>{x, d_y, saved}, partial,
      KOKKOS_LAMBDA(int c, const Sums& sums) {
        d_weight[c] = static_cast<real>(sums.second);
        if (d_bias != nullptr) d_bias[c] = static_cast<real>(sums.first);
      });
}

TeamPolicy teams(const ExecutionSpace& exec, std::int64_t rows) {
  return {exec, static_cast<int>(rows), team_size};
}

}  // namespace

LayerNorm::LayerNorm(const LayerSpec& spec, const Engine& engine)
    : type_(spec.output_format.type),
      epsilon_(spec.as<op::LayerNorm>().epsilon),
      has_bias_(spec.as<op::LayerNorm>().bias),
      workspace_(engine.workspace) {
  CAROUSEL_CHECK(
      spec.input() == spec.output && spec.inputs.front().format.type == type_ &&
          spec.parameter_size() == (has_bias_ ? 2 : 1) * std::int64_t{spec.output.channels},
      "layer norm {} has {} parameters", spec.name, spec.parameter_size());
}

void LayerNorm::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::layer_norm_forward";
  const Saved<real> saved{reinterpret_cast<real*>(arguments.saved), arguments.input.shape.pixels()};
  with_stored(type_, [&]<class Stored>() {
    const Rows<const Stored> x(arguments.input);
    Kokkos::parallel_for(label, teams(exec, x.rows),
                         Forward<Stored>{x, Rows<Stored>(arguments.output), arguments.parameters,
                                         has_bias_ ? arguments.parameters + x.channels : nullptr,
                                         saved, arguments.again, epsilon_});
  });
}

void LayerNorm::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::layer_norm_backward";
  const Saved<const real> saved{reinterpret_cast<const real*>(arguments.saved),
                                arguments.input.shape.pixels()};
  with_stored(type_, [&]<class Stored>() {
    const Rows<const Stored> x(arguments.input);
    const Rows<const Stored> d_y(arguments.d_output);
    find_weight_gradient(exec, x, d_y, saved, reinterpret_cast<double*>(workspace_.data()),
                         arguments.d_parameters,
                         has_bias_ ? arguments.d_parameters + x.channels : nullptr);
    if (arguments.d_input.data == nullptr) return;
    Kokkos::parallel_for(label, teams(exec, x.rows),
                         InputGradient<Stored>{x, d_y, Rows<Stored>(arguments.d_input),
                                               arguments.adds_input, arguments.parameters, saved});
  });
}

}  // namespace carousel::channels_last
