// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/first_token/first_token.hpp"

#include "core/base/range.hpp"
#include "layers/tokens.hpp"

namespace carousel {

namespace {

template <int Block, class Stored>
void take(const ExecutionSpace& exec, const ConstTensor& from, const Tensor& to) {
  static const std::string label = "carousel::layers::first_token_forward";
  const std::int64_t plane = detail::Tokens<Block>(from.shape).plane_size();
  const auto* x = reinterpret_cast<const Stored*>(from.data);
  auto* y = reinterpret_cast<Stored*>(to.data);
  Kokkos::parallel_for(
      label, range(exec, to.size()),
      KOKKOS_LAMBDA(std::int64_t i) { y[i] = x[i / Block * plane + i % Block]; });
}

/// What others than the first token get is zero.
template <int Block, class Stored>
void give(const ExecutionSpace& exec, const ConstTensor& from, const Tensor& to, bool adds) {
  static const std::string label = "carousel::layers::first_token_backward";
  const std::int64_t plane = detail::Tokens<Block>(to.shape).plane_size();
  const auto* d_y = reinterpret_cast<const Stored*>(from.data);
  auto* d_x = reinterpret_cast<Stored*>(to.data);
  Kokkos::parallel_for(
      label, range(exec, to.size()), KOKKOS_LAMBDA(std::int64_t i) {
        const std::int64_t within = i % plane;
        const real gradient = within < Block ? full(d_y[i / plane * Block + within]) : real(0);
        put(d_x[i], adds ? full(d_x[i]) + gradient : gradient);
      });
}

}  // namespace

FirstToken::FirstToken(const LayerSpec& spec) : format_(spec.inputs.front().format) {
  CAROUSEL_CHECK(spec.output == SampleShape{spec.input().channels}, "{} becomes {}",
                 to_string(spec.input()), to_string(spec.output));
}

void FirstToken::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  detail::with_format(format_, [&]<int Block, class Stored>() {
    take<Block, Stored>(exec, arguments.input, arguments.output);
  });
}

void FirstToken::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  if (arguments.d_input.data == nullptr) return;
  detail::with_format(format_, [&]<int Block, class Stored>() {
    give<Block, Stored>(exec, arguments.d_output, arguments.d_input, arguments.adds_input);
  });
}

}  // namespace carousel
