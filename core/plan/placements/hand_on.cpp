// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/placements/hand_on.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/plan/placements/parts.hpp"

namespace carousel::placements {

HandOn::HandOn(const Rule& rule, int stage, int owner, std::int64_t ready, std::int64_t early)
    : times_(rule.workers()), next_(rule.workers(), -1), before_(rule.workers(), -1) {
  const int devices = rule.workers();
  std::vector<std::int64_t> needed;
  for (int device = 0; device < devices; ++device)
    needed.push_back(std::max({ready, rule.first_use(device, stage, 0) - early,
                               free_parameters(rule, device, stage).time}));
  // Of equal needs, those behind the owner come first.
  const auto order = [&](int device) {
    return std::tuple(device != owner, needed[device], (device - owner + devices) % devices);
  };
  std::vector<int> way(devices);
  std::iota(way.begin(), way.end(), 0);
  std::ranges::sort(way, {}, order);
  for (int h = 1; h < devices; ++h) {
    times_[way[h]] = needed[way[h]];
    next_[way[h - 1]] = way[h];
    before_[way[h]] = way[h - 1];
  }
  const int first = devices > 1 && needed[way[1]] < needed[owner] ? way[1] : owner;
  const int total = owner == devices - 1 ? 0 : 1;  // messages that bring the sum to its owner
  if (first != owner)
    times_[owner] = ready + (needed[first] - ready) * total / (total + 1);
  else if (total == 0)
    times_[owner] = ready;
  else if (rule.always_stale() && rule.stages() > 1)
    times_[owner] = std::max(ready + 1, needed[owner] - 1);
  else
    times_[owner] = needed[owner];
}

}  // namespace carousel::placements
