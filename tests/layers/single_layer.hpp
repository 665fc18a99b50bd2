// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One layer on one micro-batch, from and to plain vectors, for tests of kernels. What a backward
// must overwrite or must not touch holds marks before; what is right is known elsewhere.

#include <optional>
#include <utility>

#include "layers/factory.hpp"
#include "tests/layers/device.hpp"

namespace carousel::test {

/// What a convolution or a pooling leaves of `size` rows or columns.
[[nodiscard]] inline int windows_along(int size, const Window& window) {
  return window.kernel > 0 ? (size + 2 * window.padding - window.kernel) / window.stride + 1 : 1;
}

[[nodiscard]] inline LayerSpec image_layer(const LayerKind& kind, const SampleShape& input,
                                           int channels, const Window& window) {
  LayerSpec spec;
  spec.kind = kind;
  spec.name = "layer";
  spec.inputs = {{-1, input}};
  spec.output = {channels, windows_along(input.height, window), windows_along(input.width, window)};
  return spec;
}

class SingleLayer {
 public:
  /// What numbers that nobody wrote are.
  static constexpr real mark = real(-1e30);

  SingleLayer(const LayerSpec& spec, int n, const Numbers& parameters = {},
              const Numbers& buffers = {})
      : spec_(spec),
        n_(n),
        layer_(make_layer(spec, n, {})),
        parameters_(to_device(parameters)),
        buffers_(to_device(buffers)),
        saved_(marked(
            spec.saved.empty() ? 0 : spec.saved.front().bytes.of(n) / std::int64_t{sizeof(real)})),
        d_parameters_(marked(spec.parameter_size())),
        statistics_(marked(spec.buffer_size())) {}

  Numbers forward(const Numbers& x, bool training = true) {
    x_ = to_device(x);
    y_ = marked(n_ * spec_.output.size());
    layer_->forward(ExecutionSpace(), {.input = {x_.data(), n_, spec_.input()},
                                       .output = {y_.data(), n_, spec_.output},
                                       .parameters = parameters_.data(),
                                       .saved = reinterpret_cast<std::byte*>(saved_.data()),
                                       .buffers = buffers_.data(),
                                       .training = training});
    return to_host(y_);
  }

  /// The gradient of the input, added to `others` where there are such.
  Numbers backward(const Numbers& d_y, const std::optional<Numbers>& others = {}) {
    const Device<real> d_x = others ? to_device(*others) : marked(n_ * spec_.input().size());
    run_backward(d_y, d_x.data(), others.has_value());
    return to_host(d_x);
  }
  /// As the first layer of a model, where nobody wants the gradient of the input.
  void backward_without_input(const Numbers& d_y) { run_backward(d_y, nullptr, false); }

  [[nodiscard]] Numbers d_parameters() const { return to_host(d_parameters_); }
  [[nodiscard]] Numbers statistics() const { return to_host(statistics_); }
  [[nodiscard]] Numbers saved() const { return to_host(saved_); }

 private:
  static Device<real> marked(std::int64_t size) {
    Device<real> numbers("carousel::test::marked", size);
    Kokkos::deep_copy(numbers, mark);
    return numbers;
  }

  void run_backward(const Numbers& d_y, real* d_x, bool adds) {
    const auto d_output = to_device(d_y);
    Kokkos::deep_copy(d_parameters_, mark);
    Kokkos::deep_copy(statistics_, mark);
    layer_->backward(ExecutionSpace(), {.input = {x_.data(), n_, spec_.input()},
                                        .output = {y_.data(), n_, spec_.output},
                                        .d_output = {d_output.data(), n_, spec_.output},
                                        .d_input = {d_x, n_, spec_.input()},
                                        .parameters = parameters_.data(),
                                        .d_parameters = d_parameters_.data(),
                                        .adds_input = adds,
                                        .saved = reinterpret_cast<std::byte*>(saved_.data()),
                                        .statistics = statistics_.data()});
    Kokkos::fence("carousel::test::backward");
  }

  LayerSpec spec_;
  int n_;
  std::unique_ptr<Layer> layer_;
  Device<real> x_, y_, parameters_, buffers_, saved_, d_parameters_, statistics_;
};

/// What stood there with a gradient added to it.
[[nodiscard]] inline Numbers sum(Numbers numbers, const Numbers& others) {
  for (std::size_t k = 0; k < numbers.size(); ++k) numbers[k] += others.at(k);
  return numbers;
}

[[nodiscard]] inline Numbers joined(Numbers first, const Numbers& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace carousel::test
