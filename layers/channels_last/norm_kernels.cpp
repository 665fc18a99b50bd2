// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/channels_last/norm_kernels.hpp"

#include "layers/channels_last/column_sums.hpp"

namespace carousel::channels_last {
namespace {

KOKKOS_INLINE_FUNCTION void put_scale(double mean, double variance, double epsilon,
                                      const real* weight, int channels, int c,
                                      const NormStatistics& to) {
  const double inverse = 1 / Kokkos::sqrt(variance + epsilon);
  const auto scale = static_cast<real>(inverse * weight[c]);
  to.inverse[c] = static_cast<real>(inverse);
  to.scale[c] = scale;
  to.shift[c] = static_cast<real>(weight[channels + c] - mean * double{scale});
}

/// Sums of x - pivot and of their squares. About some value of the channel these lose nothing where
/// its mean is large.
template <class Stored>
struct DeviationSums {
  Rows<const Stored> x;

  template <int Width>
  KOKKOS_FUNCTION void add(int c, std::int64_t row, int stride, std::int64_t end,
                           Sums* sums) const {
    const auto pivots = read_pack<Width>(x.data + c);
    for (; row < end; row += stride) {
      const auto values = read_pack<Width>(x.data + row * x.channels + c);
      for (int l = 0; l < Width; ++l) {
        const double d = double{full(values.at[l])} - double{full(pivots.at[l])};
        sums[l] += {d, d * d};
      }
    }
  }
};

template <class Stored>
void batch_statistics(const ExecutionSpace& exec, const Rows<const Stored>& x, double epsilon,
                      const real* weight, double* partial, const NormStatistics& to) {
  static const std::string sum_label = "carousel::layers::norm_forward_sums";
  static const std::string label = "carousel::layers::norm_forward_statistics";
  const auto count = static_cast<double>(x.rows);
  add_up(
      exec, {sum_label, label}, x.rows, x.channels, DeviationSums<Stored>{x}, partial,
      KOKKOS_LAMBDA(int c, const Sums& sums) {
        const double from_pivot = sums.first / count;
        const double mean = double{full(x.data[c])} + from_pivot;
        // Below zero by rounding, where all are equal.
        const double variance = Kokkos::fmax(sums.second / count - from_pivot * from_pivot, 0.0);
        to.mean[c] = static_cast<real>(mean);
        to.variance[c] = static_cast<real>(variance * (count / (count - 1)));
        put_scale(mean, variance, epsilon, weight, x.channels, c, to);
      });
}

/// Scale and shift alone, from running mean [c] and variance [c].
void running_statistics(const ExecutionSpace& exec, int channels, double epsilon,
                        const real* weight, const real* running, const NormStatistics& to) {
  static const std::string label = "carousel::layers::norm_forward_running";
  Kokkos::parallel_for(
      label, range(exec, channels), KOKKOS_LAMBDA(int c) {
        put_scale(running[c], running[channels + c], epsilon, weight, channels, c, to);
      });
}

/// The gradient of what was normalised, of the gradient of what was then, perhaps, rectified.
KOKKOS_INLINE_FUNCTION real masked(Mask mask, real d, real x, real y, real scale, real shift) {
  if (mask == Mask::input) return x * scale + shift <= 0 ? real{0} : d;
  if (mask == Mask::output) return y <= 0 ? real{0} : d;
  return d;
}

/// Sums of the masked d_y and of its products with x - mean. What the output masks is stored.
template <class Stored>
struct GradientSums {
  Mask mask;
  Rows<const Stored> x;
  Rows<const Stored> y;
  Rows<Stored> d_y;
  NormStatistics saved;

  template <int Width>
  KOKKOS_FUNCTION void add(int c, std::int64_t row, int stride, std::int64_t end,
                           Sums* sums) const {
    const auto mean = read_numbers<Width>(saved.mean + c);
    const auto scale = read_numbers<Width>(saved.scale + c);
    const auto shift = read_numbers<Width>(saved.shift + c);
    const bool stores = mask == Mask::output;
    for (; row < end; row += stride) {
      const std::int64_t i = row * x.channels + c;
      const auto values = read_pack<Width>(x.data + i);
      auto gradients = read_pack<Width>(d_y.data + i);
      const auto outputs = stores ? read_pack<Width>(y.data + i) : Pack<Stored, Width>{};
      for (int l = 0; l < Width; ++l) {
        const real value = full(values.at[l]);
        const real d = masked(mask, full(gradients.at[l]), value, full(outputs.at[l]), scale.at[l],
                              shift.at[l]);
        if (stores) put(gradients.at[l], d);
        sums[l] += {double{d}, double{d} * (double{value} - double{mean.at[l]})};
      }
      if (stores) write_pack(d_y.data + i, gradients);
    }
  }
};

template <class Stored>
struct NormalisedGradient {
  Mask mask;
  Rows<const Stored> x;
  Rows<const Stored> d_y;
  Rows<Stored> d_x;
  bool adds;
  NormStatistics saved;
  const real* d_weight;  // of scale [c], then shift [c]

  template <int Width>
  KOKKOS_FUNCTION void visit(int c, std::int64_t first, std::int64_t step, std::int64_t end) const {
    const auto mean = read_numbers<Width>(saved.mean + c);
    const auto scale = read_numbers<Width>(saved.scale + c);
    const auto shift = read_numbers<Width>(saved.shift + c);
    auto of_variance = read_numbers<Width>(d_weight + c);
    auto of_mean = read_numbers<Width>(d_weight + x.channels + c);
    const real part = 1 / static_cast<real>(x.rows);
    for (int l = 0; l < Width; ++l) {
      of_variance.at[l] *= saved.inverse[c + l] * part;
      of_mean.at[l] *= part;
    }
    const bool adds_here = adds;
    for (std::int64_t i = first; i < end; i += step) {
      const auto values = read_pack<Width>(x.data + i);
      const auto gradients = read_pack<Width>(d_y.data + i);
      auto to = adds_here ? read_pack<Width>(d_x.data + i) : Pack<Stored, Width>{};
      for (int l = 0; l < Width; ++l) {
        const real value = full(values.at[l]);
        // What the output masked stays so.
        const Mask left = mask == Mask::output ? Mask::none : mask;
        const real d = masked(left, full(gradients.at[l]), value, 0, scale.at[l], shift.at[l]);
        const real gradient =
            (d - of_mean.at[l] - (value - mean.at[l]) * of_variance.at[l]) * scale.at[l];
        put(to.at[l], adds_here ? full(to.at[l]) + gradient : gradient);
      }
      write_pack(d_x.data + i, to);
    }
  }
};

template <class Stored>
void run_gradient(const ExecutionSpace& exec, Mask mask, const NormGradient& tensors,
                  const NormStatistics& saved, double* partial, real* d_weight, real* statistics) {
  static const std::string sum_label = "carousel::layers::norm_backward_sums";
  static const std::string weight_label = "carousel::layers::norm_backward_weight";
  static const std::string label = "carousel::layers::norm_backward";
  const Rows<const Stored> x(tensors.x);
  const Rows<Stored> d_y(tensors.d_y);
  const int channels = x.channels;
  add_up(
      exec, {sum_label, weight_label}, x.rows, channels,
      GradientSums<Stored>{mask, x, Rows<const Stored>(tensors.y), d_y, saved}, partial,
      KOKKOS_LAMBDA(int c, const Sums& sums) {
        d_weight[c] = static_cast<real>(sums.second * saved.inverse[c]);
        d_weight[channels + c] = static_cast<real>(sums.first);
        statistics[c] = saved.mean[c];
        statistics[channels + c] = saved.variance[c];
      });
  if (tensors.d_x.data == nullptr) return;
  for_each_pack(
      exec, label, x.size(), channels,
      NormalisedGradient<Stored>{mask, x, Rows<const Stored>(tensors.d_y),
                                 Rows<Stored>(tensors.d_x), tensors.adds, saved, d_weight});
}

/// [max(0,] scale x + shift [+ second] [)]
template <class Stored>
struct Normalise {
  Rows<const Stored> x;
  Rows<const Stored> second;
  NormStatistics statistics;
  bool rectifies;
  Rows<Stored> y;

  template <int Width>
  KOKKOS_FUNCTION void visit(int c, std::int64_t first, std::int64_t step, std::int64_t end) const {
    const auto scale = read_numbers<Width>(statistics.scale + c);
    const auto shift = read_numbers<Width>(statistics.shift + c);
    const bool adds = second.data != nullptr;
    for (std::int64_t i = first; i < end; i += step) {
      const auto values = read_pack<Width>(x.data + i);
      const auto others = adds ? read_pack<Width>(second.data + i) : Pack<Stored, Width>{};
      Pack<Stored, Width> to;
      for (int l = 0; l < Width; ++l) {
        real value = full(values.at[l]) * scale.at[l] + shift.at[l];
        if (adds) value += full(others.at[l]);
        put(to.at[l], rectifies && value <= 0 ? real{0} : value);
      }
      write_pack(y.data + i, to);
    }
  }
};

}  // namespace

NormStatistics find_statistics(const ExecutionSpace& exec, DataType type,
                               const ForwardArguments& arguments, double epsilon,
                               const real* weight, double* partial) {
  const int channels = arguments.input.shape.channels;
  const NormStatistics statistics(arguments.saved, channels);
  if (arguments.again) return statistics;
  if (!arguments.training) {
    running_statistics(exec, channels, epsilon, weight, arguments.buffers, statistics);
    return statistics;
  }
  with_stored(type, [&]<class Stored>() {
    batch_statistics<Stored>(exec, Rows<const Stored>(arguments.input), epsilon, weight, partial,
                             statistics);
  });
  return statistics;
}

void normalise(const ExecutionSpace& exec, DataType type, const ConstTensor& x,
               const ConstTensor& second, const NormStatistics& statistics, bool rectifies,
               const Tensor& y) {
  static const std::string label = "carousel::layers::norm_forward";
  with_stored(type, [&]<class Stored>() {
    const Rows<const Stored> from(x);
    for_each_pack(exec, label, from.size(), from.channels,
                  Normalise<Stored>{from, Rows<const Stored>(second), statistics, rectifies,
                                    Rows<Stored>(y)});
  });
}

void norm_gradient(const ExecutionSpace& exec, DataType type, Mask mask,
                   const NormGradient& tensors, const NormStatistics& saved, double* partial,
                   real* d_weight, real* statistics) {
  with_stored(type, [&]<class Stored>() {
    run_gradient<Stored>(exec, mask, tensors, saved, partial, d_weight, statistics);
  });
}

}  // namespace carousel::channels_last
