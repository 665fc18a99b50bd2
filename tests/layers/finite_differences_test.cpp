// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
// Gradients of whole networks against central differences of the loss. Needs the double preset: in
// single precision the differences drown in rounding.

#include "tests/layers/central_differences.hpp"
#include "tests/layers/residual_blocks.hpp"

namespace carousel {
namespace {

constexpr int n = 5;
constexpr double step = 1e-6;

TEST(FiniteDifferences, AgreeInAPerceptron) {
  EXPECT_LE(test::difference(build_mlp({6, 9, 7, 4}, {6}, 4), n, step), 1e-8);
}

TEST(FiniteDifferences, AgreeInResidualBlocks) {
  EXPECT_LE(test::difference(test::residual_blocks(), n, step), 1e-8);
}

TEST(FiniteDifferences, AgreeInAVisionTransformer) {
  const ModelConfig config = {.depth = 2, .patch = 3, .width = 6, .heads = 2, .mlp = 7};
  EXPECT_LE(test::difference(build_vit(config, {2, 6, 9}, 4), 2, step), 1e-8);
}

}  // namespace
}  // namespace carousel
