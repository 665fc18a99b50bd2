// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The batch job that a process is part of, so that a run and the output of its job find each other.

#include <string>

namespace carousel {

/// A job of Slurm, as the environment of its processes tells.
struct BatchJob {
  std::string id = {};  // as squeue names it: "1234", "1230_4" of an array; empty: no job
  int restarts = 0;     // how often Slurm has started it anew

  /// Whether this is an earlier start of a job, whose processes Slurm has then ended, or has lost
  /// with their node.
  [[nodiscard]] bool is_before(const BatchJob& other) const {
    return !id.empty() && id == other.id && restarts < other.restarts;
  }
};

/// That of this process.
[[nodiscard]] BatchJob this_job();

/// "1234", "1230_4, restart 2"; empty outside of jobs.
[[nodiscard]] std::string to_string(const BatchJob& job);

}  // namespace carousel
