// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/initialise.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"
#include "core/base/random.hpp"

namespace carousel {

void initialise(const ParameterSpec& parameter, std::uint64_t seed, std::span<real> values) {
  CAROUSEL_CHECK(static_cast<std::int64_t>(values.size()) == parameter.size(),
                 "{} has {} numbers, not {}", parameter.name, parameter.size(), values.size());
  switch (parameter.initial) {
    case Initial::zeros:
      std::ranges::fill(values, real{0});
      return;
    case Initial::kaiming_uniform: {
      const double bound = std::sqrt(6.0 / static_cast<double>(parameter.fan_in));
      const std::uint64_t key = random_key(seed, "parameters");
      const std::uint64_t stream = hash_name(parameter.name);
      for (std::size_t k = 0; k < values.size(); ++k)
        values[k] = static_cast<real>(bound * (2 * uniform01(key, stream, k) - 1));
      return;
    }
  }
}

}  // namespace carousel
