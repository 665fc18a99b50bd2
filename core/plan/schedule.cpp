// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/schedule.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/plan/placements.hpp"

namespace carousel {
namespace {

/// First micro-batch that may read the newest parameters of a stage without slack.
int first_fresh(const Rule& rule, int stage) {
  for (int i = 0; i < rule.micro_batches(); ++i) {
    if (rule.slot(i) + stage >= rule.slot(rule.micro_batches() - 1)) return i;
  }
  return rule.micro_batches() - 1;
}

bool names_version(const Action& action) {
  return action.kind == ActionKind::forward || action.kind == ActionKind::backward ||
         action.kind == ActionKind::update || action.payload == Payload::parameters;
}

/// Largest number of things alive at once, while a list of actions is walked.
class LiveCount {
 public:
  void begin() { most_ = std::max(most_, ++now_); }
  void end() { --now_; }
  [[nodiscard]] int most() const { return most_; }

 private:
  int now_ = 0;
  int most_ = 0;
};

}  // namespace

Segment segment_at(std::int64_t step, std::int64_t steps_per_epoch, std::int64_t total_steps) {
  const std::int64_t epoch_end = (step / steps_per_epoch + 1) * steps_per_epoch;
  return {step, std::min(epoch_end, total_steps)};
}

Schedule::Schedule(const ScheduleSpec& spec)
    : spec_(spec),
      rule_(spec.parallel.rule, spec.parallel.micro_batches, spec.parallel.stages,
            spec.parallel.slack) {
  const int n = rule_.micro_batches();
  const int stages = rule_.stages();
  CAROUSEL_CHECK(static_cast<int>(spec.message_bytes.size()) == stages, "{} message sizes, S = {}",
                 spec.message_bytes.size(), stages);
  const bool single = spec.parallel.placement == Placement::single;
  const bool one_by_one = single && !rule_.cyclic() && spec.parallel.order == Order::accumulate;
  period_time_ = 2LL * stages * (one_by_one ? n : 1);
  for (int j = 0; j < stages; ++j) owner_.push_back(single ? 0 : first_fresh(rule_, j));

  for (int device = 0; device < (single ? 1 : n); ++device) {
    placements::DevicePeriod period =
        single           ? placements::single(rule_, spec)
        : rule_.cyclic() ? placements::replicated_cyclic(rule_, spec, owner_, device)
                         : placements::replicated_dp(rule_, spec, device);
    for (const Action& action : period.actions)
      trailing_periods_ = std::max(trailing_periods_, -action.step);
    periods_.push_back(std::move(period.actions));
    local_.push_back(single ? n : 1);
    BufferCounts counts;
    counts.gradients = std::move(period.gradients);
    counts.parameter_copies = rule_.versions();
    for (int j = 0; j < stages; ++j)
      counts.optimizer.push_back(!rule_.cyclic() || owner_[j] == device);
    buffers_.push_back(std::move(counts));
  }
  count_buffers();
}

void Schedule::count_buffers() {
  const int stages = rule_.stages();
  for (int device = 0; device < devices(); ++device) {
    LiveCount inputs;
    LiveCount requests;
    std::vector<LiveCount> frames(stages);
    std::vector<LiveCount> boundaries(stages);
    // Live sets repeat after the first steps; counts of one are enough to walk the list.
    BufferCounts& counts = buffers_[device];
    counts.inputs = 1;
    counts.frames.assign(stages, 1);
    for (const Action& action : actions(device, {0, trailing_periods_ + 2})) {
      const int j = action.stage;
      if (action.kind == ActionKind::load) inputs.begin();
      if (action.kind == ActionKind::wait)
        requests.end();
      else if (action.payload != Payload::none)
        requests.begin();
      if (action.kind == ActionKind::forward) frames[j].begin();
      if (action.kind == ActionKind::backward && j > 0) boundaries[j - 1].begin();
      if (action.kind == ActionKind::backward && j < stages - 1) boundaries[j].end();
      if (action.kind == ActionKind::release) {
        frames[j].end();
        if (j == 0) inputs.end();
      }
    }
    counts.inputs = inputs.most();
    // Outside training, device 0 receives from all others at once.
    counts.requests = std::max(requests.most(), devices());
    for (int j = 0; j < stages; ++j) {
      counts.frames[j] = frames[j].most();
      counts.boundaries.push_back(boundaries[j].most());
    }
  }
}

int Schedule::round_robin(int device, std::int64_t steps, int micro_batch, int count) const {
  const int ordinal = local_[device] == rule_.micro_batches() ? micro_batch : 0;
  return static_cast<int>((steps * local_[device] + ordinal) % count);
}

Action Schedule::instantiate(int device, const Action& action, std::int64_t period,
                             std::int64_t first_step) const {
  Action result = action;
  result.step += period;
  result.version = names_version(action) ? action.version + period : -1;
  result.time += (period - first_step) * period_time_;
  const BufferCounts& counts = buffers_[device];
  const std::int64_t steps = result.step - first_step;
  const auto turn = [&](int count) {
    return round_robin(device, steps, action.micro_batch, count);
  };
  if (steps < 0) return result;
  if (action.kind == ActionKind::load) result.buffer = turn(counts.inputs);
  if (action.kind == ActionKind::forward || action.kind == ActionKind::release)
    result.buffer = turn(counts.frames[action.stage]);
  if (action.kind == ActionKind::backward) result.source = turn(counts.frames[action.stage]);
  return result;
}

std::vector<Action> Schedule::actions(int device, const Segment& segment) const {
  std::vector<Action> result;
  for (std::int64_t p = segment.first; p < segment.last + trailing_periods_; ++p) {
    for (const Action& relative : periods_[device]) {
      const Action action = instantiate(device, relative, p, segment.first);
      if (action.step >= segment.first && action.step < segment.last) result.push_back(action);
    }
  }
  return result;
}

std::int64_t evaluation_share(const Schedule& schedule, std::int64_t batches, int device) {
  return (batches + schedule.devices() - 1 - device) / schedule.devices();
}

std::int64_t evaluation_position(const Schedule& schedule, std::int64_t batches,
                                 std::int64_t batch) {
  const int sender = static_cast<int>(batch % schedule.devices());
  std::int64_t position = batch / schedule.devices();
  for (int d = 0; d < sender; ++d) position += evaluation_share(schedule, batches, d);
  return position;
}

std::vector<std::vector<Action>> evaluation_actions(const Schedule& schedule, std::int64_t batches,
                                                    std::int64_t version,
                                                    std::int64_t bytes_per_batch) {
  const int devices = schedule.devices();
  const int stages = schedule.rule().stages();
  std::vector<std::vector<Action>> lists(devices);
  const auto message = [&](ActionKind kind, Direction direction, int peer, int sender) {
    return Action{.kind = kind,
                  .payload = Payload::metrics,
                  .direction = direction,
                  .step = version,
                  .peer = peer,
                  .bytes = bytes_per_batch * evaluation_share(schedule, batches, sender),
                  .buffer = static_cast<int>(evaluation_position(schedule, batches, sender))};
  };
  for (int d = 0; d < devices; ++d) {
    std::vector<Action>& list = lists[d];
    if (d == 0) {
      for (int sender = 1; sender < devices; ++sender)
        list.push_back(message(ActionKind::post, Direction::receive, sender, sender));
    }
    for (std::int64_t k = d; k < batches; k += devices) {
      const auto add = [&](ActionKind kind, int stage) {
        list.push_back({.kind = kind,
                        .step = version,
                        .micro_batch = static_cast<int>(k),
                        .stage = stage,
                        .version = version,
                        .buffer = 0});
      };
      for (int j = 0; j < stages; ++j) {
        if (j == 0) add(ActionKind::load, j);
        add(ActionKind::forward, j);
      }
      for (int j = 0; j < stages; ++j) add(ActionKind::release, j);
    }
    if (d > 0) {
      list.push_back(message(ActionKind::send, Direction::send, 0, d));
      list.push_back(message(ActionKind::wait, Direction::send, 0, d));
    } else {
      for (int sender = 1; sender < devices; ++sender)
        list.push_back(message(ActionKind::wait, Direction::receive, sender, sender));
    }
  }
  return lists;
}

std::vector<std::vector<Action>> collection_actions(const Schedule& schedule,
                                                    const std::vector<std::int64_t>& state_bytes,
                                                    std::int64_t step) {
  std::vector<std::vector<Action>> lists(schedule.devices());
  for (int j = 0; j < schedule.rule().stages(); ++j) {
    const bool here = schedule.buffers(0).optimizer[j];
    const int owner = here ? 0 : schedule.owner(j);
    Action action{.payload = Payload::optimizer_state, .step = step, .stage = j};
    if (!here && state_bytes[j] > 0) {
      action.bytes = state_bytes[j];
      // Between segments the gradient buffers are free; state lands in the stage's own.
      action.buffer = 0;
      const std::vector<std::vector<int>>& gradients = schedule.buffers(0).gradients;
      while (std::ranges::find(gradients[action.buffer], j) == gradients[action.buffer].end())
        ++action.buffer;
      Action out = action;
      out.buffer = -1;
      out.peer = 0;
      out.direction = Direction::send;
      action.peer = owner;
      action.direction = Direction::receive;
      for (ActionKind kind : {ActionKind::post, ActionKind::wait}) {
        action.kind = kind;
        lists[0].push_back(action);
        out.kind = kind == ActionKind::post ? ActionKind::send : ActionKind::wait;
        lists[owner].push_back(out);
      }
    }
    action.kind = ActionKind::save;
    action.direction = Direction::none;
    lists[0].push_back(action);
  }
  return lists;
}

Traffic traffic(const Schedule& schedule, int device) {
  Traffic sum;
  for (const Action& action : schedule.period(device)) {
    if (action.kind != ActionKind::send) continue;
    ++sum.messages;
    sum.bytes += action.bytes;
  }
  return sum;
}

}  // namespace carousel
