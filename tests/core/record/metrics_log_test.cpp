// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// metrics.jsonl: what can be read of it, and that runs which go on say nothing twice.

#include "core/record/metrics_log.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/core/support.hpp"

namespace carousel {
namespace {

using testing::TemporaryFolder;

TEST(MetricsLog, HasLinesOfJson) {
  const TemporaryFolder temporary;
  MetricsLog log(temporary.path(), {"accuracy"});
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr std::int64_t big = std::numeric_limits<std::int64_t>::min();
  constexpr double tiny = -std::numeric_limits<double>::denorm_min();
  log.write(StepRecord{1, 0, 0.1, {0.5}, 0.05, 1.25, 64});
  log.write(StepRecord{big, big, nan, {tiny}, tiny, tiny, tiny});
  log.write(EvaluationRecord{1, 0, 0.25, {0.75}});
  std::ifstream file(temporary / "metrics.jsonl");
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0]["kind"], "step");
  EXPECT_EQ(lines[0]["loss"], 0.1);
  EXPECT_TRUE(lines[1]["loss"].is_null());
  EXPECT_EQ(lines[1]["accuracy"], tiny);
  EXPECT_EQ(lines[2]["kind"], "evaluation");
  EXPECT_EQ(lines[2]["accuracy"], 0.75);
}

TEST(MetricsLog, AnEvaluationThatComesAgainStandsOnce) {
  const TemporaryFolder temporary;
  const auto lines_behind = [&](bool evaluates) {
    std::ofstream(temporary / "metrics.jsonl") << R"({"kind":"step","step":1})"
                                               << "\n"
                                               << R"({"kind":"evaluation","step":2})"
                                               << "\n";
    { const MetricsLog log(temporary.path(), {}, 2, evaluates); }
    std::ifstream file(temporary / "metrics.jsonl");
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  };
  EXPECT_EQ(lines_behind(false), 2);
  EXPECT_EQ(lines_behind(true), 1);
}

}  // namespace
}  // namespace carousel
