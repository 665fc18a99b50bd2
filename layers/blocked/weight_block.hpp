// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The 3x3 weights, or their gradients, between one block of outputs and one of inputs, copied to
// where they lie close together: in [out, in, 3, 3] the rows of outputs are so far apart, often by
// a power of two, that they push each other out of the first cache.

#include <algorithm>
#include <cstdint>

#include "layers/blocked/lanes.hpp"
#include "layers/stored.hpp"

namespace carousel::blocked {

class WeightBlock {
 public:
  static constexpr int taps = 9;

  /// `weights` is the first number of the block in [out, channels_in, 3, 3].
  template <class Stored>
  void fetch(const Stored* weights, int channels_in) {
    for (int o = 0; o < lanes; ++o) {
      const Stored* from = weights + std::int64_t{o} * channels_in * taps;
      std::transform(from, from + width, numbers_[o], [](Stored weight) { return full(weight); });
    }
  }
  void put(real* weights, int channels_in) const {
    for (int o = 0; o < lanes; ++o)
      std::copy_n(numbers_[o], width, weights + std::int64_t{o} * channels_in * taps);
  }

  /// Of one input of the block, a number for every output.
  [[nodiscard]] Lanes of_input(int in, int tap) const {
    return gathered(&numbers_[0][in * taps + tap], pitch);
  }
  void set_of_input(int in, int tap, const Lanes& value) {
    for (int o = 0; o < lanes; ++o) numbers_[o][in * taps + tap] = value[o];
  }
  /// Of one output of the block, a number for every input.
  [[nodiscard]] Lanes of_output(int out, int tap) const {
    return gathered(&numbers_[out][tap], taps);
  }

 private:
  static constexpr int width = lanes * taps;
  static constexpr int pitch = width + 1;  // outputs in different sets of the cache
  real numbers_[lanes][pitch];
};

}  // namespace carousel::blocked
