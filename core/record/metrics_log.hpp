// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// metrics.jsonl in the folder of a run, for whoever watches it with scripts.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/descriptor.hpp"
#include "core/train/records.hpp"

namespace carousel {

/// metrics.jsonl: one line of JSON per step and per evaluation, in the file when write() returns.
class MetricsLog {
 public:
  MetricsLog(const std::filesystem::path& folder, std::vector<std::string> metrics);
  /// Goes on with a log behind `step` updates: what it says of later ones, which were lost, is
  /// removed, and so is the evaluation after them if it comes again.
  MetricsLog(const std::filesystem::path& folder, std::vector<std::string> metrics,
             std::int64_t step, bool evaluates = false);

  /// Allocates nothing. Numbers that are not finite become null.
  void write(const StepRecord& step);
  void write(const EvaluationRecord& evaluation);

 private:
  std::vector<std::string> metrics_;
  Descriptor file_;
};

}  // namespace carousel
