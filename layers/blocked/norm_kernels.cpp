// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/blocked/norm_kernels.hpp"

#include <cstring>
#include <utility>

#include "layers/blocked/tasks.hpp"

namespace carousel::blocked {
namespace {

/// Two sums of one block of channels.
struct Sums {
  Wide first = {};
  Wide second = {};
};

/// A register of doubles, and how many of them a block takes: compilers keep a Wide in memory,
/// where every number that is added would wait for the one before.
using Doubles = double __attribute__((vector_size(vector_bytes)));
constexpr int parts = sizeof(double) / sizeof(real);
constexpr int part_size = lanes / parts;

/// Calls visit(std::integral_constant<int, part>()).
template <class Visit>
[[gnu::always_inline]] inline void for_each_part(const Visit& visit) {
  const auto call = [&]<int... K>(std::integer_sequence<int, K...>) __attribute__((always_inline)) {
    (visit(std::integral_constant<int, K>()), ...);
  };
  call(std::make_integer_sequence<int, parts>());
}

template <int Part, int... J>
[[gnu::always_inline]] inline void put_part(Doubles& to, const Lanes& from,
                                            std::integer_sequence<int, J...> /*lanes*/) {
  to = __builtin_convertvector(__builtin_shufflevector(from, from, (Part * part_size + J)...),
                               Doubles);
}

/// Sums of a and of a b over the numbers of a block, less `center` of the channel: of both if they
/// are the same, else of b.
class RunningSums {
 public:
  [[gnu::always_inline]] explicit RunningSums(const Lanes& center) {
    for_each_part([&](auto part) __attribute__((always_inline)) {
      put_part<part>(center_[part], center, numbers);
    });
  }
  [[gnu::always_inline]] void add_squares(const Lanes& value) {
    for_each_part([&](auto part) __attribute__((always_inline)) {
      Doubles d;
      put_part<part>(d, value, numbers);
      d -= center_[part];
      first_[part] += d;
      second_[part] += d * d;
    });
  }
  [[gnu::always_inline]] void add_products(const Lanes& a, const Lanes& b) {
    for_each_part([&](auto part) __attribute__((always_inline)) {
      Doubles wide;
      Doubles d;
      put_part<part>(wide, a, numbers);
      put_part<part>(d, b, numbers);
      first_[part] += wide;
      second_[part] += wide * (d - center_[part]);
    });
  }
  [[gnu::always_inline]] void put(Sums& to) const {
    std::memcpy(&to.first, first_, sizeof(first_));
    std::memcpy(&to.second, second_, sizeof(second_));
  }

 private:
  static constexpr std::make_integer_sequence<int, part_size> numbers = {};

  Doubles first_[parts] = {};
  Doubles second_[parts] = {};
  Doubles center_[parts];
};

[[gnu::always_inline]] inline Sums& at(double* partial, std::int64_t number) {
  return reinterpret_cast<Sums*>(partial)[number];
}

/// Adds the images, in order; the sums of the first one become those of all.
template <class Stored>
Sums total(double* partial, const Planes<const Stored>& x, int block) {
  Sums& sums = at(partial, block);
  for (int i = 1; i < x.images; ++i) {
    const Sums& image = at(partial, std::int64_t{i} * x.blocks + block);
    sums.first += image.first;
    sums.second += image.second;
  }
  return sums;
}

template <class Stored>
double values_of(const Planes<const Stored>& x) {
  return static_cast<double>(x.images) * x.h * x.w;
}

template <Mask By>
[[gnu::always_inline]] inline Lanes masked(const NormStatistics& saved, int block, const Lanes& x,
                                           const Lanes& d) {
  if constexpr (By == Mask::input)
    return where_positive(
        affine(x, load(saved.scale + block * lanes), load(saved.shift + block * lanes)), d);
  else
    return d;
}

/// Sums of d and of d (x - mean); with Mask::output, d_y becomes d.
template <Mask By, class Stored>
void sum_gradients(const ExecutionSpace& exec, const NormGradient<Stored>& tensors,
                   const NormStatistics& saved, double* partial) {
  static const std::string label = "carousel::layers::norm_backward_sums";
  for_each_task(exec, label, tensors.x.images * tensors.x.blocks, [=](int task) {
    const int image = task / tensors.x.blocks;
    const int block = task % tensors.x.blocks;
    const Stored* x = tensors.x.plane(image, block);
    const Stored* y = By == Mask::output ? tensors.y.plane(image, block) : nullptr;
    Stored* d_y = tensors.d_y.plane(image, block);
    RunningSums sums(load(saved.mean + block * lanes));
    for (std::int64_t p = 0; p < tensors.x.plane_size(); p += lanes) {
      const Lanes value = load(x + p);
      Lanes d = masked<By>(saved, block, value, load(d_y + p));
      if constexpr (By == Mask::output) {
        d = where_positive(load(y + p), d);
        store(d_y + p, d);
      }
      sums.add_products(d, value);
    }
    sums.put(at(partial, task));
  });
}

/// After total(): d_x = (d - mean(d) - (x - mean) mean(d (x - mean)) inverse^2) inverse weight; the
/// scale that forward left is inverse times weight.
template <Mask By, class Stored>
void spread_gradients(const ExecutionSpace& exec, const NormGradient<Stored>& tensors,
                      const NormStatistics& saved, double* partial) {
  static const std::string label = "carousel::layers::norm_backward";
  const double count = values_of(tensors.x);
  for_each_task(exec, label, tensors.x.images * tensors.x.blocks, [=](int task) {
    const int image = task / tensors.x.blocks;
    const int block = task % tensors.x.blocks;
    const Stored* x = tensors.x.plane(image, block);
    const Stored* d_y = tensors.d_y.plane(image, block);
    Stored* d_x = tensors.d_x.plane(image, block);
    const Sums sums = at(partial, block);
    const Wide inverse = __builtin_convertvector(load(saved.inverse + block * lanes), Wide);
    const Lanes of_mean = __builtin_convertvector(sums.first / count, Lanes);
    const Lanes of_variance =
        __builtin_convertvector(sums.second * inverse * inverse / count, Lanes);
    const Lanes mean = load(saved.mean + block * lanes);
    const Lanes scale = load(saved.scale + block * lanes);
    for (std::int64_t p = 0; p < tensors.x.plane_size(); p += lanes) {
      const Lanes value = load(x + p);
      const Lanes d = masked<By>(saved, block, value, load(d_y + p));
      const Lanes gradient = (d - of_mean - (value - mean) * of_variance) * scale;
      store(d_x + p, tensors.adds ? load(d_x + p) + gradient : gradient);
    }
  });
}

template <Mask By, class Stored>
void run_gradient(const ExecutionSpace& exec, const NormGradient<Stored>& tensors,
                  const NormStatistics& saved, double* partial, real* d_weight, real* statistics) {
  static const std::string label = "carousel::layers::norm_backward_weight";
  sum_gradients<By>(exec, tensors, saved, partial);
  const int channels = tensors.x.blocks * lanes;
  for_each_task(exec, label, tensors.x.blocks, [=](int block) {
    const int c = block * lanes;
    const Sums sums = total(partial, tensors.x, block);
    const Wide inverse = __builtin_convertvector(load(saved.inverse + c), Wide);
    store(d_weight + c, __builtin_convertvector(sums.second * inverse, Lanes));
    store(d_weight + channels + c, __builtin_convertvector(sums.first, Lanes));
    store(statistics + c, load(saved.mean + c));
    store(statistics + channels + c, load(saved.variance + c));
  });
  if (tensors.d_x.data != nullptr) spread_gradients<By>(exec, tensors, saved, partial);
}

void put_scale(const Wide& mean, const Wide& variance, double epsilon, const real* weight,
               int channels, int c, const NormStatistics& to) {
  for (int l = 0; l < lanes; ++l) {
    const double inverse = 1 / Kokkos::sqrt(variance[l] + epsilon);
    const auto scale = static_cast<real>(inverse * weight[c + l]);
    to.inverse[c + l] = static_cast<real>(inverse);
    to.scale[c + l] = scale;
    to.shift[c + l] = static_cast<real>(weight[channels + c + l] - mean[l] * double{scale});
  }
}

/// `weight`: scale [c], then shift [c].
template <class Stored>
void batch_statistics(const ExecutionSpace& exec, const Planes<const Stored>& x, double epsilon,
                      const real* weight, double* partial, const NormStatistics& to) {
  static const std::string sum_label = "carousel::layers::norm_forward_sums";
  static const std::string label = "carousel::layers::norm_forward_statistics";
  // Sums of squares about some value of the channel lose nothing where its mean is large.
  for_each_task(exec, sum_label, x.images * x.blocks, [=](int task) {
    const Stored* plane = x.plane(task / x.blocks, task % x.blocks);
    RunningSums sums(load(x.plane(0, task % x.blocks)));
    for (std::int64_t p = 0; p < x.plane_size(); p += lanes) sums.add_squares(load(plane + p));
    sums.put(at(partial, task));
  });
  const int channels = x.blocks * lanes;
  const double count = values_of(x);
  for_each_task(exec, label, x.blocks, [=](int block) {
    const int c = block * lanes;
    const Sums sums = total(partial, x, block);
    const Wide from_pivot = sums.first / count;
    const Wide mean = __builtin_convertvector(load(x.plane(0, block)), Wide) + from_pivot;
    const Wide spread = sums.second / count - from_pivot * from_pivot;
    const Wide variance = spread < 0 ? Wide{} : spread;  // by rounding, where all are equal
    store(to.mean + c, __builtin_convertvector(mean, Lanes));
    store(to.variance + c, __builtin_convertvector(variance * (count / (count - 1)), Lanes));
    put_scale(mean, variance, epsilon, weight, channels, c, to);
  });
}

/// Scale and shift alone, from running mean [c] and variance [c].
void running_statistics(const ExecutionSpace& exec, int channels, double epsilon,
                        const real* weight, const real* running, const NormStatistics& to) {
  static const std::string label = "carousel::layers::norm_forward_running";
  for_each_task(exec, label, channels / lanes, [=](int block) {
    const int c = block * lanes;
    put_scale(__builtin_convertvector(load(running + c), Wide),
              __builtin_convertvector(load(running + channels + c), Wide), epsilon, weight,
              channels, c, to);
  });
}

}  // namespace

template <class Stored>
NormStatistics find_statistics(const ExecutionSpace& exec, const ForwardArguments& arguments,
                               double epsilon, std::span<std::byte> workspace) {
  const Planes<const Stored> x(arguments.input);
  const NormStatistics statistics(arguments.saved, x.blocks * lanes);
  if (arguments.again) return statistics;
  if (arguments.training)
    batch_statistics(exec, x, epsilon, arguments.parameters,
                     reinterpret_cast<double*>(workspace.data()), statistics);
  else
    running_statistics(exec, x.blocks * lanes, epsilon, arguments.parameters, arguments.buffers,
                       statistics);
  return statistics;
}

template <class Stored>
void norm_gradient(const ExecutionSpace& exec, Mask mask, const NormGradient<Stored>& tensors,
                   const NormStatistics& saved, double* partial, real* d_weight, real* statistics) {
  if (mask == Mask::none)
    run_gradient<Mask::none>(exec, tensors, saved, partial, d_weight, statistics);
  else if (mask == Mask::input)
    run_gradient<Mask::input>(exec, tensors, saved, partial, d_weight, statistics);
  else
    run_gradient<Mask::output>(exec, tensors, saved, partial, d_weight, statistics);
}

template NormStatistics find_statistics<real>(const ExecutionSpace&, const ForwardArguments&,
                                              double, std::span<std::byte>);
template NormStatistics find_statistics<Bfloat16>(const ExecutionSpace&, const ForwardArguments&,
                                                  double, std::span<std::byte>);
template void norm_gradient(const ExecutionSpace&, Mask, const NormGradient<real>&,
                            const NormStatistics&, double*, real*, real*);
template void norm_gradient(const ExecutionSpace&, Mask, const NormGradient<Bfloat16>&,
                            const NormStatistics&, double*, real*, real*);

}  // namespace carousel::blocked
