// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/placements/hand_on.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/plan/placements/parts.hpp"

namespace carousel::placements {

std::vector<HandOn::Stop> HandOn::stops_of(const Rule& rule, int stage, std::int64_t ready,
                                           std::int64_t early) {
  std::vector<Stop> stops;
  for (int device = 0; device < rule.workers(); ++device)
    stops.push_back({device, std::max({ready, rule.first_use(device, stage, 0) - early,
                                       free_parameters(rule, device, stage).time})});
  return stops;
}

HandOn::HandOn(int owner, int devices, std::vector<Stop> stops)
    : owner_(owner), times_(devices), next_(devices, -1), before_(devices, -1) {
  // Of equal needs, those behind the owner come first.
  std::ranges::sort(stops, {}, [&](const Stop& stop) {
    return std::tuple(stop.device != owner, stop.time, (stop.device - owner + devices) % devices);
  });
  for (std::size_t h = 0; h < stops.size(); ++h) {
    times_[stops[h].device] = stops[h].time;
    if (h == 0) continue;
    next_[stops[h - 1].device] = stops[h].device;
    before_[stops[h].device] = stops[h - 1].device;
  }
}

HandOn::HandOn(const Rule& rule, int stage, int owner, std::int64_t ready, std::int64_t early)
    : HandOn(owner, rule.workers(), stops_of(rule, stage, ready, early)) {
  const std::int64_t needed = times_[owner];
  const int second = next_[owner];
  const int total = owner == rule.workers() - 1 ? 0 : 1;  // messages that bring the sum there
  if (second >= 0 && times_[second] < needed)
    times_[owner] = ready + (times_[second] - ready) * total / (total + 1);
  else if (total == 0)
    times_[owner] = ready;
  else if (rule.always_stale() && rule.stages() > 1)
    times_[owner] = std::max(ready + 1, needed - 1);
}

HandOn HandOn::of_new(const Rule& rule, int stage) const {
  std::vector<Stop> stops;
  for (int device = 0; device < rule.workers(); ++device)
    if (device == owner_ || rule.reads_new(device, stage))
      stops.push_back({device, times_[device]});
  return {owner_, rule.workers(), std::move(stops)};
}

HandOn HandOn::of_old(const Rule& rule, int stage) const {
  std::vector<Stop> stops = {{owner_, times_[owner_]}};
  for (int device = 0; device < rule.workers(); ++device)
    if (device != owner_ && rule.reads_old(device, stage))
      stops.push_back({device, std::max(times_[owner_], rule.first_old_use(device, stage, 0))});
  return {owner_, rule.workers(), std::move(stops)};
}

}  // namespace carousel::placements
