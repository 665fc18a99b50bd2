// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a run reports of its task besides the loss. Each kind is two files of layers/metrics:
// NAME.cpp makes its Metric, NAME_kernels.cpp computes its sums. The build collects both; nothing
// else lists all kinds. Sums are doubles that add up over samples, so that every placement gives
// the same value.

#include <array>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/target.hpp"

namespace carousel {

inline constexpr double no_bound = std::numeric_limits<double>::infinity();

struct Metric {
  const char* name;  // "accuracy", as decks, files and people call it
  const char* doc;   // "samples whose largest output is their label."
  TargetKind of = TargetKind::labels;
  /// How many sums it has.
  int (*sums)(const TargetSpec& target) = label_sums;
  /// Of the sums over so many samples.
  double (*value)(std::span<const double> sums, double samples,
                  const TargetSpec& target) = share_of_labels;
  bool higher_is_better = true;
  double least = 0;  // that a value may be
  double most = 1;
  int least_outputs = 1;  // of a network that it tells something of
  bool needs_pixels = false;

  [[nodiscard]] bool takes(TargetKind kind) const { return kind == of; }
  /// Of metrics that count labels: how many hold and, where some labels count for nothing, how many
  /// there are.
  static int label_sums(const TargetSpec& target) { return target.is_partial() ? 2 : 1; }
  static double share_of_labels(std::span<const double> sums, double samples,
                                const TargetSpec& target);
};
/// 0 where nothing was counted.
[[nodiscard]] inline double ratio_of(double sum, double count) {
  return count > 0 ? sum / count : 0;
}

/// Of metrics that have K sums of each channel, one behind the other: how many there are, and the
/// mean over the channels of what `OfChannel` makes of them.
template <int K>
[[nodiscard]] int sums_of_channels(const TargetSpec& target) {
  return K * target.channels();
}
template <int K, double (*OfChannel)(std::span<const double> sums)>
[[nodiscard]] double mean_of_channels(std::span<const double> sums, double /*samples*/,
                                      const TargetSpec& target) {
  double sum = 0;
  for (std::size_t first = 0; first < sums.size(); first += K)
    sum += OfChannel(sums.subspan(first, K));
  return sum / target.channels();
}
/// A sum and the count behind it.
[[nodiscard]] inline double mean_of_sum(std::span<const double> sums) {
  return ratio_of(sums[0], sums[1]);
}

/// How often a class is predicted and the label, predicted, and the label.
struct ClassCounts {
  double both = 0;
  double predicted = 0;
  double labelled = 0;
};
/// Of metrics that have such counts of each class: the mean of what `OfClass` makes of them, over
/// the classes that are something.
template <double (*OfClass)(const ClassCounts& counts)>
[[nodiscard]] double mean_of_classes(std::span<const double> sums, double /*samples*/,
                                     const TargetSpec& /*target*/) {
  double sum = 0;
  double classes = 0;
  for (std::size_t first = 0; first < sums.size(); first += 3) {
    const ClassCounts counts{sums[first], sums[first + 1], sums[first + 2]};
    if (counts.predicted + counts.labelled == 0) continue;
    sum += OfClass(counts);
    classes += 1;
  }
  return ratio_of(sum, classes);
}

/// All kinds.
[[nodiscard]] std::span<const Metric> all_metrics();
/// Error(usage) for a name that none has.
[[nodiscard]] const Metric& metric_named(std::string_view name);

/// Metrics that a run may have, and sums of all of them.
inline constexpr int most_metrics = 16;
inline constexpr int most_sums = 1024;
/// Doubles that each micro-batch reports in front of its sums: the mean loss over its samples, 1
/// where that is no finite number or too large to be added to others, and the samples.
inline constexpr int report_head = 3;
using MetricValues = std::array<double, most_metrics>;

/// Sums of all of these.
[[nodiscard]] int sums_of(std::span<const Metric* const> metrics, const TargetSpec& target);
/// The values of all of these from their sums, one after the other.
[[nodiscard]] MetricValues values_of(std::span<const Metric* const> metrics,
                                     std::span<const double> sums, double samples,
                                     const TargetSpec& target);
/// How good a result is, the greater the better: by the first of these metrics, or by the loss
/// where there is none.
[[nodiscard]] double score_of(std::span<const std::string> metrics, double loss,
                              const MetricValues& values);
[[nodiscard]] std::vector<std::string> names_of(std::span<const Metric* const> metrics);

}  // namespace carousel
