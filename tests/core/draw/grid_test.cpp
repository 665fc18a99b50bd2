// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Schedules as people see them: the printed list of actions and the drawn grid, against committed
// texts, and never wider than a terminal.

#include "core/draw/grid.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/plan/action.hpp"
#include "tests/core/plan/schedules.hpp"

namespace carousel {
namespace {

using testing::all_variants;
using testing::describe;
using testing::lists_of;
using testing::parallel;
using testing::schedule_of;

std::string golden(const std::string& name) {
  const auto path = std::filesystem::path(CAROUSEL_SOURCE) / "tests/core/draw/golden" / name;
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Action, IsPrintedAsCommitted) {
  const Schedule schedule = schedule_of(parallel(RuleKind::cdp_v2, Placement::replicated, 2, 2));
  const auto lists = lists_of(schedule, {0, 2});
  std::string text;
  for (std::size_t d = 0; d < lists.size(); ++d) {
    text += fmt::format("device {}\n", d);
    for (const Action& action : lists[d]) text += to_string(action) + "\n";
  }
  EXPECT_EQ(text, golden("cdp-v2_replicated_2x2.txt"));
}

TEST(Grid, IsDrawnAsCommitted) {
  const auto grid = [](RuleKind rule, Placement placement, int n) {
    return draw_grid(schedule_of(parallel(rule, placement, n, n)));
  };
  EXPECT_EQ(grid(RuleKind::cdp_v2, Placement::replicated, 4), golden("grid_cdp-v2_4x4.txt"));
  EXPECT_EQ(grid(RuleKind::dp, Placement::pipeline, 3), golden("grid_dp_pipeline_3x3.txt"));
  EXPECT_EQ(grid(RuleKind::cdp_v2, Placement::pipeline, 4), golden("grid_cdp-v2_pipeline_4x4.txt"));
  EXPECT_EQ(grid(RuleKind::dp, Placement::model, 2), golden("grid_dp_model_2x2.txt"));
  EXPECT_EQ(grid(RuleKind::cdp_v2, Placement::model, 3), golden("grid_cdp-v2_model_3x3.txt"));
}

/// Rows of one device are micro-batches, also in passes; those of several are who takes them.
TEST(Grid, NamesItsRowsByWhatTheyShare) {
  const auto lines_with = [](const std::string& grid, const std::string& name) {
    int count = 0;
    std::istringstream lines(grid);
    for (std::string line; std::getline(lines, line);) count += line.starts_with(name) ? 1 : 0;
    return count;
  };
  for (const int passes : {1, 2}) {
    ParallelConfig config = parallel(RuleKind::cdp_v2, Placement::single, 4, 2);
    config.passes = passes;
    EXPECT_EQ(lines_with(draw_grid(schedule_of(config)), "micro-batch "), 4);
    config.placement = Placement::replicated;
    const std::string grid = draw_grid(schedule_of(config));
    EXPECT_EQ(lines_with(grid, "micro-batch "), passes == 1 ? 4 : 0);
    EXPECT_EQ(lines_with(grid, "worker "), passes == 1 ? 0 : 2);
  }
}

TEST(Grid, ShowsTheSameForOneDeviceAndForMany) {
  for (RuleKind rule : {RuleKind::dp, RuleKind::cdp_v1, RuleKind::cdp_v2}) {
    const std::string one = draw_grid(schedule_of(parallel(rule, Placement::single, 4, 4)));
    for (Placement many : {Placement::replicated, Placement::sharded})
      EXPECT_EQ(one, draw_grid(schedule_of(parallel(rule, many, 4, 4))));
  }
}

TEST(Grid, FitsATerminal) {
  for (int n : {1, 2, 4, 9, 16, 17, 64}) {
    for (int stages : {1, 2, 4, 9, 10, 11, 12, 64}) {
      for (ParallelConfig config : all_variants(n, stages)) {
        if (config.slack > 1) continue;
        std::istringstream lines(draw_grid(schedule_of(config)));
        for (std::string line; std::getline(lines, line);)
          EXPECT_LE(line.size(), 80U) << describe(config) << "\n" << line;
      }
    }
  }
}

TEST(Grid, KeepsColumnsApart) {
  for (int stages : {1, 9, 10, 11, 64, 101}) {
    std::istringstream lines(
        draw_grid(schedule_of(parallel(RuleKind::cdp_v2, Placement::single, 12, stages))));
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("micro-batch")) continue;
      for (std::size_t at = 15; at < line.size(); ++at) {
        if (std::string("FfBb").find(line[at]) != std::string::npos) {
          EXPECT_EQ(line[at - 1], ' ') << "S = " << stages << "\n" << line;
        }
      }
    }
  }
}

}  // namespace
}  // namespace carousel
