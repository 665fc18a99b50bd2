// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/gelu.hpp"

#include "core/base/range.hpp"
#include "layers/exponential.hpp"
#include "layers/stored.hpp"

namespace carousel {
namespace {

/// Neighbouring numbers that one index stands for: on hosts they fill vector registers.
constexpr int lanes = runs_on_host ? 64 : 1;

/// Calls visit(i) for 0 <= i < size.
template <class Visit>
void for_each_number(const ExecutionSpace& exec, const std::string& label, std::int64_t size,
                     const Visit& visit) {
  Kokkos::parallel_for(
      label, range(exec, (size + lanes - 1) / lanes), KOKKOS_LAMBDA(std::int64_t chunk) {
        const std::int64_t first = chunk * lanes;
        if (first + lanes <= size) {
          for (int l = 0; l < lanes; ++l) visit(first + l);
        } else {
          for (std::int64_t i = first; i < size; ++i) visit(i);
        }
      });
}

template <class Stored>
void weigh(const ExecutionSpace& exec, const ConstTensor& from, const Tensor& to) {
  static const std::string label = "carousel::layers::gelu_forward";
  const auto* x = reinterpret_cast<const Stored*>(from.data);
  auto* y = reinterpret_cast<Stored*>(to.data);
  for_each_number(
      exec, label, from.size(), KOKKOS_LAMBDA(std::int64_t i) {
        const real value = full(x[i]);
        put(y[i], value * detail::normal_at(value).distribution);
      });
}

template <class Stored>
void find_gradient(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::gelu_backward";
  const auto* x = reinterpret_cast<const Stored*>(arguments.input.data);
  const auto* d_y = reinterpret_cast<const Stored*>(arguments.d_output.data);
  auto* d_x = reinterpret_cast<Stored*>(arguments.d_input.data);
  const bool adds = arguments.adds_input;
  for_each_number(
      exec, label, arguments.input.size(), KOKKOS_LAMBDA(std::int64_t i) {
        const real value = full(x[i]);
        const detail::Normal at = detail::normal_at(value);
        const real gradient = full(d_y[i]) * (at.distribution + value * at.density);
        put(d_x[i], adds ? full(d_x[i]) + gradient : gradient);
      });
}

}  // namespace

Gelu::Gelu(const LayerSpec& spec) : type_(spec.output_format.type) {}

void Gelu::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  with_stored(type_,
              [&]<class Stored>() { weigh<Stored>(exec, arguments.input, arguments.output); });
}

void Gelu::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  if (arguments.d_input.data == nullptr) return;
  with_stored(type_, [&]<class Stored>() { find_gradient<Stored>(exec, arguments); });
}

}  // namespace carousel
