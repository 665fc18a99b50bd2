// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The generator against Random123's known answers, and the formulas documented beside it.

#include "core/base/random.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "core/base/digest.hpp"

namespace carousel {
namespace {

TEST(Random, KnownAnswersOfRandom123) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, 0),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, NamesHashAsFnv1a) {
  EXPECT_EQ(hash_name(""), 0xcbf29ce484222325);
  EXPECT_EQ(hash_name("a"), 0xaf63dc4c8601ec8c);
  EXPECT_EQ(hash_name("foobar"), 0x85944171f73967e8);
}

TEST(Random, NumbersAreWhatTheNumpyOfTheHeaderGives) {
  EXPECT_EQ(uniform01(1, 2, 3), 0.3993987627018524);
  EXPECT_EQ(uniform01(random_key(1, "permutation"), 0, 0), 0.9154128730995263);
  EXPECT_EQ(uniform01(0xfedcba9876543210, 0x123456789abcdef0, 0x0f0e0d0c0b0a0908),
            0.459080234521658);
}

TEST(Random, NumbersFillTheUnitInterval) {
  constexpr int count = 1 << 16;
  std::vector<int> bins(16, 0);
  double sum = 0;
  for (int k = 0; k < count; ++k) {
    const double u = uniform01(7, 0, static_cast<std::uint64_t>(k));
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    ++bins[static_cast<std::size_t>(16 * u)];
  }
  EXPECT_NEAR(sum / count, 0.5, 0.005);
  for (const int bin : bins) EXPECT_NEAR(bin, count / 16, 5 * 64);
}

TEST(Digest, TellsEveryBitAndPlaceApart) {
  std::vector<float> values{1, 2, 3, 4};
  const std::uint64_t before = digest<float>(values);
  EXPECT_EQ(before, digest<float>(std::vector<float>{1, 2, 3, 4}));
  std::swap(values[0], values[1]);
  EXPECT_NE(before, digest<float>(values));
  EXPECT_NE(digest<float>(std::vector<float>{0.0F}), digest<float>(std::vector<float>{-0.0F}));
  EXPECT_NE(digest<float>(std::vector<float>{0.0F}), digest<float>(std::vector<float>{0.0F, 0.0F}));
  EXPECT_EQ(digest_term(2, 3.0F) + digest_term(0, 1.0F) + digest_term(1, 2.0F),
            digest<float>(std::vector<float>{1, 2, 3}));
}

}  // namespace
}  // namespace carousel
