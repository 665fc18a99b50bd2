// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a training tells about itself, as plain rows. It writes them nowhere: core/record does.
// Seconds count from the start of the run on this rank's clock.

#include <cstdint>

#include "core/base/category.hpp"
#include "core/model/metric.hpp"

namespace carousel {

/// One training step, the same on every placement.
struct StepRecord {
  std::int64_t step = 0;  // 0-based; the update that made theta_{step+1}
  std::int64_t epoch = 0;
  double loss = 0;            // mean over the samples of the step
  MetricValues metrics = {};  // on the training samples of the step
  double learning_rate = 0;
  double seconds = 0;            // when the step's update was known to this rank
  double images_per_second = 0;  // of the last steps, see Speed
};

/// One evaluation over the whole test set with theta_step.
struct EvaluationRecord {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  double loss = 0;
  MetricValues metrics = {};
};

/// A part of a run: what one start of the program has trained of it.
struct PartRecord {
  std::int64_t first_step = 0;  // updates that were done when it began
  std::int64_t epoch = 0;       // where in the order of the data it began
  std::int64_t position = 0;    // samples of that epoch that were used before
  std::int64_t devices = 0;
  double seconds = 0;  // that the parts before it took, as far as it goes on from them
};

/// A segment of training as it ended.
struct SegmentRecord {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// How far an evaluation of theta_step has come; all samples are done when its result is known.
struct EvaluationProgress {
  std::int64_t step = 0;
  std::int64_t done = 0;  // samples, as the part of the work says that device 0 has done
  std::int64_t samples = 0;
  double seconds = 0;
};

/// One executed action of a profiled step. `kind` is the schedule's word for it; numbers that an
/// action does not have are -1 (a version of -1 is theta_{-1}).
struct ActionRecord {
  const char* kind = "";
  std::int64_t step = -1;
  int micro_batch = -1;
  int stage = -1;
  int piece = -1;  // of the stage, where it is cut
  std::int64_t version = -1;
  double begin = 0;
  double end = 0;
};

/// One message of a profiled step, as seen by one of its ends.
struct MessageRecord {
  const char* kind = "";       // what it carries: gradient, total, parameters, token, ...
  const char* direction = "";  // "send" or "receive"
  std::int64_t step = -1;
  int stage = -1;
  int piece = -1;
  int micro_batch = -1;
  int peer = -1;
  std::int64_t bytes = 0;
  double posted = 0;     // when the operation was started
  double completed = 0;  // when it was first seen complete
  double waited = 0;     // how long this device had nothing else to do meanwhile
};

/// Bytes in use after one action of a profiled step.
struct MemoryRecord {
  double seconds = 0;
  std::int64_t action = -1;  // row of the action records
  CategoryBytes bytes = {};
};

/// What one rank measured over the whole run.
struct MeasuredRecord {
  CategoryBytes peak_bytes = {};
  std::int64_t messages_sent = 0;  // while training, all steps
  std::int64_t bytes_sent = 0;
  double first_step_seconds = 0;  // from the start of the first process to training
  double data_wait = 0;           // seconds that loads waited for samples
};

}  // namespace carousel
