// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/forecast/simulation_views.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/check.hpp"

namespace carousel {

std::vector<LinkLoad> link_loads(std::span<const Transfer> transfers, const TimeBins& bins) {
  std::map<std::int64_t, LinkLoad> links;
  const double bins_end = bins.begin + bins.width * bins.count;
  for (const Transfer& transfer : transfers) {
    const double begin = std::max(transfer.begin, bins.begin);
    const double end = std::min(transfer.end, bins_end);
    if (begin >= end) continue;
    LinkLoad& link = links[std::int64_t{transfer.from} << 32 | transfer.to];
    link.from = transfer.from;
    link.to = transfer.to;
    link.bytes.resize(bins.count, 0);
    const double rate = transfer.bytes / (transfer.end - transfer.begin);
    // Rounding may put a begin into the bin behind the last.
    const int first = std::min(static_cast<int>((begin - bins.begin) / bins.width), bins.count - 1);
    for (int bin = first; bin < bins.count; ++bin) {
      const double bin_begin = bins.begin + bin * bins.width;
      if (bin_begin >= end) break;
      const double seconds = std::min(end, bin_begin + bins.width) - std::max(begin, bin_begin);
      link.bytes[bin] += rate * std::max(seconds, 0.0);
    }
  }
  std::vector<LinkLoad> loads;
  for (auto& [key, link] : links) loads.push_back(std::move(link));
  return loads;
}

std::vector<MemoryPoint> activations_over_time(std::span<const std::vector<Action>> lists,
                                               std::span<const std::vector<Interval>> intervals,
                                               std::span<const std::int64_t> stage_bytes) {
  CAROUSEL_CHECK(lists.size() == intervals.size(), "{} lists, {} lists of intervals", lists.size(),
                 intervals.size());
  std::vector<MemoryPoint> changes;
  for (std::size_t d = 0; d < lists.size(); ++d) {
    for (std::size_t k = 0; k < lists[d].size(); ++k) {
      const Action& action = lists[d][k];
      if (action.kind == ActionKind::forward)
        changes.push_back({intervals[d][k].begin, stage_bytes[action.stage]});
      if (action.kind == ActionKind::release)
        changes.push_back({intervals[d][k].end, -stage_bytes[action.stage]});
    }
  }
  std::ranges::sort(changes, {}, &MemoryPoint::seconds);
  // What changes at one time is one change: a frame that one micro-batch leaves to the next counts
  // once.
  std::vector<MemoryPoint> points;
  std::int64_t now = 0;
  for (const MemoryPoint& change : changes) {
    now += change.bytes;
    if (points.empty() || points.back().seconds != change.seconds)
      points.push_back({change.seconds, now});
    else
      points.back().bytes = now;
  }
  return points;
}

}  // namespace carousel
