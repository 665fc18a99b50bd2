// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/lane_order.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace carousel {
namespace {

/// Of two events of one lane.
void keep_newer(Event& newest, const Event& event) {
  if (newest.timeline == nullptr || newest.value < event.value) newest = event;
}

}  // namespace

LaneOrder::LaneOrder(const Schedule& schedule, int device, int lanes)
    : schedule_(schedule),
      device_(device),
      lanes_(lanes),
      counts_(schedule.buffers(device)),
      pass_{.frames = std::vector<int>(schedule.rule().stages())} {
  int next = counts_.inputs;
  const auto number = [&](const std::vector<int>& counts, std::vector<int>& first) {
    for (const int count : counts) {
      first.push_back(next);
      next += count;
    }
  };
  number(counts_.frames, frames_);
  number(counts_.boundaries, boundaries_);
  gradients_ = next;
  next += static_cast<int>(counts_.gradients.size());
  parameters_ = next;
  next += schedule.rule().stages() * counts_.parameter_copies;
  accesses_.assign(next, {std::vector<Event>(lanes), std::vector<Event>(lanes)});
  before_.reserve(lanes);
  uses_.reserve(counts_.frames.size() + 8);
}

int LaneOrder::lane_of(const Action& action, bool training) const {
  if (!training || !is_pass(action)) return 0;
  const Rule& rule = schedule_.rule();
  return rule.slot_of(rule.worker_of(action.micro_batch)) % lanes_;
}

void LaneOrder::begin(std::int64_t first_step) {
  first_step_ = first_step;
  for (Accesses& buffer : accesses_) {
    std::ranges::fill(buffer.reads, Event{});
    std::ranges::fill(buffer.writes, Event{});
  }
}

int LaneOrder::version_of(int stage, std::int64_t version) const {
  return parameters_ + stage * counts_.parameter_copies +
         copy_of(version, counts_.parameter_copies);
}

void LaneOrder::find_uses(const Action& action) {
  uses_.clear();
  const int j = action.stage;
  const auto reads = [&](int buffer) { uses_.push_back({buffer, false}); };
  const auto writes = [&](int buffer) { uses_.push_back({buffer, true}); };
  if (is_pass(action)) {
    schedule_.resolve(device_, action, first_step_, pass_);
    reads(pass_.input);
    // What blocks leave for those of later stages is in earlier frames.
    for (int stage = counts_.first_stage; stage < j; ++stage)
      reads(frames_[stage] + pass_.frames[stage]);
    writes(frames_[j] + pass_.frames[j]);
    reads(version_of(j, action.version));
  }
  switch (action.kind) {
    case ActionKind::load:
      return writes(action.buffer);
    case ActionKind::forward:
      return;
    case ActionKind::backward:
      // A layer may leave the gradient of its second input where that of its output was.
      if (counts_.boundaries[j] > 0) writes(boundaries_[j] + pass_.d_output);
      if (j > 0) writes(boundaries_[j - 1] + pass_.d_input);
      return writes(gradients_ + action.buffer);
    case ActionKind::accumulate:
      reads(gradients_ + action.source);
      return writes(gradients_ + action.buffer);
    case ActionKind::measure:
      return reads(gradients_ + action.source);
    case ActionKind::update:
      reads(gradients_ + action.source);
      reads(version_of(j, action.step));
      return writes(version_of(j, action.version));
    case ActionKind::release:  // counts
      return;
    default:
      fail(ExitCode::internal, "several compute queues cannot share: {}", to_string(action));
  }
}

const std::vector<Event>& LaneOrder::before(const Action& action) {
  find_uses(action);
  before_.clear();
  const int own = lane_of(action, true);
  for (int lane = 0; lane < lanes_; ++lane) {
    if (lane == own) continue;
    Event newest;
    for (const Use& use : uses_) {
      const Accesses& buffer = accesses_[use.buffer];
      if (buffer.writes[lane].timeline != nullptr) keep_newer(newest, buffer.writes[lane]);
      if (use.writes && buffer.reads[lane].timeline != nullptr)
        keep_newer(newest, buffer.reads[lane]);
    }
    if (newest.timeline != nullptr) before_.push_back(newest);
  }
  return before_;
}

void LaneOrder::after(const Action& action, const Event& done) {
  const int lane = lane_of(action, true);
  for (const Use& use : uses_) {
    Accesses& buffer = accesses_[use.buffer];
    (use.writes ? buffer.writes : buffer.reads)[lane] = done;
  }
}

}  // namespace carousel
