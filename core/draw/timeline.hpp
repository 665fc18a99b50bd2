// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A schedule laid out in rows and time steps, for whoever draws it: which pass stands where, how
// much of the activations is held, what travels. It knows neither characters nor colours.

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/schedule.hpp"

namespace carousel {

/// One row of a drawing. Numbers that its passes do not share are -1.
struct TimelineRow {
  int device = 0;
  int micro_batch = -1;
  int worker = -1;  // of several micro-batches
  int stage = -1;
};

/// A forward or a backward of one stage, `time` steps after the segment began.
struct DrawnPass {
  int row = 0;
  std::int64_t time = 0;
  std::int64_t step = 0;
  int micro_batch = 0;
  int stage = 0;
  std::int64_t version = 0;
  bool backward = false;

  [[nodiscard]] bool fresh() const { return version == step; }
};

/// Time steps in which a training step computes: first .. end - 1.
struct StepSpan {
  std::int64_t first = 0;
  std::int64_t end = 0;
};

/// The window 0 .. times - 1 begins with the training: what comes before the steady state, two
/// periods of it, and the time step in which it begins anew. So the staircase of the start and two
/// whole training steps show.
struct Timeline {
  bool rows_are_micro_batches = false;  // otherwise they are devices with one stage
  int all_rows = 0;
  std::int64_t all_times = 0;
  std::vector<TimelineRow> rows = {};  // the first ones
  std::int64_t times = 0;
  std::vector<DrawnPass> passes = {};  // of these rows and times, row by row, in order
  std::vector<int> held = {};        // [time] stages of micro-batches held by all devices together
  int most_held = 0;                 // also where the window is cut
  std::vector<StepSpan> steps = {};  // [training step] that begins in the window
  std::int64_t steady = 0;           // time step from which everything repeats
  double busy = 0;                   // share of the steady time steps in which a device computes
};

/// "stage 2", "micro-batch 3" or "worker 1".
[[nodiscard]] std::string name_of(const TimelineRow& row);

/// Everything beyond `most_rows` and `most_times` is cut away; what is held and busy counts all.
[[nodiscard]] Timeline timeline_of(const Schedule& schedule, int most_rows,
                                   std::int64_t most_times);

/// Something that travels between rows. Times are edges between time steps: edge t is where time
/// step t begins.
struct Arrow {
  Payload payload = Payload::none;
  int stage = -1;
  int micro_batch = -1;
  int from = 0;  // rows
  int to = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// A collective: when its first device starts it, and when the first one needs it.
struct Bar {
  ActionKind kind = ActionKind::all_reduce;
  Payload payload = Payload::none;
  int stage = -1;
  int group = 0;
  int root = -1;  // row
  std::vector<int> rows = {};
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

struct Travels {
  std::vector<Arrow> arrows = {};
  std::vector<Bar> bars = {};
};

/// Messages and collectives of one training step between the first `rows` devices; tokens, which
/// carry nothing, are left out.
[[nodiscard]] Travels travels_of(const Schedule& schedule, std::int64_t step, int rows);

}  // namespace carousel
