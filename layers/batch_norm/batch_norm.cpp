// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/batch_norm/batch_norm.hpp"

#include "core/base/align.hpp"
#include "core/base/check.hpp"
#include "layers/batch_norm/op.hpp"
#include "layers/channel_sums.hpp"

namespace carousel {
namespace {

using detail::ChannelPixels;
using detail::TwoSums;

struct Forward {
  int n;
  SampleShape shape;
  const real* x;
  real* y;
  const real* weight;   // [c], then bias [c]
  const real* running;  // mean [c], then variance [c]
  real* saved;          // [3, c]
  bool training;
  double epsilon;

  /// Two passes, so that a mean far from zero does no harm.
  KOKKOS_FUNCTION TwoSums mean_and_variance(const Team& team, const ChannelPixels& at) const {
    const double count = static_cast<double>(at.n) * at.pixels;
    const double mean = sum_channel(team, at,
                                    [&](std::int64_t i) {
                                      return TwoSums{x[i], 0};
                                    })
                            .first /
                        count;
    const TwoSums squares = sum_channel(team, at, [&](std::int64_t i) {
      const double d = x[i] - mean;
      return TwoSums{d * d, 0};
    });
    return {mean, squares.first / count};
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const int c = team.league_rank();
    const int channels = shape.channels;
    const ChannelPixels at(n, shape, c);
    TwoSums statistics = {running[c], running[channels + c]};
    if (training) statistics = mean_and_variance(team, at);
    const double variance = statistics.second;
    const double inverse = 1 / Kokkos::sqrt(variance + epsilon);
    if (training) {
      Kokkos::single(Kokkos::PerTeam(team), [&] {
        const double count = static_cast<double>(at.n) * at.pixels;
        saved[c] = static_cast<real>(statistics.first);
        saved[channels + c] = static_cast<real>(inverse);
        saved[2 * channels + c] = static_cast<real>(variance * (count / (count - 1)));
      });
    }
    const auto mean = static_cast<real>(statistics.first);
    const auto scale = static_cast<real>(inverse * weight[c]);
    const real shift = weight[channels + c];
    for_each_pixel(team, at, [&](std::int64_t i) { y[i] = (x[i] - mean) * scale + shift; });
  }
};

struct Backward {
  int n;
  SampleShape shape;
  const real* x;
  const real* d_y;
  real* d_x;  // may be null
  bool adds;
  const real* weight;
  const real* saved;  // [3, c]
  real* d_weight;     // [c], then bias [c]
  real* statistics;   // mean [c], then unbiased variance [c]

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const int c = team.league_rank();
    const int channels = shape.channels;
    const ChannelPixels at(n, shape, c);
    const double mean = saved[c];
    const double inverse = saved[channels + c];
    const TwoSums sums = sum_channel(team, at, [&](std::int64_t i) {
      return TwoSums{d_y[i], d_y[i] * (x[i] - mean)};
    });
    Kokkos::single(Kokkos::PerTeam(team), [&] {
      d_weight[c] = static_cast<real>(sums.second * inverse);
      d_weight[channels + c] = static_cast<real>(sums.first);
      statistics[c] = saved[c];
      statistics[channels + c] = saved[2 * channels + c];
    });
    if (d_x == nullptr) return;
    // What the mean and the variance of the micro-batch pass on to every pixel.
    const double count = static_cast<double>(at.n) * at.pixels;
    const auto of_mean = static_cast<real>(sums.first / count);
    const auto of_variance = static_cast<real>(sums.second * inverse * inverse / count);
    const auto scale = static_cast<real>(inverse * weight[c]);
    const real center = saved[c];
    for_each_pixel(team, at, [&](std::int64_t i) {
      const real d = (d_y[i] - of_mean - (x[i] - center) * of_variance) * scale;
      d_x[i] = adds ? d_x[i] + d : d;
    });
  }
};

}  // namespace

BatchNorm::BatchNorm(const LayerSpec& spec) : epsilon_(spec.as<op::BatchNorm>().epsilon) {
  const std::int64_t channels = spec.input().channels;
  CAROUSEL_CHECK(spec.input() == spec.output && spec.parameter_size() == 2 * channels &&
                     spec.buffer_size() == 2 * channels &&
                     spec.saved_bytes(1) == align_up(3 * channels * std::int64_t{sizeof(real)}),
                 "batch norm {} has {} channels, {} parameters, {} buffers", spec.name, channels,
                 spec.parameter_size(), spec.buffer_size());
}

void BatchNorm::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::batch_norm_forward";
  const ConstTensor& x = arguments.input;
  Kokkos::parallel_for(
      label, detail::channel_teams(exec, x.shape.channels),
      Forward{x.n, x.shape, x.data, arguments.output.data, arguments.parameters, arguments.buffers,
              reinterpret_cast<real*>(arguments.saved), arguments.training, epsilon_});
}

void BatchNorm::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::batch_norm_backward";
  const ConstTensor& x = arguments.input;
  Kokkos::parallel_for(label, detail::channel_teams(exec, x.shape.channels),
                       Backward{x.n, x.shape, x.data, arguments.d_output.data,
                                arguments.d_input.data, arguments.adds_input, arguments.parameters,
                                reinterpret_cast<const real*>(arguments.saved),
                                arguments.d_parameters, arguments.statistics});
}

}  // namespace carousel
