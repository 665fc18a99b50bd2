// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One layer on one micro-batch, from and to plain vectors in PyTorch's order, for tests of kernels;
// numbers are stored in the types that its spec says, in place where it says so. What a pass must
// overwrite or must not touch holds marks before, the workspace always; what is right is known
// elsewhere.

#include <algorithm>
#include <any>
#include <numeric>
#include <optional>
#include <utility>

#include "core/model/op.hpp"
#include "layers/factory.hpp"
#include "tests/layers/blocks.hpp"
#include "tests/layers/device.hpp"
#include "tests/layers/stored.hpp"

namespace carousel::test {

/// What a convolution or a pooling leaves of `size` rows or columns.
[[nodiscard]] inline int windows_along(int size, const Window& window) {
  return window.kernel > 0 ? (size + 2 * window.padding - window.kernel) / window.stride + 1 : 1;
}

[[nodiscard]] inline LayerSpec image_layer(const char* kind, std::any attributes,
                                           const SampleShape& input, int channels,
                                           const Window& window) {
  LayerSpec spec;
  spec.kind = &op_named(kind);
  spec.attributes = std::move(attributes);
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
              const Numbers& buffers = {}, VendorHandles* vendor = nullptr)
      : spec_(spec),
        n_(n),
        working_(spec.workspace_bytes(n) / std::int64_t{sizeof(real)}),
        workspace_(marked(working_ + guard)),
        layer_(make_layer(spec, n, engine(vendor))),
        parameters_(stored_parameters(parameters)),
        buffers_(to_device(buffers)),
        saving_(spec.saved_bytes(n) / std::int64_t{sizeof(real)}),
        saved_(marked(saving_ + guard)),
        d_parameters_(marked(spec.parameter_size())),
        statistics_(marked(spec.buffer_size())) {
    draw_from(0);
  }

  /// The micro-batch begins with that sample of the data set.
  void draw_from(int sample) {
    std::vector<int> samples(static_cast<std::size_t>(n_));
    std::iota(samples.begin(), samples.end(), sample);
    samples_ = to_device(samples);
  }
  /// Backward finds of input and output what its spec says that it reads, and no more.
  void hand_over_what_is_saved() { hands_over_all_ = false; }

  Numbers forward(const Numbers& x, bool training = true) { return forward(x, {}, training); }
  /// Of a layer with two inputs.
  Numbers forward(const Numbers& x, const Numbers& second, bool training = true) {
    return run_forward(x, second, forward_arguments(training));
  }
  /// Once more, for backward: what it saved is there.
  Numbers forward_again(const Numbers& x, const Numbers& second = {}) {
    ForwardArguments arguments = forward_arguments(true);
    arguments.again = true;
    return run_forward(x, second, arguments);
  }

  /// The gradient of the input, added to `others` where there are such.
  Numbers backward(const Numbers& d_y, const std::optional<Numbers>& others = {}) {
    const TensorFormat& format = spec_.inputs[0].format;
    d_x_ = others ? on_device(*others, spec_.input(), format)
                  : marked(n_ * spec_.input().size(), format.type);
    run_backward(d_y, others.has_value());
    return from_device(d_x_, spec_.input(), format);
  }
  /// After backward: the gradient of the second input.
  [[nodiscard]] Numbers d_second() const {
    return from_device(d_second_, second_shape(), spec_.inputs.back().format);
  }
  /// From now on that is added to these numbers.
  void add_second(const Numbers& others) { second_others_ = others; }
  /// From now on nobody gives room for it.
  void leave_out_second() { leaves_out_second_ = true; }
  /// After backward: what is left of the gradient of the output.
  [[nodiscard]] Numbers d_output() const {
    return from_device(d_output_, spec_.output, spec_.output_format);
  }
  /// As the first layer of a model, where nobody wants the gradient of the input.
  void backward_without_input(const Numbers& d_y) {
    d_x_ = {};
    run_backward(d_y, false, false);
  }
  /// What forward and backward did last, and nothing else, for who counts what a layer takes.
  void repeat(const ExecutionSpace& exec) {
    layer_->forward(exec, forward_arguments(true));
    layer_->backward(exec, backward_arguments(false));
  }

  [[nodiscard]] Numbers d_parameters() const { return to_host(d_parameters_); }
  [[nodiscard]] Numbers statistics() const { return to_host(statistics_); }
  [[nodiscard]] Numbers saved() const {
    Numbers numbers = to_host(saved_);
    numbers.resize(static_cast<std::size_t>(saving_));
    return numbers;
  }

 private:
  using Bytes = Device<std::byte>;

  static Device<real> marked(std::int64_t size) {
    Device<real> numbers("carousel::test::marked", size);
    Kokkos::deep_copy(numbers, mark);
    return numbers;
  }
  static Bytes marked(std::int64_t size, DataType type) {
    return to_device(stored(Numbers(static_cast<std::size_t>(size), mark), type));
  }
  [[nodiscard]] Bytes on_device(const Numbers& numbers, const SampleShape& shape,
                                const TensorFormat& format) const {
    return to_device(stored(in_blocks(numbers, shape, format, n_), format.type));
  }
  [[nodiscard]] Numbers from_device(const Bytes& bytes, const SampleShape& shape,
                                    const TensorFormat& format) const {
    return from_blocks(restored(to_host(bytes), format.type), shape, format, n_);
  }
  [[nodiscard]] Bytes stored_parameters(const Numbers& numbers) const {
    std::vector<std::byte> all;
    auto first = numbers.begin();
    for (const ParameterSpec& parameter : spec_.parameters) {
      if (first == numbers.end()) break;
      std::vector<std::byte> bytes =
          stored(Numbers(first, first + parameter.size()), parameter.type);
      bytes.resize(static_cast<std::size_t>(parameter.stored_bytes()));
      all.insert(all.end(), bytes.begin(), bytes.end());
      first += parameter.size();
    }
    return to_device(all);
  }
  template <class Real = real>
  static Real* at(const Bytes& bytes) {
    return reinterpret_cast<Real*>(bytes.data());
  }

  Numbers run_forward(const Numbers& x, const Numbers& second, ForwardArguments arguments) {
    x_ = on_device(x, spec_.input(), spec_.inputs[0].format);
    second_ = on_device(second, second_shape(), spec_.inputs.back().format);
    y_ = spec_.in_place ? x_ : marked(n_ * spec_.output.size(), spec_.output_format.type);
    arguments.input.data = at(x_);
    arguments.second.data = at(second_);
    arguments.output.data = at(y_);
    Kokkos::deep_copy(workspace_, mark);
    layer_->forward(ExecutionSpace(), arguments);
    check_guards();
    return from_device(y_, spec_.output, spec_.output_format);
  }
  void run_backward(const Numbers& d_y, bool adds, bool wants_input = true) {
    d_output_ = on_device(d_y, spec_.output, spec_.output_format);
    if (spec_.in_place && wants_input) d_x_ = d_output_;
    d_second_ = second_others_.empty()
                    ? marked(n_ * second_shape().size(), spec_.inputs.back().format.type)
                    : on_device(second_others_, second_shape(), spec_.inputs.back().format);
    Kokkos::deep_copy(workspace_, mark);
    Kokkos::deep_copy(d_parameters_, mark);
    Kokkos::deep_copy(statistics_, mark);
    layer_->backward(ExecutionSpace(), backward_arguments(adds));
    check_guards();
  }

  [[nodiscard]] ForwardArguments forward_arguments(bool training) const {
    return {.input = {at(x_), n_, spec_.input()},
            .output = {at(y_), n_, spec_.output},
            .parameters = at(parameters_),
            .second = {at(second_), n_, second_shape()},
            .saved = reinterpret_cast<std::byte*>(saved_.data()),
            .buffers = buffers_.data(),
            .training = training,
            .draw = draw()};
  }
  [[nodiscard]] BackwardArguments backward_arguments(bool adds) const {
    const bool has_input = hands_over_all_ || spec_.saves_input;
    const bool has_second = hands_over_all_ || spec_.saves_second;
    const bool has_output = hands_over_all_ || spec_.saves_output;
    const bool has_d_second = spec_.inputs.size() > 1 && !leaves_out_second_;
    return {.input = {has_input ? at(x_) : nullptr, n_, spec_.input()},
            .output = {has_output ? at(y_) : nullptr, n_, spec_.output},
            .d_output = {at(d_output_), n_, spec_.output},
            .d_input = {at(d_x_), n_, spec_.input()},
            .parameters = at(parameters_),
            .d_parameters = d_parameters_.data(),
            .d_second = {has_d_second ? at(d_second_) : nullptr, n_, second_shape()},
            .adds_input = adds,
            .adds_second = !second_others_.empty(),
            .saved = reinterpret_cast<std::byte*>(saved_.data()),
            .statistics = statistics_.data(),
            .draw = draw(),
            .second = {has_second ? at(second_) : nullptr, n_, second_shape()}};
  }
  [[nodiscard]] Draw draw() const { return {.seed = 9, .epoch = 1, .samples = samples_.data()}; }
  [[nodiscard]] SampleShape second_shape() const {
    return spec_.inputs.size() == 2 ? spec_.inputs[1].shape : SampleShape{};
  }
  [[nodiscard]] Engine engine(VendorHandles* vendor) const {
    auto* bytes = reinterpret_cast<std::byte*>(workspace_.data());
    return {.exec = {},
            .workspace = {bytes, static_cast<std::size_t>(working_) * sizeof(real)},
            .vendor = vendor};
  }
  /// What is planned for a workspace, and for what is saved, must do.
  void check_guards() const {
    check_guard(workspace_, working_, "its workspace");
    check_guard(saved_, saving_, "what it saves");
  }
  void check_guard(const Device<real>& guarded, std::int64_t size, const char* what) const {
    const std::pair<std::int64_t, std::int64_t> behind(size, size + guard);
    const Numbers all = to_host(Device<real>(Kokkos::subview(guarded, behind)));
    EXPECT_TRUE(std::ranges::all_of(all, [](real x) { return x == mark; }))
        << spec_.name << " writes behind " << what << ", of " << size << " numbers";
  }

  static constexpr std::int64_t guard = std::int64_t{1} << 18;

  LayerSpec spec_;
  int n_;
  std::int64_t working_;    // numbers of the workspace
  Device<real> workspace_;  // and a guard behind them
  std::unique_ptr<Layer> layer_;
  Bytes x_, second_, y_, d_output_, d_x_, d_second_, parameters_;
  Device<real> buffers_;
  std::int64_t saving_;  // numbers of what is saved
  Device<real> saved_;   // and a guard behind them
  Device<real> d_parameters_, statistics_;
  Device<int> samples_;
  Numbers second_others_;
  bool leaves_out_second_ = false;
  bool hands_over_all_ = true;
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
