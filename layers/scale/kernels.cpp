// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/base/range.hpp"
#include "core/engine/layer.hpp"
#include "layers/scale/op.hpp"
#include "layers/stored.hpp"

namespace carousel::kernels {
namespace {

/// to = factor from, or to += factor from.
template <class Stored>
void multiply(const ExecutionSpace& exec, const std::string& label, real factor,
              const ConstTensor& from, const Tensor& to, bool adds) {
  const auto* x = reinterpret_cast<const Stored*>(from.data);
  auto* y = reinterpret_cast<Stored*>(to.data);
  Kokkos::parallel_for(
      label, range(exec, to.size()), KOKKOS_LAMBDA(std::int64_t i) {
        const real scaled = full(x[i]) * factor;
        put(y[i], adds ? full(y[i]) + scaled : scaled);
      });
}

class Scale final : public Layer {
 public:
  explicit Scale(const LayerSpec& spec)
      : factor_(static_cast<real>(spec.as<op::Scale>().factor)), type_(spec.output_format.type) {}

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    static const std::string label = "carousel::layers::scale_forward";
    with_stored(type_, [&]<class Stored>() {
      multiply<Stored>(exec, label, factor_, arguments.input, arguments.output, false);
    });
  }
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    static const std::string label = "carousel::layers::scale_backward";
    if (arguments.d_input.data == nullptr) return;
    with_stored(type_, [&]<class Stored>() {
      multiply<Stored>(exec, label, factor_, arguments.d_output, arguments.d_input,
                       arguments.adds_input);
    });
  }

 private:
  real factor_;
  DataType type_;
};

}  // namespace

std::unique_ptr<Layer> scale(const LayerSpec& spec, int /*samples*/, const Engine& /*engine*/) {
  return std::make_unique<Scale>(spec);
}

}  // namespace carousel::kernels
