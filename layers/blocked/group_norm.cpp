// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Group norm of blocked activations on the host, with what a residual network does next: the
// addition of a shortcut and a ReLU. An image's groups are worked on while they are in a cache.

#include <numeric>
#include <span>

#include "core/base/check.hpp"
#include "layers/add_numbers.hpp"
#include "layers/blocked/blocked.hpp"
#include "layers/blocked/plane_sums.hpp"
#include "layers/blocked/tasks.hpp"
#include "layers/blocked/tensor.hpp"
#include "layers/group_norm/op.hpp"
#include "layers/group_norm/sums.hpp"
#include "layers/norm_statistics.hpp"

namespace carousel::blocked {
namespace {

/// The fewest neighbouring blocks whose channels are whole groups are a unit, one task's work.
struct Units {
  int images;
  int channels;
  std::int64_t plane_size;
  int size;           // channels of a group
  int unit_channels;  // not more groups than a block has channels
  int per_image;

  template <class Stored>
  Units(const Planes<const Stored>& x, int groups)
      : images(x.images),
        channels(x.blocks * lanes),
        plane_size(x.plane_size()),
        size(channels / groups),
        unit_channels(std::lcm(size, lanes)),
        per_image(channels / unit_channels) {}

  /// Numbers of a group.
  [[nodiscard]] double count() const { return static_cast<double>(size * plane_size) / lanes; }
  /// Two numbers of each group of an image.
  template <class Real>
  [[nodiscard]] Real* of_image(Real* numbers, int image) const {
    return numbers + std::int64_t{2} * image * (channels / size);
  }
  /// Two sums of each channel of an image: the first ones, then the second ones.
  [[nodiscard]] double* sums(double* partial, int image) const {
    return partial + std::int64_t{2} * image * channels;
  }
  template <class Work>
  void for_each(const ExecutionSpace& exec, const std::string& label, const Work& work) const {
    const Units units = *this;
    for_each_task(exec, label, images * per_image, [=](int task) {
      work(task / units.per_image, task % units.per_image * units.unit_channels);
    });
  }
};

/// Puts two sums of each channel of a block.
void put(const PlaneSums<2>& from, double* sums, int channels, int c) {
  for (int k = 0; k < 2; ++k) {
    for (int l = 0; l < lanes; ++l) sums[k * channels + c + l] = from.of[k][l];
  }
}

/// What each channel of a block has of the two numbers of its group.
struct OfGroups {
  Lanes first = {};
  Lanes second = {};

  /// `channel` counts from the group that the numbers begin with.
  [[gnu::always_inline]] OfGroups(const real* numbers, int size, int channel) {
    const real* at = numbers + std::int64_t{2} * (channel / size);
    int within = channel % size;
    for (int l = 0; l < lanes; ++l) {
      first[l] = at[0];
      second[l] = at[1];
      if (++within == size) {
        within = 0;
        at += 2;
      }
    }
  }
};

/// How the channels of a block are normalised.
struct Normalise {
  Lanes mean;
  Lanes inverse;
  Lanes scale;
  Lanes shift;

  /// `weight`: scale [c], then shift [c].
  [[gnu::always_inline]] Normalise(const Units& units, const real* saved, const real* weight,
                                   int image, int c) {
    const OfGroups statistics(units.of_image(saved, image), units.size, c);
    mean = statistics.first;
    inverse = statistics.second;
    scale = inverse * load(weight + c);
    shift = load(weight + units.channels + c);
  }
  [[nodiscard, gnu::always_inline]] Lanes operator()(const Lanes& x) const {
    return rounded<Lanes>((x - mean) * scale) + shift;
  }
};

/// Leaves mean and 1 / standard deviation of the groups of a unit.
template <class Stored>
void find_statistics(const Units& units, const Planes<const Stored>& x, double epsilon,
                     double* partial, real* saved, int image, int begin) {
  double* const sums = units.sums(partial, image);
  const auto pivot_of = [&](int c) { return full(x.plane(image, c / lanes)[c % lanes]); };
  for (int c = begin; c < begin + units.unit_channels; c += lanes) {
    // Sums of squares about some number of the group lose nothing where its mean is large.
    Lanes pivot = {};
    for (int l = 0; l < lanes; ++l) pivot[l] = pivot_of((c + l) / units.size * units.size);
    put(squares_about(pivot, x.plane(image, c / lanes), units.plane_size), sums, units.channels, c);
  }
  real* to = units.of_image(saved, image) + std::int64_t{2} * (begin / units.size);
  for (int c = begin; c < begin + units.unit_channels; c += units.size, to += 2) {
    const double* first = sums + c;
    const double* second = first + units.channels;
    const double from_pivot = std::accumulate(first, first + units.size, 0.0) / units.count();
    const double spread =
        std::accumulate(second, second + units.size, 0.0) / units.count() - from_pivot * from_pivot;
    const double variance = spread < 0 ? 0 : spread;  // by rounding, where all are equal
    to[0] = static_cast<real>(pivot_of(c) + from_pivot);
    to[1] = static_cast<real>(1 / std::sqrt(variance + epsilon));
  }
}

template <class Stored, bool Adds, bool Rectifies>
void normalise(const ExecutionSpace& exec, const ForwardArguments& arguments,
               const op::GroupNorm& norm, double* partial) {
  static const std::string label = "carousel::layers::group_norm_forward";
  const Planes<const Stored> x(arguments.input);
  const Planes<const Stored> second(arguments.second);
  const Planes<Stored> y(arguments.output);
  const Units units(x, norm.groups);
  const real* weight = arguments.parameters;
  auto* const saved = reinterpret_cast<real*>(arguments.saved);
  const bool again = arguments.again;
  const double epsilon = norm.epsilon;
  units.for_each(exec, label, [=](int image, int begin) {
    if (!again) find_statistics(units, x, epsilon, partial, saved, image, begin);
    for (int c = begin; c < begin + units.unit_channels; c += lanes) {
      const Normalise normalised(units, saved, weight, image, c);
      const Stored* from = x.plane(image, c / lanes);
      const Stored* other = Adds ? second.plane(image, c / lanes) : nullptr;
      Stored* to = y.plane(image, c / lanes);
      for (std::int64_t p = 0; p < units.plane_size; p += lanes) {
        Lanes value = normalised(load(from + p));
        if constexpr (Adds) value += load(other + p);
        store(to + p, Rectifies ? rectified(value) : value);
      }
    }
  });
}

/// What of a backward the work on a unit reads and writes.
template <class Stored>
struct Gradient {
  Units units;
  Planes<const Stored> x;
  Planes<const Stored> y;
  Planes<Stored> d_y;
  Planes<Stored> d_x;  // without data: not wanted
  bool adds;           // to what is in d_x
  const real* weight;
  const real* saved;
  double* partial;

  /// The gradient of what was normalised, of that of what came out.
  template <Mask By>
  [[nodiscard, gnu::always_inline]] Lanes masked(const Normalise& normalised, const Lanes& value,
                                                 const Lanes& d) const {
    return By == Mask::input ? where_positive(normalised(value), d) : d;
  }

  /// Sums of the products of d with the normalised input, and of d; with Mask::output, d_y becomes
  /// d.
  template <Mask By>
  void sum(int image, int begin) const {
    double* const sums = units.sums(partial, image);
    for (int c = begin; c < begin + units.unit_channels; c += lanes) {
      const Normalise normalised(units, saved, weight, image, c);
      const Stored* from = x.plane(image, c / lanes);
      const Stored* of_y = By == Mask::output ? y.plane(image, c / lanes) : nullptr;
      Stored* d_of = d_y.plane(image, c / lanes);
      PlaneSums<2> of_block;
      add_pixels(
          units.plane_size,
          of_block, [&](std::int64_t p, Lanes(&of)[2]) __attribute__((always_inline)) {
            const Lanes value = load(from + p);
            Lanes d = masked<By>(normalised, value, load(d_of + p));
            if constexpr (By == Mask::output) {
              d = where_positive(load(of_y + p), d);
              store(d_of + p, d);
            }
            of[0] = d * (value - normalised.mean);
            of[1] = d;
          });
      of_block.of[0] *= __builtin_convertvector(normalised.inverse, Wide);
      put(of_block, sums, units.channels, c);
    }
  }

  /// With g = d weight and z the normalised input: d_x = (g - mean(g) - z mean(g z)) inverse.
  template <Mask By>
  void spread(int image, int begin) const {
    const double* const sums = units.sums(partial, image);
    real means[2 * lanes];  // of each group: mean(g z) inverse^2 and mean(g) inverse
    real* to = means;
    for (int c = begin; c < begin + units.unit_channels; c += units.size, to += 2) {
      const double inverse = units.of_image(saved, image)[2 * (c / units.size) + 1];
      double first = 0;
      double second = 0;
      for (int k = c; k < c + units.size; ++k) {
        first += double{weight[k]} * sums[k];
        second += double{weight[k]} * sums[units.channels + k];
      }
      to[0] = static_cast<real>(first / units.count() * inverse * inverse);
      to[1] = static_cast<real>(second / units.count() * inverse);
    }
    for (int c = begin; c < begin + units.unit_channels; c += lanes) {
      const Normalise normalised(units, saved, weight, image, c);
      const OfGroups mean(means, units.size, c - begin);
      const Stored* from = x.plane(image, c / lanes);
      const Stored* d_of = d_y.plane(image, c / lanes);
      Stored* d_from = d_x.plane(image, c / lanes);
      for (std::int64_t p = 0; p < units.plane_size; p += lanes) {
        const Lanes value = load(from + p);
        const Lanes d = masked<By>(normalised, value, load(d_of + p));
        const Lanes gradient =
            d * normalised.scale - mean.second - (value - normalised.mean) * mean.first;
        store(d_from + p, adds ? load(d_from + p) + gradient : gradient);
      }
    }
  }

  template <Mask By>
  void find(const ExecutionSpace& exec) const {
    static const std::string label = "carousel::layers::group_norm_backward";
    const Gradient gradient = *this;
    units.for_each(exec, label, [=](int image, int begin) {
      gradient.template sum<By>(image, begin);
      if (gradient.d_x.data != nullptr) gradient.template spread<By>(image, begin);
    });
  }
};

/// Parameters: weight [c], then bias [c]. Saves mean and 1 / standard deviation, [n, groups, 2].
class GroupNorm final : public Layer {
 public:
  GroupNorm(const LayerSpec& spec, const Engine& engine)
      : type_(spec.output_format.type),
        norm_(spec.as<op::GroupNorm>()),
        workspace_(engine.workspace) {
    CAROUSEL_CHECK(spec.input() == spec.output && spec.output.channels % lanes == 0 &&
                       spec.inputs.size() == (norm_.adds ? 2 : 1) &&
                       spec.parameter_size() == 2 * std::int64_t{spec.output.channels},
                   "{} of {} has {} parameters", spec.label(), to_string(spec.output),
                   spec.parameter_size());
  }

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    with_stored(type_, [&]<class Stored>() {
      if (norm_.adds)
        normalise<Stored, true, true>(exec, arguments, norm_, partial());
      else if (norm_.rectifies)
        normalise<Stored, false, true>(exec, arguments, norm_, partial());
      else
        normalise<Stored, false, false>(exec, arguments, norm_, partial());
    });
  }

  /// Where it rectifies after an addition, d_output becomes the gradient of the sum.
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    with_stored(type_, [&]<class Stored>() { differentiate<Stored>(exec, arguments); });
  }

 private:
  template <class Stored>
  void differentiate(const ExecutionSpace& exec, const BackwardArguments& arguments) {
    static const std::string label = "carousel::layers::group_norm_backward_second";
    const Planes<const Stored> x(arguments.input);
    const Gradient<Stored> gradient{.units = Units(x, norm_.groups),
                                    .x = x,
                                    .y = Planes<const Stored>(arguments.output),
                                    .d_y = Planes<Stored>(arguments.d_output),
                                    .d_x = Planes<Stored>(arguments.d_input),
                                    .adds = arguments.adds_input,
                                    .weight = arguments.parameters,
                                    .saved = reinterpret_cast<const real*>(arguments.saved),
                                    .partial = partial()};
    if (norm_.adds)
      gradient.template find<Mask::output>(exec);
    else if (norm_.rectifies)
      gradient.template find<Mask::input>(exec);
    else
      gradient.template find<Mask::none>(exec);
    carousel::detail::add_images(exec, x.images, x.blocks * lanes, partial(),
                                 arguments.d_parameters);
    const Tensor& d_second = arguments.d_second;
    if (norm_.adds && d_second.data != nullptr && d_second.data != arguments.d_output.data)
      hand_on<Stored>(exec, label, arguments.d_output, d_second, arguments.adds_second);
  }

  [[nodiscard]] double* partial() const { return reinterpret_cast<double*>(workspace_.data()); }

  DataType type_;  // of activations
  op::GroupNorm norm_;
  std::span<std::byte> workspace_;
};

}  // namespace

std::unique_ptr<Layer> group_norm(const LayerSpec& spec, const Engine& engine) {
  return std::make_unique<GroupNorm>(spec, engine);
}

}  // namespace carousel::blocked
