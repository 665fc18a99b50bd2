// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Losses that are a function of each output and its target, the mean over the outputs and the
// samples; of labels, the target is 1 for the class, 0 for all others. Which function, the folder
// of each kind says.

#include <string>

#include "core/base/range.hpp"
#include "core/engine/layer.hpp"
#include "core/model/op.hpp"
#include "layers/mean_loss.hpp"
#include "layers/stored.hpp"
#include "layers/targets.hpp"

namespace carousel {

namespace detail {

/// The loss of one sample.
template <class Stored, class Function>
struct ErrorLossForward {
  Function function;
  Targets targets;
  const Stored* values;  // [n, outputs]

  KOKKOS_FUNCTION double operator()(const Team& team, int i) const {
    const std::int64_t outputs = targets.outputs();
    const Stored* row = values + i * outputs;
    double sum = 0;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, outputs),
        [&](std::int64_t k, double& partial) {
          partial += function.value(full(row[k]), targets.number(i, k));
        },
        sum);
    return sum / static_cast<double>(outputs);
  }
};

/// What one sample adds where not all counts.
template <class Stored, class Function>
struct ErrorLossTerms {
  Function function;
  Targets targets;
  const Stored* values;  // [n, outputs]

  KOKKOS_FUNCTION void operator()(const Team& team, int i, Sums<2>& sums) const {
    const std::int64_t outputs = targets.outputs();
    const Stored* row = values + i * outputs;
    double loss = 0;
    double weight = 0;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, outputs),
        [&](std::int64_t k, double& partial, double& count) {
          if (!targets.counts(i, k)) return;
          partial += function.value(full(row[k]), targets.number(i, k));
          count += 1;
        },
        loss, weight);
    sums.of[0] += loss;
    sums.of[1] += weight;
  }
};

/// Of the mean, which may take the place of the outputs.
template <class Stored, class Function>
struct ErrorLossBackward {
  Function function;
  Targets targets;
  const Stored* values;  // [n, outputs]
  Stored* d_values;      // [n, outputs]
  bool is_partial;
  MeanScale scale;

  KOKKOS_FUNCTION void operator()(std::int64_t k) const {
    const std::int64_t outputs = targets.outputs();
    const std::int64_t i = k / outputs;
    if (is_partial && !targets.counts(i, k % outputs)) return put(d_values[k], real(0));
    put(d_values[k], scale() * function.gradient(full(values[k]), targets.number(i, k % outputs)));
  }
};

}  // namespace detail

/// A Function has value(output, target), and gradient(output, target), its derivative by the
/// output.
template <class Function>
class ErrorLoss final : public Layer {
 public:
  explicit ErrorLoss(const LayerSpec& spec, const Function& function = {})
      : function_(function),
        target_(spec.target),
        type_(spec.inputs.front().format.type),
        forward_label_("carousel::layers::" + std::string(spec.kind->name) + "_forward"),
        backward_label_("carousel::layers::" + std::string(spec.kind->name) + "_backward") {}

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    const Targets targets(arguments.targets, target_);
    with_stored(type_, [&]<class Stored>() {
      const auto* values = reinterpret_cast<const Stored*>(arguments.input.data);
      if (double* const weight = weight_in(arguments.saved, target_); weight != nullptr)
        report_weighted(forward_label_, exec, arguments.input.n,
                        detail::ErrorLossTerms<Stored, Function>{function_, targets, values},
                        arguments.report, weight);
      else
        report_mean(forward_label_, exec, arguments.input.n,
                    detail::ErrorLossForward<Stored, Function>{function_, targets, values},
                    arguments.report);
    });
  }

  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    if (arguments.d_input.data == nullptr) return;
    const std::string& label = backward_label_;
    const Targets targets(arguments.targets, target_);
    const std::int64_t size = arguments.output.size();
    with_stored(type_, [&]<class Stored>() {
      const auto* values = reinterpret_cast<const Stored*>(arguments.output.data);
      auto* d_values = reinterpret_cast<Stored*>(arguments.d_input.data);
      Kokkos::parallel_for(
          label, range(exec, size),
          detail::ErrorLossBackward<Stored, Function>{
              function_, targets, values, d_values, target_.is_partial(),
              MeanScale{weight_in(arguments.saved, target_), static_cast<double>(size)}});
    });
  }

 private:
  Function function_;
  TargetSpec target_;
  DataType type_;
  std::string forward_label_;
  std::string backward_label_;
};

}  // namespace carousel
