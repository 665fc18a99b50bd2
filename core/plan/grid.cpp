// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/grid.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <vector>

namespace carousel {
namespace {

constexpr int label_width = 15;
constexpr int most_rows = 16;

/// One letter and the stage; small letters read theta_{t-1}.
std::string cell_of(const Action& action) {
  const bool forward = action.kind == ActionKind::forward;
  const bool fresh = action.version == action.step;
  return fmt::format("{}{}", forward ? (fresh ? 'F' : 'f') : (fresh ? 'B' : 'b'), action.stage);
}

}  // namespace

std::string draw_grid(const Schedule& schedule, int columns) {
  const int n = schedule.rule().micro_batches();
  const int stages = schedule.rule().stages();
  // No time step holds more than all stages of all micro-batches.
  const int width =
      std::max(stages > 10 ? 4 : 3, 1 + static_cast<int>(std::to_string(n * stages).size()));
  const std::int64_t wanted = schedule.period_time() * 2 + schedule.rule().offset(n - 1) + 1;
  const std::int64_t times = std::min<std::int64_t>(wanted, (columns - label_width) / width);

  std::map<int, std::map<std::int64_t, std::string>> cells;  // micro-batch, time step
  std::map<std::int64_t, int> alive;                         // change at a time step
  for (int d = 0; d < schedule.devices(); ++d) {
    for (const Action& action : schedule.actions(d, {0, 4})) {
      if (action.kind == ActionKind::forward || action.kind == ActionKind::backward)
        cells[action.micro_batch][action.time] = cell_of(action);
      if (action.kind == ActionKind::forward) ++alive[action.time];
      if (action.kind == ActionKind::release) --alive[action.time + 1];
    }
  }

  std::vector<int> held;
  int now = 0;
  for (std::int64_t time = 0; time < times; ++time)
    held.push_back(now += alive.contains(time) ? alive[time] : 0);

  std::string text = fmt::format("{:<{}}", "time step", label_width);
  for (std::int64_t time = 0; time < times; ++time)
    text += fmt::format("{:>{}}", time % 2 == 0 ? std::to_string(time) : "", width);
  text += "\n";
  for (int i = 0; i < std::min(n, most_rows); ++i) {
    text += fmt::format("{:<{}}", fmt::format("micro-batch {}", i), label_width);
    for (std::int64_t time = 0; time < times; ++time)
      text += fmt::format("{:>{}}", cells[i].contains(time) ? cells[i][time] : ".", width);
    text += "\n";
  }
  if (n > most_rows) text += fmt::format("... {} more\n", n - most_rows);
  text += fmt::format("{:<{}}", "stages held", label_width);
  for (const int stages_held : held) text += fmt::format("{:>{}}", stages_held, width);
  text += "\nF2: forward of stage 2 with theta_t, f2: with theta_(t-1); B, b: its backward\n";
  return text;
}

}  // namespace carousel
