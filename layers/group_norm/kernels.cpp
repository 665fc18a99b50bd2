// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/base/check.hpp"
#include "layers/blocked/blocked.hpp"
#include "layers/channel_sums.hpp"
#include "layers/channels_last/group_norm.hpp"
#include "layers/group_norm/op.hpp"
#include "layers/group_norm/sums.hpp"
#include "layers/stored.hpp"

namespace carousel::kernels {
namespace {

using carousel::detail::ChannelPixels;
using carousel::detail::TwoSums;

/// The numbers of a group in plain order, which lie in a row, and where its statistics are.
struct Group {
  int image;
  int first;  // channel
  int channels;
  ChannelPixels pixels;  // of all its channels, as if these were images
  std::int64_t saved;

  KOKKOS_FUNCTION Group(const SampleShape& shape, int groups, int number)
      : image(number / groups),
        first(number % groups * (shape.channels / groups)),
        channels(shape.channels / groups),
        pixels(channels, shape, first),
        saved(std::int64_t{2} * number) {
    pixels.begin += image * pixels.image_stride;
    pixels.image_stride = pixels.pixels;
  }
  [[nodiscard]] KOKKOS_FUNCTION double size() const {
    return static_cast<double>(channels) * pixels.pixels;
  }
  [[nodiscard]] KOKKOS_FUNCTION ChannelPixels channel(int k) const {
    ChannelPixels one = pixels;
    one.n = 1;
    one.begin += k * one.image_stride;
    return one;
  }
  /// Calls visit(offset) for every pixel of a channel; the team shares the work.
  template <class Visit>
  KOKKOS_FUNCTION void for_each_pixel(const Team& team, int k, const Visit& visit) const {
    const std::int64_t begin = channel(k).begin;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, pixels.pixels),
                         [&](int p) { visit(begin + p); });
  }
};

template <class Stored>
struct Forward {
  SampleShape shape;
  int groups;
  double epsilon;
  const Stored* x;
  Stored* y;
  const real* weight;  // [c], then bias [c]; or null
  real* saved;         // [n][groups][2]
  bool again;          // `saved` is there

  /// Two passes, so that a mean far from zero does no harm.
  KOKKOS_FUNCTION void find(const Team& team, const Group& group) const {
    const TwoSums sums = sum_channel(team, group.pixels, [&](std::int64_t i) {
      return TwoSums{double{full(x[i])}, 0};
    });
    const double mean = sums.first / group.size();
    const TwoSums squares = sum_channel(team, group.pixels, [&](std::int64_t i) {
      const double d = double{full(x[i])} - mean;
      return TwoSums{d * d, 0};
    });
    Kokkos::single(Kokkos::PerTeam(team), [&] {
      saved[group.saved] = static_cast<real>(mean);
      saved[group.saved + 1] =
          static_cast<real>(1 / Kokkos::sqrt(squares.first / group.size() + epsilon));
    });
    team.team_barrier();
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const Group group(shape, groups, team.league_rank());
    if (!again) find(team, group);
    const real mean = saved[group.saved];
    const real inverse = saved[group.saved + 1];
    for (int k = 0; k < group.channels; ++k) {
      const bool is_affine = weight != nullptr;
      const real scale = is_affine ? inverse * weight[group.first + k] : inverse;
      const real shift = is_affine ? weight[shape.channels + group.first + k] : real(0);
      group.for_each_pixel(team, k,
                           [&](std::int64_t i) { put(y[i], (full(x[i]) - mean) * scale + shift); });
    }
  }
};

/// With g = d_y weight and z the normalised input: d_x = (g - mean(g) - z mean(g z)) inverse.
template <class Stored>
struct Backward {
  SampleShape shape;
  int groups;
  const Stored* x;
  const Stored* d_y;
  Stored* d_x;  // may be null
  bool adds;
  const real* weight;  // or null
  const real* saved;
  double* partial;  // [n][2][c]; or null

  [[nodiscard]] KOKKOS_FUNCTION real weight_of(int c) const {
    return weight != nullptr ? weight[c] : real(1);
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const Group group(shape, groups, team.league_rank());
    const real mean = saved[group.saved];
    const real inverse = saved[group.saved + 1];
    double* const of_weight =
        partial + std::int64_t{2} * group.image * shape.channels + group.first;
    TwoSums all;
    for (int k = 0; k < group.channels; ++k) {
      const TwoSums sums = sum_channel(team, group.channel(k), [&](std::int64_t i) {
        const double d = full(d_y[i]);
        return TwoSums{d * double{full(x[i]) - mean}, d};
      });
      const double of_scale = sums.first * inverse;
      if (partial != nullptr) {
        Kokkos::single(Kokkos::PerTeam(team), [&] {
          of_weight[k] = of_scale;
          of_weight[shape.channels + k] = sums.second;
        });
      }
      const double w = weight_of(group.first + k);
      all += {w * of_scale, w * sums.second};
    }
    if (d_x == nullptr) return;
    const auto of_variance = static_cast<real>(all.first * inverse / group.size());
    const auto of_mean = static_cast<real>(all.second / group.size());
    for (int k = 0; k < group.channels; ++k) {
      const real w = weight_of(group.first + k);
      group.for_each_pixel(team, k, [&](std::int64_t i) {
        const real d = (full(d_y[i]) * w - of_mean - (full(x[i]) - mean) * of_variance) * inverse;
        put(d_x[i], adds ? full(d_x[i]) + d : d);
      });
    }
  }
};

/// Parameters: weight [c], then bias [c]. Saves mean and 1 / standard deviation, [n, groups, 2].
class GroupNorm final : public Layer {
 public:
  GroupNorm(const LayerSpec& spec, const Engine& engine)
      : norm_(spec.as<op::GroupNorm>()),
        type_(spec.output_format.type),
        workspace_(engine.workspace) {
    CAROUSEL_CHECK(
        spec.input() == spec.output &&
            spec.parameter_size() == (norm_.is_affine ? 2 * std::int64_t{spec.output.channels} : 0),
        "{} has {} parameters", spec.label(), spec.parameter_size());
  }

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    with_stored(type_, [&]<class Stored>() { normalise<Stored>(exec, arguments); });
  }
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    const SampleShape& shape = arguments.input.shape;
    auto* const partial = norm_.is_affine ? reinterpret_cast<double*>(workspace_.data()) : nullptr;
    with_stored(type_, [&]<class Stored>() { find_gradient<Stored>(exec, arguments, partial); });
    if (!norm_.is_affine) return;
    carousel::detail::add_images(exec, arguments.input.n, shape.channels, partial,
                                 arguments.d_parameters);
  }

 private:
  [[nodiscard]] const real* weights(const real* parameters) const {
    return norm_.is_affine ? parameters : nullptr;
  }
  [[nodiscard]] TeamPolicy teams(const ExecutionSpace& exec, int n) const {
    return carousel::detail::channel_teams(exec, n * norm_.groups);
  }
  template <class Stored>
  void normalise(const ExecutionSpace& exec, const ForwardArguments& arguments) const {
    static const std::string label = "carousel::layers::group_norm_forward";
    Kokkos::parallel_for(
        label, teams(exec, arguments.input.n),
        Forward<Stored>{arguments.input.shape, norm_.groups, norm_.epsilon,
                        reinterpret_cast<const Stored*>(arguments.input.data),
                        reinterpret_cast<Stored*>(arguments.output.data),
                        weights(arguments.parameters), reinterpret_cast<real*>(arguments.saved),
                        arguments.again});
  }
  template <class Stored>
  void find_gradient(const ExecutionSpace& exec, const BackwardArguments& arguments,
                     double* partial) const {
    static const std::string label = "carousel::layers::group_norm_backward";
    Kokkos::parallel_for(label, teams(exec, arguments.input.n),
                         Backward<Stored>{arguments.input.shape, norm_.groups,
                                          reinterpret_cast<const Stored*>(arguments.input.data),
                                          reinterpret_cast<const Stored*>(arguments.d_output.data),
                                          reinterpret_cast<Stored*>(arguments.d_input.data),
                                          arguments.adds_input, weights(arguments.parameters),
                                          reinterpret_cast<const real*>(arguments.saved), partial});
  }

  op::GroupNorm norm_;
  DataType type_;
  std::span<std::byte> workspace_;
};

}  // namespace

std::unique_ptr<Layer> group_norm(const LayerSpec& spec, int /*samples*/, const Engine& engine) {
  if (spec.kernels == Kernels::channels_last)
    return std::make_unique<channels_last::GroupNorm>(spec, engine);
  if constexpr (runs_on_host) {
    if (spec.kernels == Kernels::blocked) return blocked::group_norm(spec, engine);
  }
  return std::make_unique<GroupNorm>(spec, engine);
}

}  // namespace carousel::kernels
