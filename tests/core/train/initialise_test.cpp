// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/initialise.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace carousel {
namespace {

std::vector<real> values_of(const ParameterSpec& parameter, std::uint64_t seed) {
  std::vector<real> values(parameter.size(), real(9));
  initialise(parameter, seed, values);
  return values;
}

TEST(Initialise, KaimingUniformHasItsMoments) {
  const ParameterSpec weight = {"0.weight", {200, 150}, kaiming_uniform(150)};
  const double bound = std::sqrt(6.0 / 150);
  double sum = 0;
  double squares = 0;
  for (const real value : values_of(weight, 1)) {
    EXPECT_LE(std::abs(value), bound);
    sum += value;
    squares += double{value} * value;
  }
  EXPECT_NEAR(sum / 30000, 0, 0.01 * bound);
  EXPECT_NEAR(squares / 30000, 2.0 / 150, 0.01 * 2.0 / 150);
}

TEST(Initialise, DependsOnSeedAndNameAlone) {
  const ParameterSpec weight = {"0.weight", {5, 7}, kaiming_uniform(7)};
  ParameterSpec other = weight;
  other.name = "3.weight";
  EXPECT_EQ(values_of(weight, 1), values_of(weight, 1));
  EXPECT_NE(values_of(weight, 1), values_of(weight, 2));
  EXPECT_NE(values_of(weight, 1), values_of(other, 1));
}

TEST(Initialise, BiasesAreZero) {
  EXPECT_EQ(values_of({"0.bias", {3}, zeros()}, 1), std::vector<real>(3));
}

}  // namespace
}  // namespace carousel
