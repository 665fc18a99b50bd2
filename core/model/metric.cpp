// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/metric.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace carousel {

const Metric& metric_named(std::string_view name) {
  const std::span<const Metric> all = all_metrics();
  const auto found =
      std::ranges::find_if(all, [&](const Metric& each) { return name == each.name; });
  if (found == all.end()) fail(ExitCode::usage, "there is no metric {}", name);
  return *found;
}

double Metric::share_of_labels(std::span<const double> sums, double samples,
                               const TargetSpec& target) {
  if (target.is_partial()) return ratio_of(sums[0], sums[1]);
  return sums[0] / (samples * static_cast<double>(target.pixels()));
}

int sums_of(std::span<const Metric* const> metrics, const TargetSpec& target) {
  int sums = 0;
  for (const Metric* metric : metrics) sums += metric->sums(target);
  return sums;
}

MetricValues values_of(std::span<const Metric* const> metrics, std::span<const double> sums,
                       double samples, const TargetSpec& target) {
  MetricValues values = {};
  std::size_t first = 0;
  for (std::size_t k = 0; k < metrics.size(); ++k) {
    const auto count = static_cast<std::size_t>(metrics[k]->sums(target));
    values[k] = metrics[k]->value(sums.subspan(first, count), samples, target);
    first += count;
  }
  return values;
}

double score_of(std::span<const std::string> metrics, double loss, const MetricValues& values) {
  if (metrics.empty()) return -loss;
  return metric_named(metrics.front()).higher_is_better ? values.front() : -values.front();
}

std::vector<std::string> names_of(std::span<const Metric* const> metrics) {
  std::vector<std::string> names;
  for (const Metric* metric : metrics) names.emplace_back(metric->name);
  return names;
}

}  // namespace carousel
