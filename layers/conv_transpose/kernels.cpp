// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/base/check.hpp"
#include "layers/blocked/blocked.hpp"
#include "layers/conv_transpose/op.hpp"
#include "layers/convolution/products.hpp"

namespace carousel::kernels {
namespace {

/// Parameters: weight [in, out / groups, taps], then, if the spec has one, bias [out].
class TransposedConvolution final : public Layer {
 public:
  explicit TransposedConvolution(const LayerSpec& spec)
      : products_{.wide = spec.output,
                  .small = spec.input(),
                  .window = spec.as<op::TransposedConvolution>().window,
                  .groups = spec.as<op::TransposedConvolution>().groups},
        weights_(std::int64_t{spec.input().channels} * products_.taps()),
        has_bias_(spec.parameters.size() == 2),
        learns_(!spec.is_frozen()) {}

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    static const std::string label = "carousel::layers::conv_transpose_forward";
    send_back(exec, label, products_, arguments.input, arguments.parameters,
              has_bias_ ? arguments.parameters + weights_ : nullptr, arguments.output.data, false);
  }

  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    static const std::string weight_label = "carousel::layers::conv_transpose_backward_weight";
    static const std::string bias_label = "carousel::layers::conv_transpose_backward_bias";
    static const std::string input_label = "carousel::layers::conv_transpose_backward_input";
    if (learns_) {
      correlate(exec, weight_label, products_, arguments.d_output, arguments.input, 0,
                arguments.d_parameters);
      if (has_bias_)
        sum_channels(exec, bias_label, arguments.d_output, arguments.d_parameters + weights_);
    }
    if (arguments.d_input.data == nullptr) return;
    look_through(exec, input_label, products_, arguments.d_output, arguments.parameters, nullptr,
                 arguments.d_input.data, 0, arguments.adds_input);
  }

 private:
  WindowProducts products_;
  std::int64_t weights_;
  bool has_bias_;
  bool learns_;
};

}  // namespace

std::unique_ptr<Layer> conv_transpose(const LayerSpec& spec, int /*samples*/,
                                      const Engine& engine) {
  if constexpr (runs_on_host) {
    if (spec.kernels == Kernels::blocked) return blocked::conv_transpose(spec, engine);
  }
  return std::make_unique<TransposedConvolution>(spec);
}

}  // namespace carousel::kernels
