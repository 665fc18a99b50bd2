// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/record/batch_job.hpp"

#include <fmt/core.h>

#include <charconv>
#include <cstdlib>

namespace carousel {
namespace {

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

}  // namespace

BatchJob this_job() {
  BatchJob job{.id = variable("SLURM_JOB_ID")};
  if (job.id.empty()) return job;
  const std::string array = variable("SLURM_ARRAY_JOB_ID");
  const std::string task = variable("SLURM_ARRAY_TASK_ID");
  if (!array.empty() && !task.empty()) job.id = array + "_" + task;
  const std::string restarts = variable("SLURM_RESTART_COUNT");  // missing at the first start
  std::from_chars(restarts.data(), restarts.data() + restarts.size(), job.restarts);
  return job;
}

std::string to_string(const BatchJob& job) {
  return job.restarts == 0 ? job.id : fmt::format("{}, restart {}", job.id, job.restarts);
}

}  // namespace carousel
