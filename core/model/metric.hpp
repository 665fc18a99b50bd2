// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a run reports of its task besides the loss. Each kind is two files of layers/metrics:
// NAME.cpp makes its Metric, NAME_kernels.cpp computes its sums. The build collects both; nothing
// else lists all kinds. Sums are doubles that add up over samples, so that every placement gives
// the same value.

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace carousel {

struct Metric {
  const char* name;  // "accuracy", as decks, files and people call it
  const char* doc;   // "samples whose largest output is their label."
  int sums = 1;
  /// Of the sums over so many samples.
  double (*value)(std::span<const double> sums, double samples) = mean_of_sum;
  bool higher_is_better = true;
  double least = 0;  // that a value may be
  double most = 1;
  int least_outputs = 1;  // of a network that it tells something of

  /// What most metrics are: sums[0] / samples.
  static double mean_of_sum(std::span<const double> sums, double samples) {
    return sums[0] / samples;
  }
};

/// All kinds.
[[nodiscard]] std::span<const Metric> all_metrics();
/// Error(usage) for a name that none has.
[[nodiscard]] const Metric& metric_named(std::string_view name);

/// Sums, and metrics, that a run may have.
inline constexpr int most_sums = 16;
/// Doubles that each micro-batch reports in front of its sums: the mean loss over its samples, 1
/// where that is no finite number or too large to be added to others, and the samples.
inline constexpr int report_head = 3;
using MetricValues = std::array<double, most_sums>;

/// Sums of all of these.
[[nodiscard]] int sums_of(std::span<const Metric* const> metrics);
/// The values of all of these from their sums, one after the other.
[[nodiscard]] MetricValues values_of(std::span<const Metric* const> metrics,
                                     std::span<const double> sums, double samples);
/// How good a result is, the greater the better: by the first of these metrics, or by the loss
/// where there is none.
[[nodiscard]] double score_of(std::span<const std::string> metrics, double loss,
                              const MetricValues& values);
[[nodiscard]] std::vector<std::string> names_of(std::span<const Metric* const> metrics);

}  // namespace carousel
