// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Losses that are a function of the error of each output, the mean over the outputs and the
// samples; targets are 1 for the label, 0 for all other classes. Which function, the folder of each
// kind says.

#include <string>

#include "core/base/range.hpp"
#include "core/engine/layer.hpp"
#include "core/model/op.hpp"
#include "layers/mean_loss.hpp"
#include "layers/stored.hpp"

namespace carousel {

namespace detail {

/// How far an output is from its target.
template <class Stored>
KOKKOS_FUNCTION real error_of(const Stored& output, bool is_label) {
  return full(output) - (is_label ? real(1) : real(0));
}

/// The loss of one sample.
template <class Stored, class Function>
struct ErrorLossForward {
  Function function;
  int outputs;
  const Stored* values;  // [n, outputs]
  const int* labels;     // [n]

  KOKKOS_FUNCTION double operator()(const Team& team, int i) const {
    const Stored* row = values + static_cast<std::int64_t>(i) * outputs;
    double sum = 0;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, outputs),
        [&](int c, double& partial) {
          partial += function.value(error_of(row[c], c == labels[i]));
        },
        sum);
    return sum / outputs;
  }
};

/// Of the mean, which may take the place of the outputs.
template <class Stored, class Function>
struct ErrorLossBackward {
  Function function;
  int outputs;
  const Stored* values;  // [n, outputs]
  const int* labels;     // [n]
  Stored* d_values;      // [n, outputs]
  real scale;

  KOKKOS_FUNCTION void operator()(std::int64_t k) const {
    const bool is_label = k % outputs == labels[k / outputs];
    put(d_values[k], scale * function.gradient(error_of(values[k], is_label)));
  }
};

}  // namespace detail

/// A Function has value(error), and gradient(error), its derivative.
template <class Function>
class ErrorLoss final : public Layer {
 public:
  explicit ErrorLoss(const LayerSpec& spec, const Function& function = {})
      : function_(function),
        outputs_(static_cast<int>(spec.input().size())),
        type_(spec.inputs.front().format.type),
        forward_label_("carousel::layers::" + std::string(spec.kind->name) + "_forward"),
        backward_label_("carousel::layers::" + std::string(spec.kind->name) + "_backward") {}

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    with_stored(type_, [&]<class Stored>() {
      const auto* values = reinterpret_cast<const Stored*>(arguments.input.data);
      report_mean(forward_label_, exec, arguments.input.n,
                  detail::ErrorLossForward<Stored, Function>{function_, outputs_, values,
                                                             labels_of(arguments.targets)},
                  arguments.report);
    });
  }

  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    if (arguments.d_input.data == nullptr) return;
    const std::string& label = backward_label_;
    const std::int64_t size = arguments.output.size();
    with_stored(type_, [&]<class Stored>() {
      const auto* values = reinterpret_cast<const Stored*>(arguments.output.data);
      auto* d_values = reinterpret_cast<Stored*>(arguments.d_input.data);
      Kokkos::parallel_for(label, range(exec, size),
                           detail::ErrorLossBackward<Stored, Function>{
                               function_, outputs_, values, labels_of(arguments.targets), d_values,
                               static_cast<real>(1.0 / static_cast<double>(size))});
    });
  }

 private:
  Function function_;
  int outputs_;
  DataType type_;
  std::string forward_label_;
  std::string backward_label_;
};

}  // namespace carousel
