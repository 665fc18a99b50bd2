// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/initialise.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/check.hpp"
#include "core/base/random.hpp"

namespace carousel {
namespace {

/// Numbers in [0, 1) that belong to one tensor.
class Uniform {
 public:
  Uniform(const ParameterSpec& parameter, std::uint64_t seed)
      : key_(random_key(seed, "parameters")), stream_(hash_name(parameter.name)) {}
  [[nodiscard]] double operator()(std::uint64_t k) const { return uniform01(key_, stream_, k); }

 private:
  std::uint64_t key_;
  std::uint64_t stream_;
};

void fill_uniform(const Uniform& uniform, double bound, std::span<real> values) {
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = static_cast<real>(bound * (2 * uniform(k) - 1));
}

/// Box and Muller (1958), one normal number of two uniform ones.
void fill_normal(const Uniform& uniform, double deviation, std::span<real> values) {
  for (std::size_t k = 0; k < values.size(); ++k) {
    const double radius = std::sqrt(-2 * std::log(1 - uniform(2 * k)));
    const double angle = 2 * std::numbers::pi * uniform(2 * k + 1);
    values[k] = static_cast<real>(deviation * radius * std::cos(angle));
  }
}

}  // namespace

void initialise(const ParameterSpec& parameter, std::uint64_t seed, std::span<real> values) {
  CAROUSEL_CHECK(static_cast<std::int64_t>(values.size()) == parameter.size(),
                 "{} has {} numbers, not {}", parameter.name, parameter.size(), values.size());
  const Uniform uniform(parameter, seed);
  switch (parameter.initial.kind) {
    case Initial::Kind::constant:
      std::ranges::fill(values, static_cast<real>(parameter.initial.scale));
      return;
    case Initial::Kind::uniform:
      return fill_uniform(uniform, parameter.initial.scale, values);
    case Initial::Kind::normal:
      return fill_normal(uniform, parameter.initial.scale, values);
  }
}

}  // namespace carousel
