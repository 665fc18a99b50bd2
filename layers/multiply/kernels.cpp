// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// y = a b, where a factor may have one number for all pixels of a channel, or for all channels of a
// pixel. Backward reads both factors.

#include "core/base/check.hpp"
#include "core/base/range.hpp"
#include "core/engine/layer.hpp"
#include "layers/multiply/op.hpp"
#include "layers/stored.hpp"

namespace carousel::kernels {
namespace {

using op::Spread;

/// How the product lies: [n][planes][pixels][block].
struct Order {
  int channels;
  int pixels;
  int block;

  [[nodiscard]] KOKKOS_FUNCTION int planes() const { return channels / block; }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t sample_size() const {
    return std::int64_t{channels} * pixels;
  }
};

/// Number `lane` of pixel p in a plane is at begin + p pixel + lane.
struct Strides {
  std::int64_t begin;
  int pixel;
  int lane;
};

[[nodiscard]] KOKKOS_FUNCTION Strides strides_of(Spread spread, const Order& order,
                                                 std::int64_t sample, int plane) {
  if (spread == Spread::channel)
    return {sample * order.channels + std::int64_t{plane} * order.block, 0, 1};
  if (spread == Spread::pixel) return {sample * order.pixels, 1, 0};
  const std::int64_t plane_size = std::int64_t{order.pixels} * order.block;
  return {(sample * order.planes() + plane) * plane_size, order.block, 1};
}

template <class Stored>
struct Factor {
  const Stored* data;
  Spread spread;

  Factor(const ConstTensor& tensor, Spread spread_of_it)
      : data(reinterpret_cast<const Stored*>(tensor.data)), spread(spread_of_it) {}
};

/// to = a b, or to += a b, where `to` has a number for each of the product: on hosts plane by
/// plane, of which vector registers take many numbers at once.
template <class Stored>
struct Product {
  Order order;
  Factor<Stored> a;
  Factor<Stored> b;
  Stored* to;
  bool adds;

  [[nodiscard]] std::int64_t work(int n) const {
    return n * (runs_on_host ? order.planes() : order.sample_size());
  }

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t plane = runs_on_host ? index : index / order.block / order.pixels;
    const std::int64_t sample = plane / order.planes();
    const auto of_sample = static_cast<int>(plane % order.planes());
    const Strides in_a = strides_of(a.spread, order, sample, of_sample);
    const Strides in_b = strides_of(b.spread, order, sample, of_sample);
    const std::int64_t begin = plane * order.pixels * order.block;
    if constexpr (!runs_on_host) {
      set(begin, in_a, in_b, index / order.block % order.pixels, index % order.block);
    } else if (order.block == 1) {
      for (std::int64_t p = 0; p < order.pixels; ++p) set(begin, in_a, in_b, p, 0);
    } else {
      for (std::int64_t p = 0; p < order.pixels; ++p)
        for (int lane = 0; lane < order.block; ++lane) set(begin, in_a, in_b, p, lane);
    }
  }

 private:
  KOKKOS_FUNCTION void set(std::int64_t begin, const Strides& in_a, const Strides& in_b,
                           std::int64_t p, std::int64_t lane) const {
    const real product = full(a.data[in_a.begin + p * in_a.pixel + lane * in_a.lane]) *
                         full(b.data[in_b.begin + p * in_b.pixel + lane * in_b.lane]);
    Stored& number = to[begin + p * order.block + lane];
    put(number, adds ? full(number) + product : product);
  }
};

template <class Stored>
void multiply(const ExecutionSpace& exec, const std::string& label, int n,
              const Product<Stored>& product) {
  Kokkos::parallel_for(label, range(exec, product.work(n)), product);
}

/// to[n][c] = sum over pixels of d_y other, in an order that depends on nothing but the shape.
template <class Stored>
void sum_pixels(const ExecutionSpace& exec, int n, const Order& order, const Stored* d_y,
                const Factor<Stored>& other, Stored* to, bool adds) {
  static const std::string label = "carousel::layers::multiply_sum_pixels";
  Kokkos::parallel_for(
      label, range(exec, std::int64_t{n} * order.channels), KOKKOS_LAMBDA(std::int64_t index) {
        constexpr int lanes = 8;  // sums beside each other
        const std::int64_t sample = index / order.channels;
        const auto c = static_cast<int>(index % order.channels);
        const int lane = c % order.block;
        const Strides in = strides_of(Spread::number, order, sample, c / order.block);
        const Strides of_other = strides_of(other.spread, order, sample, c / order.block);
        const Stored* gradient = d_y + in.begin + lane;
        const Stored* factor = other.data + of_other.begin + std::int64_t{lane} * of_other.lane;
        double sums[lanes] = {};  // NOLINT(modernize-avoid-c-arrays)
        std::int64_t p = 0;
        for (; p + lanes <= order.pixels; p += lanes) {
          for (int l = 0; l < lanes; ++l)
            sums[l] += double{full(gradient[(p + l) * in.pixel])} *
                       double{full(factor[(p + l) * of_other.pixel])};
        }
        for (int l = 0; p < order.pixels; ++p, ++l)
          sums[l] +=
              double{full(gradient[p * in.pixel])} * double{full(factor[p * of_other.pixel])};
        double sum = 0;
        for (const double part : sums) sum += part;
        put(to[index], static_cast<real>(adds ? double{full(to[index])} + sum : sum));
      });
}

/// to[n][pixel] = sum over channels of d_y other.
template <class Stored>
void sum_channels(const ExecutionSpace& exec, int n, const Order& order, const Stored* d_y,
                  const Factor<Stored>& other, Stored* to, bool adds) {
  static const std::string label = "carousel::layers::multiply_sum_channels";
  Kokkos::parallel_for(
      label, range(exec, std::int64_t{n} * order.pixels), KOKKOS_LAMBDA(std::int64_t index) {
        const std::int64_t sample = index / order.pixels;
        const std::int64_t p = index % order.pixels;
        double sum = adds ? double{full(to[index])} : 0;
        for (int plane = 0; plane < order.planes(); ++plane) {
          const Strides in = strides_of(Spread::number, order, sample, plane);
          const Strides of_other = strides_of(other.spread, order, sample, plane);
          for (int lane = 0; lane < order.block; ++lane)
            sum += double{full(d_y[in.begin + p * in.pixel + lane])} *
                   double{full(other.data[of_other.begin + p * of_other.pixel +
                                          std::int64_t{lane} * of_other.lane])};
        }
        put(to[index], static_cast<real>(sum));
      });
}

class Multiply final : public Layer {
 public:
  explicit Multiply(const LayerSpec& spec)
      : first_(spec.as<op::Multiply>().spreads[0]),
        second_(spec.as<op::Multiply>().spreads[1]),
        type_(spec.output_format.type),
        order_{spec.output.channels, static_cast<int>(spec.output.pixels()),
               spec.output_format.block} {
    CAROUSEL_CHECK(order_.channels % order_.block == 0, "{} in blocks of {}",
                   to_string(spec.output), order_.block);
  }

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    static const std::string label = "carousel::layers::multiply_forward";
    with_stored(type_, [&]<class Stored>() {
      multiply<Stored>(exec, label, arguments.output.n,
                       {order_,
                        {arguments.input, first_},
                        {arguments.second, second_},
                        reinterpret_cast<Stored*>(arguments.output.data),
                        false});
    });
  }

  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    with_stored(type_, [&]<class Stored>() {
      find_gradient<Stored>(exec, arguments.d_output, {arguments.second, second_},
                            arguments.d_input, first_, arguments.adds_input);
      find_gradient<Stored>(exec, arguments.d_output, {arguments.input, first_}, arguments.d_second,
                            second_, arguments.adds_second);
    });
  }

 private:
  /// Of one factor, from the other.
  template <class Stored>
  void find_gradient(const ExecutionSpace& exec, const ConstTensor& d_output,
                     const Factor<Stored>& other, const Tensor& gradient, Spread spread,
                     bool adds) const {
    static const std::string label = "carousel::layers::multiply_backward";
    if (gradient.data == nullptr) return;
    auto* to = reinterpret_cast<Stored*>(gradient.data);
    const auto* d_y = reinterpret_cast<const Stored*>(d_output.data);
    if (spread == Spread::channel)
      sum_pixels(exec, d_output.n, order_, d_y, other, to, adds);
    else if (spread == Spread::pixel)
      sum_channels(exec, d_output.n, order_, d_y, other, to, adds);
    else
      multiply<Stored>(exec, label, d_output.n,
                       {order_, {d_output, Spread::number}, other, to, adds});
  }

  Spread first_;
  Spread second_;
  DataType type_;
  Order order_;
};

}  // namespace

std::unique_ptr<Layer> multiply(const LayerSpec& spec, int /*samples*/, const Engine& /*engine*/) {
  return std::make_unique<Multiply>(spec);
}

}  // namespace carousel::kernels
