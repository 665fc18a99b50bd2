// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/linear/linear.hpp"

#include "layers/gemm.hpp"
#include "layers/row_sums.hpp"

namespace carousel {
Linear::Linear(const LayerSpec& spec)
    : in_(spec.input().channels),
      out_(spec.output.channels),
      has_bias_(spec.parameters.size() > 1),
      learns_(!spec.is_frozen()) {
  CAROUSEL_CHECK(spec.input().size() == in_ && spec.output.size() == out_,
                 "linear layer {} needs flat features", spec.name);
  CAROUSEL_CHECK(spec.parameter_size() == std::int64_t{out_} * in_ + (has_bias_ ? out_ : 0),
                 "linear layer {} has {} parameters", spec.name, spec.parameter_size());
}

void Linear::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::linear_forward";
  const ConstMatrix x = {arguments.input.data, in_, 1};  // [n, in]
  const ConstMatrix w = {arguments.parameters, in_, 1};  // [out, in]
  const real* bias = arguments.parameters + std::int64_t{out_} * in_;
  const Matrix y = {arguments.output.data, out_};  // [n, out]
  if (has_bias_)
    gemm(exec, label, {arguments.input.n, out_, in_}, x, w.transposed(), y, AddToColumns{bias});
  else
    gemm(exec, label, {arguments.input.n, out_, in_}, x, w.transposed(), y);
}

void Linear::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string weight_label = "carousel::layers::linear_backward_weight";
  static const std::string input_label = "carousel::layers::linear_backward_input";
  const int n = arguments.input.n;
  const ConstMatrix x = {arguments.input.data, in_, 1};        // [n, in]
  const ConstMatrix w = {arguments.parameters, in_, 1};        // [out, in]
  const ConstMatrix d_y = {arguments.d_output.data, out_, 1};  // [n, out]
  if (learns_) {
    gemm(exec, weight_label, {out_, in_, n}, d_y.transposed(), x, {arguments.d_parameters, in_});
    if (has_bias_)
      sum_rows(exec, n, out_, d_y.data, arguments.d_parameters + std::int64_t{out_} * in_);
  }
  if (arguments.d_input.data != nullptr)
    gemm(exec, input_label, {n, in_, out_}, d_y, w,
         {arguments.d_input.data, in_, arguments.adds_input});
}

}  // namespace carousel
