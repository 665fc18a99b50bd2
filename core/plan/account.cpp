// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/account.hpp"

#include <algorithm>
#include <set>

namespace carousel {
namespace {

/// Calls `visit` with every action of a segment and the activation bytes in use after it. Makes no
/// list: an epoch may have millions of actions, of which few are asked for.
template <class Visit>
void walk(const Schedule& schedule, std::span<const StageMemory> stages, int device,
          const Segment& segment, Visit&& visit) {
  std::int64_t in_use = 0;
  const std::vector<std::int64_t> bytes = frame_bytes(schedule, stages, device);
  schedule.for_each(device, segment, [&](const Action& action) {
    if (action.kind == ActionKind::forward) in_use += bytes[action.stage];
    if (action.kind == ActionKind::release) in_use -= bytes[action.stage];
    visit(action, in_use);
  });
}

}  // namespace

std::vector<std::int64_t> frame_bytes(const Schedule& schedule, std::span<const StageMemory> stages,
                                      int device) {
  std::vector<std::int64_t> bytes;
  const int last = schedule.buffers(device).last_stage;
  for (int j = 0; j < std::ssize(stages); ++j) {
    const bool leaves = j == last && j + 1 < std::ssize(stages);
    bytes.push_back(align_up(leaves ? stages[j].leaving_offset + schedule.spec().activation_bytes[j]
                                    : stages[j].frame_bytes));
  }
  return bytes;
}

std::vector<AccountedAction> account(const Schedule& schedule, std::span<const StageMemory> stages,
                                     int device, const Segment& segment,
                                     const std::function<bool(std::int64_t)>& selected) {
  std::vector<bool> wanted;  // [step of the segment]
  for (std::int64_t t = segment.first; t < segment.last; ++t) wanted.push_back(selected(t));
  std::vector<AccountedAction> result;
  if (std::ranges::find(wanted, true) == wanted.end()) return result;
  walk(schedule, stages, device, segment, [&](const Action& action, std::int64_t in_use) {
    if (action.kind == ActionKind::exchange) return;  // of no training step
    if (wanted[static_cast<std::size_t>(action.step - segment.first)])
      result.push_back({action, in_use});
  });
  return result;
}

Traffic sent_in(const Schedule& schedule, int device, const Segment& segment) {
  Traffic sum = traffic(schedule, device);
  if (schedule.program(device).team == 1) {
    sum.messages *= segment.last - segment.first;
    sum.bytes *= segment.last - segment.first;
    return sum;
  }
  sum = {};
  schedule.for_each(device, segment, [&](const Action& action) {
    if (action.kind != ActionKind::send) return;
    ++sum.messages;
    sum.bytes += action.bytes;
  });
  return sum;
}

std::vector<int> peers_of(const Schedule& schedule, int device) {
  // Teams take turns with their peers. Both ends look at the same steps.
  std::int64_t steps = schedule.window().last;
  for (int d = 0; d < schedule.devices(); ++d)
    steps = std::max<std::int64_t>(steps, schedule.window().last + schedule.program(d).team);
  std::set<int> peers;
  schedule.for_each(device, {0, steps}, [&](const Action& action) {
    if (action.kind == ActionKind::send || action.kind == ActionKind::post)
      peers.insert(action.peer);
  });
  return {peers.begin(), peers.end()};
}

std::int64_t peak_activations(const Schedule& schedule, std::span<const StageMemory> stages,
                              int device, const Segment& segment) {
  // What is alive repeats behind that.
  const std::int64_t steps = std::min(segment.last - segment.first, schedule.window().last);
  std::int64_t peak = 0;
  walk(schedule, stages, device, {segment.first, segment.first + steps},
       [&](const Action&, std::int64_t in_use) { peak = std::max(peak, in_use); });
  return peak;
}

}  // namespace carousel
