// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/channels_last/group_norm.hpp"

#include "layers/add_numbers.hpp"
#include "layers/channels_last/column_sums.hpp"
#include "layers/norm_statistics.hpp"

namespace carousel::channels_last {
namespace {

/// Images, groups of their channels, and the parts of an image that are added up apart.
struct Groups {
  int images;
  int pixels;
  int channels;
  int groups;
  int size;  // channels of a group
  int parts;

  Groups(const ConstTensor& x, int number)
      : images(x.n),
        pixels(static_cast<int>(x.shape.pixels())),
        channels(x.shape.channels),
        groups(number),
        size(channels / number),
        parts(group_norm_parts(pixels)) {}

  [[nodiscard]] KOKKOS_FUNCTION double values() const { return static_cast<double>(pixels) * size; }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t of(std::int64_t image, int c) const {
    return image * groups + c / size;
  }
  [[nodiscard]] std::int64_t rows() const { return std::int64_t{images} * pixels; }
  /// Bytes of the sums of all parts, behind which are those of groups.
  [[nodiscard]] std::int64_t sum_bytes() const {
    return std::int64_t{images} * parts * channels * std::int64_t{sizeof(Sums)};
  }
};

/// Two numbers of every group.
struct Pair {
  real first;
  real second;
};

/// Calls visitor.visit<Width>(image, c, first, step, end) for packs of so many numbers that begin
/// at first, first + step and so on before end, all of one image, of channel c and those behind it.
template <int Width, class Visitor>
void visit_image_packs(const ExecutionSpace& exec, const std::string& label, const Groups& groups,
                       const Visitor& visitor) {
  constexpr int most = runs_on_host ? 64 : 4;  // what a thread reads of its channels serves so many
  const std::int64_t across = groups.channels / Width;
  const std::int64_t rows = (groups.pixels + most - 1) / most;
  const std::int64_t size = std::int64_t{groups.pixels} * groups.channels;
  Kokkos::parallel_for(
      label, range(exec, groups.images * rows * across), KOKKOS_LAMBDA(std::int64_t k) {
        const std::int64_t image = k / (rows * across);
        const std::int64_t within = k % (rows * across) * Width;
        visitor.template visit<Width>(image, static_cast<int>(within % groups.channels),
                                      image * size + within, rows * groups.channels,
                                      (image + 1) * size);
      });
}

template <class Visitor>
void for_each_image_pack(const ExecutionSpace& exec, const std::string& label, const Groups& groups,
                         const Visitor& visitor) {
  if (groups.channels % pack_width == 0)
    visit_image_packs<pack_width>(exec, label, groups, visitor);
  else
    visit_image_packs<1>(exec, label, groups, visitor);
}

/// Leaves two sums of each part of an image: [n][parts][c].
template <class Adder>
void add_parts(const ExecutionSpace& exec, const std::string& label, const Groups& groups,
               const Adder& adder, Sums* sums) {
  const auto add = [&]<int Width>() {
    SumTeams teams(groups.rows(), groups.channels, Width);
    teams.chunks = groups.images * groups.parts;
    teams.chunk_rows = groups.pixels / groups.parts;
    detail::add_chunks<Width>(exec, label, groups.rows(), groups.channels, teams, adder, sums);
  };
  if (groups.channels % pack_width == 0)
    add.template operator()<pack_width>();
  else
    add.template operator()<1>();
}

/// Over the parts of an image and the channels of a group, those of a channel times its weight.
KOKKOS_INLINE_FUNCTION Sums add_group(const Groups& groups, std::int64_t number, const Sums* sums,
                                      const real* weight) {
  const std::int64_t image = number / groups.groups;
  const int first = static_cast<int>(number % groups.groups) * groups.size;
  Sums all;
  for (int part = 0; part < groups.parts; ++part) {
    const Sums* row = sums + (image * groups.parts + part) * groups.channels;
    for (int c = first; c < first + groups.size; ++c) {
      const double w = weight == nullptr ? 1 : double{weight[c]};
      all += {w * row[c].first, w * row[c].second};
    }
  }
  return all;
}

/// The first number of the group of a channel in an image: about it, sums of squares lose nothing
/// where the mean is large.
template <class Stored>
KOKKOS_INLINE_FUNCTION double pivot_of(const Rows<const Stored>& x, const Groups& groups,
                                       std::int64_t image, int c) {
  return double{
      full(x.data[image * groups.pixels * groups.channels + c / groups.size * groups.size])};
}

/// Sums of x - pivot and of their squares.
template <class Stored>
struct GroupDeviations {
  Rows<const Stored> x;
  Groups groups;

  template <int Width>
  KOKKOS_FUNCTION void add(int c, std::int64_t row, int stride, std::int64_t end,
                           Sums* sums) const {
    const std::int64_t image = (end - 1) / groups.pixels;
    double pivots[Width];  // NOLINT(modernize-avoid-c-arrays): registers
    for (int l = 0; l < Width; ++l) pivots[l] = pivot_of(x, groups, image, c + l);
    for (; row < end; row += stride) {
      const auto values = read_pack<Width>(x.data + row * x.channels + c);
      for (int l = 0; l < Width; ++l) {
        const double d = double{full(values.at[l])} - pivots[l];
        sums[l] += {d, d * d};
      }
    }
  }
};

template <class Stored>
void find_statistics(const ExecutionSpace& exec, const Rows<const Stored>& x, const Groups& groups,
                     double epsilon, Sums* sums, Pair* saved) {
  static const std::string sum_label = "carousel::layers::group_norm_forward_sums";
  static const std::string label = "carousel::layers::group_norm_forward_statistics";
  add_parts(exec, sum_label, groups, GroupDeviations<Stored>{x, groups}, sums);
  Kokkos::parallel_for(
      label, range(exec, std::int64_t{groups.images} * groups.groups),
      KOKKOS_LAMBDA(std::int64_t number) {
        const Sums all = add_group(groups, number, sums, nullptr);
        const int first = static_cast<int>(number % groups.groups) * groups.size;
        const double from_pivot = all.first / groups.values();
        const double spread = all.second / groups.values() - from_pivot * from_pivot;
        const double variance = spread < 0 ? 0 : spread;  // by rounding, where all are equal
        saved[number] = {
            static_cast<real>(pivot_of(x, groups, number / groups.groups, first) + from_pivot),
            static_cast<real>(1 / Kokkos::sqrt(variance + epsilon))};
      });
}

/// Of the channels that a thread works with.
template <int Width>
struct GroupChannels {
  Pack<real, Width> mean;
  Pack<real, Width> inverse;
  Pack<real, Width> scale;
  Pack<real, Width> shift;

  KOKKOS_FUNCTION GroupChannels(const Groups& groups, const Pair* saved, const real* weight,
                                std::int64_t image, int c) {
    for (int l = 0; l < Width; ++l) {
      const Pair& at = saved[groups.of(image, c + l)];
      mean.at[l] = at.first;
      inverse.at[l] = at.second;
      scale.at[l] = at.second * weight[c + l];
      shift.at[l] = weight[groups.channels + c + l];
    }
  }
  [[nodiscard]] KOKKOS_FUNCTION real normalised(real x, int l) const {
    return (x - mean.at[l]) * scale.at[l] + shift.at[l];
  }
  /// The gradient of what was normalised, of that of what was then, perhaps, rectified.
  [[nodiscard]] KOKKOS_FUNCTION real masked(Mask mask, real d, real x, real y, int l) const {
    if (mask == Mask::input) return normalised(x, l) <= 0 ? real{0} : d;
    if (mask == Mask::output) return y <= 0 ? real{0} : d;
    return d;
  }
};

/// [max(0,] (x - mean) scale + shift [+ second] [)]
template <class Stored>
struct NormaliseGroups {
  Groups groups;
  Rows<const Stored> x;
  Rows<const Stored> second;
  const Pair* saved;
  const real* weight;
  bool rectifies;
  Rows<Stored> y;

  template <int Width>
  KOKKOS_FUNCTION void visit(std::int64_t image, int c, std::int64_t first, std::int64_t step,
                             std::int64_t end) const {
    const GroupChannels<Width> channels(groups, saved, weight, image, c);
    const bool adds = second.data != nullptr;
    for (std::int64_t i = first; i < end; i += step) {
      const auto values = read_pack<Width>(x.data + i);
      const auto others = adds ? read_pack<Width>(second.data + i) : Pack<Stored, Width>{};
      Pack<Stored, Width> to;
      for (int l = 0; l < Width; ++l) {
        real value = channels.normalised(full(values.at[l]), l);
        if (adds) value += full(others.at[l]);
        put(to.at[l], rectifies && value <= 0 ? real{0} : value);
      }
      write_pack(y.data + i, to);
    }
  }
};

/// Sums of the products of the masked d_y with the normalised input, and of the masked d_y, which
/// is stored where the output masks it.
template <class Stored>
struct GroupGradientSums {
  Groups groups;
  Mask mask;
  Rows<const Stored> x;
  Rows<const Stored> y;
  Rows<Stored> d_y;
  const Pair* saved;
  const real* weight;

  template <int Width>
  KOKKOS_FUNCTION void add(int c, std::int64_t row, int stride, std::int64_t end,
                           Sums* sums) const {
    const GroupChannels<Width> channels(groups, saved, weight, (end - 1) / groups.pixels, c);
    const bool stores = mask == Mask::output;
    for (; row < end; row += stride) {
      const std::int64_t i = row * x.channels + c;
      const auto values = read_pack<Width>(x.data + i);
      auto gradients = read_pack<Width>(d_y.data + i);
      const auto outputs = stores ? read_pack<Width>(y.data + i) : Pack<Stored, Width>{};
      for (int l = 0; l < Width; ++l) {
        const real value = full(values.at[l]);
        const real d = channels.masked(mask, full(gradients.at[l]), value, full(outputs.at[l]), l);
        if (stores) put(gradients.at[l], d);
        sums[l] += {double{d} * double{value - channels.mean.at[l]}, double{d}};
      }
      if (stores) write_pack(d_y.data + i, gradients);
    }
    for (int l = 0; l < Width; ++l) sums[l].first *= channels.inverse.at[l];
  }
};

template <class Stored>
struct GroupGradient {
  Groups groups;
  Mask mask;
  Rows<const Stored> x;
  Rows<const Stored> d_y;
  Rows<Stored> d_x;
  bool adds;
  const Pair* saved;
  const real* weight;
  const Pair* means;  // of groups: what the variance and the mean pass on to every number

  template <int Width>
  KOKKOS_FUNCTION void visit(std::int64_t image, int c, std::int64_t first, std::int64_t step,
                             std::int64_t end) const {
    const GroupChannels<Width> channels(groups, saved, weight, image, c);
    Pack<real, Width> of_variance;
    Pack<real, Width> of_mean;
    for (int l = 0; l < Width; ++l) {
      const Pair& both = means[groups.of(image, c + l)];
      of_variance.at[l] = both.first;
      of_mean.at[l] = both.second;
    }
    // What the output masked stays so.
    const Mask left = mask == Mask::output ? Mask::none : mask;
    const bool adds_here = adds;
    for (std::int64_t i = first; i < end; i += step) {
      const auto values = read_pack<Width>(x.data + i);
      const auto gradients = read_pack<Width>(d_y.data + i);
      auto to = adds_here ? read_pack<Width>(d_x.data + i) : Pack<Stored, Width>{};
      for (int l = 0; l < Width; ++l) {
        const real value = full(values.at[l]);
        const real d = channels.masked(left, full(gradients.at[l]), value, 0, l);
        const real gradient = d * channels.scale.at[l] - of_mean.at[l] -
                              (value - channels.mean.at[l]) * of_variance.at[l];
        put(to.at[l], adds_here ? full(to.at[l]) + gradient : gradient);
      }
      write_pack(d_x.data + i, to);
    }
  }
};

/// With g = d_y weight and z the normalised input: d_x = (g - mean(g) - z mean(g z)) inverse.
/// Leaves mean(g z) inverse^2 and mean(g) inverse.
void find_means(const ExecutionSpace& exec, const Groups& groups, const Sums* sums,
                const real* weight, const Pair* saved, Pair* means) {
  static const std::string label = "carousel::layers::group_norm_backward_groups";
  Kokkos::parallel_for(
      label, range(exec, std::int64_t{groups.images} * groups.groups),
      KOKKOS_LAMBDA(std::int64_t number) {
        const Sums all = add_group(groups, number, sums, weight);
        const double inverse = saved[number].second;
        means[number] = {static_cast<real>(all.first / groups.values() * inverse * inverse),
                         static_cast<real>(all.second / groups.values() * inverse)};
      });
}

template <class Stored>
void find_gradient(const ExecutionSpace& exec, const Groups& groups, Mask mask,
                   const BackwardArguments& arguments, std::byte* workspace) {
  static const std::string sum_label = "carousel::layers::group_norm_backward_sums";
  static const std::string weight_label = "carousel::layers::group_norm_backward_weight";
  static const std::string label = "carousel::layers::group_norm_backward";
  const Rows<const Stored> x(arguments.input);
  const Rows<Stored> d_y(arguments.d_output);
  const auto* saved = reinterpret_cast<const Pair*>(arguments.saved);
  const real* weight = arguments.parameters;
  auto* const sums = reinterpret_cast<Sums*>(workspace);
  add_parts(exec, sum_label, groups,
            GroupGradientSums<Stored>{groups, mask, x, Rows<const Stored>(arguments.output), d_y,
                                      saved, weight},
            sums);
  real* const d_weight = arguments.d_parameters;
  const int channels = groups.channels;
  detail::add_partial(
      exec, weight_label, channels, groups.images * groups.parts, sums,
      KOKKOS_LAMBDA(int c, const Sums& all) {
        d_weight[c] = static_cast<real>(all.first);
        d_weight[channels + c] = static_cast<real>(all.second);
      });
  if (arguments.d_input.data == nullptr) return;
  auto* const means = reinterpret_cast<Pair*>(workspace + groups.sum_bytes());
  find_means(exec, groups, sums, weight, saved, means);
  for_each_image_pack(exec, label, groups,
                      GroupGradient<Stored>{groups, mask, x, Rows<const Stored>(arguments.d_output),
                                            Rows<Stored>(arguments.d_input), arguments.adds_input,
                                            saved, weight, means});
}

}  // namespace

GroupNorm::GroupNorm(const LayerSpec& spec, const Engine& engine)
    : norm_(spec.as<op::GroupNorm>()),
      type_(spec.output_format.type),
      workspace_(engine.workspace) {
  CAROUSEL_CHECK(spec.input() == spec.output && spec.inputs.size() == (norm_.adds ? 2 : 1) &&
                     spec.parameter_size() == 2 * std::int64_t{spec.output.channels},
                 "{} has {} parameters", spec.label(), spec.parameter_size());
}

void GroupNorm::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::group_norm_forward";
  const Groups groups(arguments.input, norm_.groups);
  auto* const saved = reinterpret_cast<Pair*>(arguments.saved);
  with_stored(type_, [&]<class Stored>() {
    const Rows<const Stored> x(arguments.input);
    if (!arguments.again)
      find_statistics(exec, x, groups, norm_.epsilon, reinterpret_cast<Sums*>(workspace_.data()),
                      saved);
    for_each_image_pack(
        exec, label, groups,
        NormaliseGroups<Stored>{
            groups, x, Rows<const Stored>(norm_.adds ? arguments.second : ConstTensor{}), saved,
            arguments.parameters, norm_.rectifies, Rows<Stored>(arguments.output)});
  });
}

void GroupNorm::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::group_norm_backward_second";
  const Groups groups(arguments.input, norm_.groups);
  const Mask mask = !norm_.rectifies ? Mask::none : norm_.adds ? Mask::output : Mask::input;
  with_stored(type_, [&]<class Stored>() {
    find_gradient<Stored>(exec, groups, mask, arguments, workspace_.data());
    // What d_output has become.
    const Tensor& d_second = arguments.d_second;
    if (d_second.data == nullptr || d_second.data == arguments.d_output.data) return;
    hand_on<Stored>(exec, label, arguments.d_output, d_second, arguments.adds_second);
  });
}

}  // namespace carousel::channels_last
