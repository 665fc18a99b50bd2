// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/blocked/norm_kernels.hpp"

#include "layers/blocked/plane_sums.hpp"
#include "layers/blocked/tasks.hpp"

namespace carousel::blocked {
namespace {

using Sums = PlaneSums<2>;

[[gnu::always_inline]] inline Sums& at(double* partial, std::int64_t number) {
  return reinterpret_cast<Sums*>(partial)[number];
}

/// Adds the slices, in order; the sums of the first one become those of all.
template <class Stored>
Sums total(double* partial, const Planes<const Stored>& x, int block) {
  Sums& sums = at(partial, block);
  for (int i = 1; i < x.slices(); ++i) {
    const Sums& slice = at(partial, std::int64_t{i} * x.blocks + block);
    sums.of[0] += slice.of[0];
    sums.of[1] += slice.of[1];
  }
  return sums;
}

template <class Stored>
double values_of(const Planes<const Stored>& x) {
  return static_cast<double>(x.images * x.pixels());
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
  for_each_task(exec, label, tensors.x.slices() * tensors.x.blocks, [=](int task) {
    const int slice = task / tensors.x.blocks;
    const int block = task % tensors.x.blocks;
    const Stored* x = tensors.x.slice(slice, block);
    const Stored* y = By == Mask::output ? tensors.y.slice(slice, block) : nullptr;
    Stored* d_y = tensors.d_y.slice(slice, block);
    const Lanes mean = load(saved.mean + block * lanes);
    Sums sums;
    add_pixels(
        tensors.x.slice_size(),
        sums, [&](std::int64_t p, Lanes(&of)[2]) __attribute__((always_inline)) {
          const Lanes value = load(x + p);
          Lanes d = masked<By>(saved, block, value, load(d_y + p));
          if constexpr (By == Mask::output) {
            d = where_positive(load(y + p), d);
            store(d_y + p, d);
          }
          of[0] = d;
          of[1] = d * (value - mean);
        });
    at(partial, task) = sums;
  });
}

/// After total(): d_x = (d - mean(d) - (x - mean) mean(d (x - mean)) inverse^2) inverse weight; the
/// scale that forward left is inverse times weight.
template <Mask By, class Stored>
void spread_gradients(const ExecutionSpace& exec, const NormGradient<Stored>& tensors,
                      const NormStatistics& saved, double* partial) {
  static const std::string label = "carousel::layers::norm_backward";
  const double count = values_of(tensors.x);
  for_each_task(exec, label, tensors.x.slices() * tensors.x.blocks, [=](int task) {
    const int slice = task / tensors.x.blocks;
    const int block = task % tensors.x.blocks;
    const Stored* x = tensors.x.slice(slice, block);
    const Stored* d_y = tensors.d_y.slice(slice, block);
    Stored* d_x = tensors.d_x.slice(slice, block);
    const Sums sums = at(partial, block);
    const Wide inverse = __builtin_convertvector(load(saved.inverse + block * lanes), Wide);
    const Lanes of_mean = __builtin_convertvector(sums.of[0] / count, Lanes);
    const Lanes of_variance =
        __builtin_convertvector(sums.of[1] * inverse * inverse / count, Lanes);
    const Lanes mean = load(saved.mean + block * lanes);
    const Lanes scale = load(saved.scale + block * lanes);
    for (std::int64_t p = 0; p < tensors.x.slice_size(); p += lanes) {
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
    store(d_weight + c, __builtin_convertvector(sums.of[1] * inverse, Lanes));
    store(d_weight + channels + c, __builtin_convertvector(sums.of[0], Lanes));
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
  for_each_task(exec, sum_label, x.slices() * x.blocks, [=](int task) {
    const Stored* slice = x.slice(task / x.blocks, task % x.blocks);
    at(partial, task) = squares_about(load(x.plane(0, task % x.blocks)), slice, x.slice_size());
  });
  const int channels = x.blocks * lanes;
  const double count = values_of(x);
  for_each_task(exec, label, x.blocks, [=](int block) {
    const int c = block * lanes;
    const Sums sums = total(partial, x, block);
    const Wide from_pivot = sums.of[0] / count;
    const Wide mean = __builtin_convertvector(load(x.plane(0, block)), Wide) + from_pivot;
    const Wide spread = sums.of[1] / count - from_pivot * from_pivot;
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
