// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Small kernels run on one thread of a host, others on all of them.

#include "core/base/workers.hpp"

#include <gtest/gtest.h>

namespace carousel {
namespace {

#if defined(KOKKOS_ENABLE_OPENMP) && !defined(KOKKOS_ENABLE_CUDA)
TEST(Workers, GiveSmallKernelsOneThread) {
  const ExecutionSpace all(2);  // threads
  ASSERT_EQ(concurrency(all), 2);
  const Workers workers(all);
  EXPECT_EQ(concurrency(workers.all()), concurrency(all));
  EXPECT_EQ(concurrency(workers.one()), 1);
  // Forward and backward of 64 features to 64, for 16 samples; the digits have no larger layer.
  const double product = 2.0 * 64 * 64 * 16;
  const double numbers = 16.0 * 2 * 64 + 64 * 65;
  EXPECT_EQ(concurrency(workers.of({product, 4 * numbers})), 1);
  EXPECT_EQ(concurrency(workers.of({2 * product, 8 * numbers})), 1);
  // A convolution of ResNet-20 for 32 images.
  const Work convolution = {2.0 * 9 * 16 * 16 * 32 * 32 * 32, 4.0 * 2 * 16 * 32 * 32 * 32};
  EXPECT_EQ(concurrency(workers.of(convolution)), concurrency(all));
  // Its batch norm, which computes little.
  EXPECT_EQ(concurrency(workers.of({0, convolution.bytes})), concurrency(all));
}
#else
TEST(Workers, GiveSmallKernelsOneThread) {
  GTEST_SKIP() << "there are no threads to wake";
}
#endif

}  // namespace
}  // namespace carousel
