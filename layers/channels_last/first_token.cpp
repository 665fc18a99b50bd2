// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/channels_last/first_token.hpp"

#include "layers/channels_last/rows.hpp"

namespace carousel::channels_last {
namespace {

template <class Stored>
void take(const ExecutionSpace& exec, const Rows<const Stored>& x, std::int64_t sample,
          const Rows<Stored>& y) {
  static const std::string label = "carousel::layers::first_token_forward";
  for_each_number(
      exec, label, y.size(), y.channels,
      KOKKOS_LAMBDA(int c, std::int64_t i) { y.data[i] = x.data[i / y.channels * sample + c]; });
}

template <class Stored>
void give(const ExecutionSpace& exec, const Rows<const Stored>& d_y, std::int64_t sample,
          const Rows<Stored>& d_x, bool adds) {
  static const std::string label = "carousel::layers::first_token_backward";
  for_each_number(
      exec, label, d_x.size(), d_x.channels, KOKKOS_LAMBDA(int c, std::int64_t i) {
        const bool is_first = i % sample < d_x.channels;
        const real d = is_first ? full(d_y.data[i / sample * d_x.channels + c]) : real{0};
        put(d_x.data[i], adds ? full(d_x.data[i]) + d : d);
      });
}

}  // namespace

FirstToken::FirstToken(const LayerSpec& spec) : type_(spec.output_format.type) {
  CAROUSEL_CHECK(
      spec.output == SampleShape{spec.input().channels} && spec.inputs.front().format.type == type_,
      "{} becomes {}", to_string(spec.input()), to_string(spec.output));
}

void FirstToken::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  with_stored(type_, [&]<class Stored>() {
    take(exec, Rows<const Stored>(arguments.input), arguments.input.shape.size(),
         Rows<Stored>(arguments.output));
  });
}

void FirstToken::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  if (arguments.d_input.data == nullptr) return;
  with_stored(type_, [&]<class Stored>() {
    give(exec, Rows<const Stored>(arguments.d_output), arguments.d_input.shape.size(),
         Rows<Stored>(arguments.d_input), arguments.adds_input);
  });
}

}  // namespace carousel::channels_last
