// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/channels_last/norm_kernels.hpp"

#include "layers/channels_last/column_sums.hpp"

namespace carousel::channels_last {
namespace {

KOKKOS_INLINE_FUNCTION void put_scale(double mean, double variance, const real* weight,
                                      int channels, int c, const NormStatistics& to) {
  const double inverse = 1 / Kokkos::sqrt(variance + batch_norm_epsilon);
  const auto scale = static_cast<real>(inverse * weight[c]);
  to.inverse[c] = static_cast<real>(inverse);
  to.scale[c] = scale;
  to.shift[c] = static_cast<real>(weight[channels + c] - mean * double{scale});
}

template <class Stored>
void batch_statistics(const ExecutionSpace& exec, const Rows<const Stored>& x, const real* weight,
                      double* partial, const NormStatistics& to) {
  static const std::string sum_label = "carousel::layers::norm_forward_sums";
  static const std::string label = "carousel::layers::norm_forward_statistics";
  // Sums of squares about some value of the channel lose nothing where its mean is large.
  add_up(
      exec, sum_label, x.rows, x.channels,
      KOKKOS_LAMBDA(std::int64_t row, int c) {
        const double d = double{full(x.data[row * x.channels + c])} - double{full(x.data[c])};
        return Sums{d, d * d};
      },
      partial);
  const auto chunks = static_cast<int>(sum_chunks(x.rows, x.channels));
  const auto count = static_cast<double>(x.rows);
  Kokkos::parallel_for(
      label, range(exec, x.channels), KOKKOS_LAMBDA(int c) {
        const Sums sums = total(partial, chunks, x.channels, c);
        const double from_pivot = sums.first / count;
        const double mean = double{full(x.data[c])} + from_pivot;
        // Below zero by rounding, where all are equal.
        const double variance = Kokkos::fmax(sums.second / count - from_pivot * from_pivot, 0.0);
        to.mean[c] = static_cast<real>(mean);
        to.variance[c] = static_cast<real>(variance * (count / (count - 1)));
        put_scale(mean, variance, weight, x.channels, c, to);
      });
}

/// Scale and shift alone, from running mean [c] and variance [c].
void running_statistics(const ExecutionSpace& exec, int channels, const real* weight,
                        const real* running, const NormStatistics& to) {
  static const std::string label = "carousel::layers::norm_forward_running";
  Kokkos::parallel_for(
      label, range(exec, channels), KOKKOS_LAMBDA(int c) {
        put_scale(running[c], running[channels + c], weight, channels, c, to);
      });
}

/// The gradient of what was normalised and then, perhaps, rectified.
template <class Stored>
struct Masked {
  Mask mask;
  Rows<const Stored> x;
  Rows<const Stored> y;
  Rows<Stored> d_y;
  NormStatistics saved;

  [[nodiscard]] KOKKOS_FUNCTION real operator()(std::int64_t i, int c) const {
    const real d = full(d_y.data[i]);
    if (mask == Mask::input)
      return full(x.data[i]) * saved.scale[c] + saved.shift[c] <= 0 ? real{0} : d;
    if (mask == Mask::output) return full(y.data[i]) <= 0 ? real{0} : d;
    return d;
  }
};

/// Leaves the sums of all chunks in place of the first one's.
void parameter_gradients(const ExecutionSpace& exec, int chunks, int channels,
                         const NormStatistics& saved, double* partial, real* d_weight,
                         real* statistics) {
  static const std::string label = "carousel::layers::norm_backward_weight";
  Kokkos::parallel_for(
      label, range(exec, channels), KOKKOS_LAMBDA(int c) {
        const Sums sums = total(partial, chunks, channels, c);
        d_weight[c] = static_cast<real>(sums.second * saved.inverse[c]);
        d_weight[channels + c] = static_cast<real>(sums.first);
        statistics[c] = saved.mean[c];
        statistics[channels + c] = saved.variance[c];
      });
}

template <class Stored>
void run_gradient(const ExecutionSpace& exec, Mask mask, const NormGradient& tensors,
                  const NormStatistics& saved, double* partial, real* d_weight, real* statistics) {
  static const std::string mask_label = "carousel::layers::norm_backward_mask";
  static const std::string sum_label = "carousel::layers::norm_backward_sums";
  static const std::string label = "carousel::layers::norm_backward";
  const Rows<const Stored> x(tensors.x);
  const Rows<Stored> d_y(tensors.d_y);
  const Masked<Stored> masked{mask, x, Rows<const Stored>(tensors.y), d_y, saved};
  const int channels = x.channels;
  if (mask == Mask::output)
    for_each_number(
        exec, mask_label, x.size(), channels,
        KOKKOS_LAMBDA(int c, std::int64_t i) { put(d_y.data[i], masked(i, c)); });
  // What was masked stays so.
  add_up(
      exec, sum_label, x.rows, channels,
      KOKKOS_LAMBDA(std::int64_t row, int c) {
        const std::int64_t i = row * channels + c;
        const double d = masked(i, c);
        return Sums{d, d * (double{full(x.data[i])} - double{saved.mean[c]})};
      },
      partial);
  parameter_gradients(exec, static_cast<int>(sum_chunks(x.rows, channels)), channels, saved,
                      partial, d_weight, statistics);
  if (tensors.d_x.data == nullptr) return;
  const Rows<Stored> d_x(tensors.d_x);
  const bool adds = tensors.adds;
  const auto count = static_cast<double>(x.rows);
  const auto* sums = reinterpret_cast<const Sums*>(partial);
  for_each_number(
      exec, label, x.size(), channels, KOKKOS_LAMBDA(int c, std::int64_t i) {
        const double inverse = saved.inverse[c];
        const auto of_mean = static_cast<real>(sums[c].first / count);
        const auto of_variance = static_cast<real>(sums[c].second * inverse * inverse / count);
        const real value = full(x.data[i]);
        const real gradient =
            (masked(i, c) - of_mean - (value - saved.mean[c]) * of_variance) * saved.scale[c];
        put(d_x.data[i], adds ? full(d_x.data[i]) + gradient : gradient);
      });
}

template <class Stored>
void apply(const ExecutionSpace& exec, const Rows<const Stored>& x,
           const Rows<const Stored>& second, const NormStatistics& statistics, bool rectifies,
           const Rows<Stored>& y) {
  static const std::string label = "carousel::layers::norm_forward";
  for_each_number(
      exec, label, x.size(), x.channels, KOKKOS_LAMBDA(int c, std::int64_t i) {
        real value = full(x.data[i]) * statistics.scale[c] + statistics.shift[c];
        if (second.data != nullptr) value += full(second.data[i]);
        put(y.data[i], rectifies && value <= 0 ? real{0} : value);
      });
}

}  // namespace

NormStatistics find_statistics(const ExecutionSpace& exec, DataType type,
                               const ForwardArguments& arguments, const real* weight,
                               double* partial) {
  const int channels = arguments.input.shape.channels;
  const NormStatistics statistics(arguments.saved, channels);
  if (arguments.again) return statistics;
  if (!arguments.training) {
    running_statistics(exec, channels, weight, arguments.buffers, statistics);
    return statistics;
  }
  with_stored(type, [&]<class Stored>() {
    batch_statistics<Stored>(exec, Rows<const Stored>(arguments.input), weight, partial,
                             statistics);
  });
  return statistics;
}

void normalise(const ExecutionSpace& exec, DataType type, const ConstTensor& x,
               const ConstTensor& second, const NormStatistics& statistics, bool rectifies,
               const Tensor& y) {
  with_stored(type, [&]<class Stored>() {
    apply<Stored>(exec, Rows<const Stored>(x), Rows<const Stored>(second), statistics, rectifies,
                  Rows<Stored>(y));
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
