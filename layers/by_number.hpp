// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Layers that are a function of one number, y = f(x), in whatever order and type numbers are
// stored. Which function, the folder of each kind says.

#include <string>

#include "core/base/range.hpp"
#include "core/engine/layer.hpp"
#include "core/model/op.hpp"
#include "layers/stored.hpp"

namespace carousel {

namespace detail {

/// Neighbouring numbers that one index stands for: on hosts they fill vector registers.
inline constexpr int chunk = runs_on_host ? 64 : 1;

/// Calls visit(i) for 0 <= i < size.
template <class Visit>
KOKKOS_INLINE_FUNCTION void visit_chunk(std::int64_t index, std::int64_t size, const Visit& visit) {
  const std::int64_t first = index * chunk;
  if (first + chunk <= size) {
    for (int l = 0; l < chunk; ++l) visit(first + l);
  } else {
    for (std::int64_t i = first; i < size; ++i) visit(i);
  }
}

[[nodiscard]] inline RangePolicy chunks(const ExecutionSpace& exec, std::int64_t size) {
  return range(exec, (size + chunk - 1) / chunk);
}

template <class Stored, class Function>
void find_values(const ExecutionSpace& exec, const std::string& label, const Function& function,
                 const ForwardArguments& arguments) {
  const std::int64_t size = arguments.input.size();
  const auto* x = reinterpret_cast<const Stored*>(arguments.input.data);
  auto* y = reinterpret_cast<Stored*>(arguments.output.data);
  Kokkos::parallel_for(
      label, chunks(exec, size), KOKKOS_LAMBDA(std::int64_t index) {
        const Function of = function;  // of its own, which no number that is written overlaps
        visit_chunk(index, size, [&](std::int64_t i) { put(y[i], of.value(full(x[i]))); });
      });
}

template <class Stored, class Function>
void find_gradient(const ExecutionSpace& exec, const std::string& label, const Function& function,
                   const BackwardArguments& arguments) {
  const std::int64_t size = arguments.input.size();
  const auto* x = reinterpret_cast<const Stored*>(arguments.input.data);
  const auto* d_y = reinterpret_cast<const Stored*>(arguments.d_output.data);
  auto* d_x = reinterpret_cast<Stored*>(arguments.d_input.data);
  const bool adds = arguments.adds_input;
  Kokkos::parallel_for(
      label, chunks(exec, size), KOKKOS_LAMBDA(std::int64_t index) {
        const Function of = function;
        visit_chunk(index, size, [&](std::int64_t i) {
          const real gradient = of.gradient(full(x[i]), full(d_y[i]));
          put(d_x[i], adds ? full(d_x[i]) + gradient : gradient);
        });
      });
}

}  // namespace detail

/// A Function has value(x), which is y, and gradient(x, d_y), which is d_x. Its layers save their
/// input.
template <class Function>
class ByNumber final : public Layer {
 public:
  explicit ByNumber(const LayerSpec& spec, const Function& function = {})
      : function_(function),
        type_(spec.output_format.type),
        forward_label_("carousel::layers::" + std::string(spec.kind->name) + "_forward"),
        backward_label_("carousel::layers::" + std::string(spec.kind->name) + "_backward") {}

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    with_stored(type_, [&]<class Stored>() {
      detail::find_values<Stored>(exec, forward_label_, function_, arguments);
    });
  }
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    if (arguments.d_input.data == nullptr) return;
    with_stored(type_, [&]<class Stored>() {
      detail::find_gradient<Stored>(exec, backward_label_, function_, arguments);
    });
  }

 private:
  Function function_;
  DataType type_;
  std::string forward_label_;
  std::string backward_label_;
};

}  // namespace carousel
