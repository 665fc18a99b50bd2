// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/first_token.hpp"

#include "core/base/range.hpp"
#include "layers/tokens.hpp"

namespace carousel {

FirstToken::FirstToken(const LayerSpec& spec) : format_(spec.inputs.front().format) {
  CAROUSEL_CHECK(spec.output == SampleShape{spec.input().channels}, "{} becomes {}",
                 to_string(spec.input()), to_string(spec.output));
}

void FirstToken::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::first_token_forward";
  const real* x = arguments.input.data;
  real* y = arguments.output.data;
  detail::with_block(format_, [&]<int Block>() {
    const std::int64_t plane = detail::Tokens<Block>(arguments.input.shape).plane_size();
    Kokkos::parallel_for(
        label, range(exec, arguments.output.size()),
        KOKKOS_LAMBDA(std::int64_t i) { y[i] = x[i / Block * plane + i % Block]; });
  });
}

void FirstToken::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::first_token_backward";
  if (arguments.d_input.data == nullptr) return;
  const real* d_y = arguments.d_output.data;
  real* d_x = arguments.d_input.data;
  const bool adds = arguments.adds_input;
  detail::with_block(format_, [&]<int Block>() {
    const std::int64_t plane = detail::Tokens<Block>(arguments.d_input.shape).plane_size();
    Kokkos::parallel_for(
        label, range(exec, arguments.d_input.size()), KOKKOS_LAMBDA(std::int64_t i) {
          const std::int64_t within = i % plane;
          const real gradient = within < Block ? d_y[i / plane * Block + within] : real(0);
          d_x[i] = adds ? d_x[i] + gradient : gradient;
        });
  });
}

}  // namespace carousel
