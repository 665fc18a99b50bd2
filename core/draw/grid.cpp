// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/draw/grid.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "core/draw/timeline.hpp"

namespace carousel {
namespace {

constexpr int label_width = 15;
constexpr int most_rows = 16;

/// One letter and the number that the row does not tell; small letters read theta_{t-1}.
std::string cell_of(const DrawnPass& pass, bool rows_are_micro_batches) {
  const char letter = pass.backward ? (pass.fresh() ? 'B' : 'b') : (pass.fresh() ? 'F' : 'f');
  return fmt::format("{}{}", letter, rows_are_micro_batches ? pass.stage : pass.micro_batch);
}

std::string label_of(const TimelineRow& row) {
  return row.stage < 0 ? name_of(row) : fmt::format("{} dev {}", name_of(row), row.device);
}

}  // namespace

std::string draw_grid(const Schedule& schedule, int columns) {
  const int n = schedule.rule().micro_batches();
  const int stages = schedule.rule().stages();
  const bool by_micro_batch = !schedule.traits().splits_stages;
  // No time step holds more than all stages of all micro-batches.
  const int width = std::max((by_micro_batch ? stages : n) > 10 ? 4 : 3,
                             1 + static_cast<int>(std::to_string(n * stages).size()));
  const Timeline timeline = timeline_of(schedule, most_rows, (columns - label_width) / width);
  const std::int64_t times = timeline.times;

  std::string text = fmt::format("{:<{}}", "time step", label_width);
  for (std::int64_t time = 0; time < times; ++time)
    text += fmt::format("{:>{}}", time % 2 == 0 ? std::to_string(time) : "", width);
  text += "\n";
  std::vector<std::vector<std::string>> cells(timeline.rows.size(),
                                              std::vector<std::string>(times, "."));
  for (const DrawnPass& pass : timeline.passes)
    cells[pass.row][pass.time] = cell_of(pass, by_micro_batch);
  for (std::size_t r = 0; r < cells.size(); ++r) {
    text += fmt::format("{:<{}}", label_of(timeline.rows[r]), label_width);
    for (const std::string& cell : cells[r]) text += fmt::format("{:>{}}", cell, width);
    text += "\n";
  }
  if (timeline.all_rows > most_rows)
    text += fmt::format("... {} more\n", timeline.all_rows - most_rows);
  text += fmt::format("{:<{}}", "stages held", label_width);
  for (const int stages_held : timeline.held) text += fmt::format("{:>{}}", stages_held, width);
  const char* old = schedule.parallel().predict > 0 ? "predicted" : "theta_(t-1)";
  text +=
      by_micro_batch
          ? fmt::format("\nF2: forward of stage 2 with theta_t, f2: with {}; B, b: its backward\n",
                        old)
          : fmt::format("\nF2: forward of micro-batch 2 with theta_t, f2: {}; B, b: its backward\n",
                        old);
  return text;
}

}  // namespace carousel
