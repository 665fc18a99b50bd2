// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/record/patience.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace carousel {
namespace {

using Names = std::vector<std::string>;

std::vector<EvaluationRecord> evaluations(const std::vector<double>& losses,
                                          const std::vector<double>& values = {}) {
  std::vector<EvaluationRecord> rows;
  for (const double loss : losses) rows.push_back({.loss = loss});
  for (std::size_t k = 0; k < values.size(); ++k) rows[k].metrics[0] = values[k];
  return rows;
}

TEST(Patience, CountsWhatComesBehindTheBest) {
  EXPECT_FALSE(is_out_of_patience({}, Names{}, 1));
  EXPECT_FALSE(is_out_of_patience(evaluations({3, 2, 1}), Names{}, 1));
  EXPECT_TRUE(is_out_of_patience(evaluations({3, 2, 2}), Names{}, 1)) << "as good is no better";
  EXPECT_FALSE(is_out_of_patience(evaluations({3, 2, 2}), Names{}, 2));
  EXPECT_FALSE(is_out_of_patience(evaluations({3, 4, 4, 1}), Names{}, 2)) << "it got better";
  EXPECT_TRUE(is_out_of_patience(evaluations({1, 4, 3, 2}), Names{}, 2));
  EXPECT_FALSE(is_out_of_patience(evaluations({1, 4, 3, 2}), Names{}, 0)) << "it never ends";
}

TEST(Patience, LooksAtTheFirstMetric) {
  EXPECT_TRUE(is_out_of_patience(evaluations({3, 2, 1}, {0.5, 0.5, 0.4}), Names{"accuracy"}, 2));
  EXPECT_FALSE(is_out_of_patience(evaluations({1, 2, 3}, {0.5, 0.4, 0.6}), Names{"accuracy"}, 1));
  EXPECT_TRUE(is_out_of_patience(evaluations({3, 2, 1}, {0.5, 0.6, 0.7}), Names{"mae"}, 2))
      << "the lower the better";
}

TEST(Patience, TakesWhatIsNoNumberForNoBetter) {
  EXPECT_TRUE(is_out_of_patience(evaluations({2, std::nan(""), std::nan("")}), Names{}, 2));
  EXPECT_FALSE(is_out_of_patience(evaluations({std::nan(""), 2}), Names{}, 1));
}

}  // namespace
}  // namespace carousel
