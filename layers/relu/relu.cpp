// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/relu/relu.hpp"

#include "core/base/range.hpp"
#include "layers/stored.hpp"

namespace carousel {
namespace {

template <class Stored>
void rectify(const ExecutionSpace& exec, const ConstTensor& from, const Tensor& to) {
  static const std::string label = "carousel::layers::relu_forward";
  const auto* x = reinterpret_cast<const Stored*>(from.data);
  auto* y = reinterpret_cast<Stored*>(to.data);
  Kokkos::parallel_for(
      label, range(exec, from.size()), KOKKOS_LAMBDA(std::int64_t i) {
        const real value = full(x[i]);
        put(y[i], value < 0 ? real(0) : value);
      });
}

template <class Stored>
void mask(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::relu_backward";
  const auto* y = reinterpret_cast<const Stored*>(arguments.output.data);
  const auto* d_y = reinterpret_cast<const Stored*>(arguments.d_output.data);
  auto* d_x = reinterpret_cast<Stored*>(arguments.d_input.data);
  const bool adds = arguments.adds_input;
  Kokkos::parallel_for(
      label, range(exec, arguments.output.size()), KOKKOS_LAMBDA(std::int64_t i) {
        const Stored d = d_y[i];  // read in any case, so that nothing branches on the data
        const Stored masked = full(y[i]) <= 0 ? Stored{} : d;
        put(d_x[i], adds ? full(d_x[i]) + full(masked) : full(masked));
      });
}

}  // namespace

Relu::Relu(const LayerSpec& spec) : type_(spec.output_format.type) {}

void Relu::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  with_stored(type_,
              [&]<class Stored>() { rectify<Stored>(exec, arguments.input, arguments.output); });
}

void Relu::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  if (arguments.d_input.data == nullptr) return;
  with_stored(type_, [&]<class Stored>() { mask<Stored>(exec, arguments); });
}

}  // namespace carousel
