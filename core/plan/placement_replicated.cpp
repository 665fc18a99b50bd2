// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/placements.hpp"

#include <algorithm>
#include <numeric>

#include "core/plan/period_builder.hpp"

namespace carousel::placements {
namespace {

Action compute(ActionKind kind, int micro_batch, int stage, std::int64_t version) {
  return {.kind = kind, .micro_batch = micro_batch, .stage = stage, .version = version};
}

/// A message of training step 0 about one stage, seen from one end.
struct Line {
  Payload payload;
  Direction direction;
  int peer;
  int stage;
  int micro_batch;
  std::int64_t version;
  std::int64_t bytes;
  int buffer;

  [[nodiscard]] Action start() const {
    Action action = wait();
    action.kind = direction == Direction::send ? ActionKind::send : ActionKind::post;
    return action;
  }
  [[nodiscard]] Action wait() const {
    return {.kind = ActionKind::wait,
            .payload = payload,
            .direction = direction,
            .micro_batch = micro_batch,
            .stage = stage,
            .version = version,
            .peer = peer,
            .bytes = bytes,
            .buffer = buffer};
  }
};

/// Loads, forwards, backwards and releases of one micro-batch; forward of stage j at begin + j.
/// `ordinal` counts the micro-batches of this device within the step. `gradient(j)` names the
/// buffer that backward writes; what follows a backward in its time step is up to `after`.
template <class Gradient, class After>
void add_micro_batch(PeriodBuilder& builder, const Rule& rule, int i, int ordinal,
                     std::int64_t begin, Gradient gradient, After after) {
  const int stages = rule.stages();
  Action load = compute(ActionKind::load, i, 0, 0);
  load.buffer = ordinal;
  builder.add(begin, Phase::compute, load);
  for (int j = 0; j < stages; ++j) {
    Action forward = compute(ActionKind::forward, i, j, rule.fresh(i, j) ? 0 : -1);
    forward.buffer = ordinal;
    builder.add(begin + j, Phase::compute, forward);
  }
  for (int j = stages - 1; j >= 0; --j) {
    const std::int64_t time = begin + 2 * stages - 1 - j;
    Action backward = compute(ActionKind::backward, i, j, rule.fresh(i, j) ? 0 : -1);
    backward.buffer = gradient(j);
    backward.source = ordinal;
    builder.add(time, Phase::compute, backward);
    after(j, time);
    Action release = compute(ActionKind::release, i, j, 0);
    release.buffer = ordinal;
    builder.add(time, Phase::release, release);
  }
}

Action update(int stage, int source) {
  Action action{.kind = ActionKind::update, .stage = stage, .version = 1};
  action.source = source;
  return action;
}

Action accumulate(int micro_batch, int stage, int buffer, int source) {
  Action action{.kind = ActionKind::accumulate, .micro_batch = micro_batch, .stage = stage};
  action.buffer = buffer;
  action.source = source;
  return action;
}

/// A few buffers take the stages of a backward pass in turn, so that some may still be on their way
/// while the next is filled. Two are enough between neighbours two time steps apart; gradients of a
/// neighbour further ahead (N < S) need as many as there are time steps between the two.
class AlternatingBuffers {
 public:
  AlternatingBuffers(int stages, int first_buffer, std::int64_t time_steps = 0)
      : stages_(stages),
        first_(first_buffer),
        count_(static_cast<int>(
            std::min<std::int64_t>(stages, std::max<std::int64_t>(2, time_steps)))) {}

  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] int of(int stage) const { return first_ + stage % count_; }
  /// Whether nobody used the buffer before `stage` in this step.
  [[nodiscard]] bool first_in_step(int stage) const { return stage + count_ >= stages_; }
  /// Backward time, relative to that of `stage`, of the next stage in the same buffer.
  [[nodiscard]] std::int64_t reuse_after(int stage) const {
    if (stage - count_ >= 0) return count_;
    int next = stages_ - 1;
    while (of(next) != of(stage)) --next;
    return 2 * stages_ + stage - next;
  }
  void append_to(std::vector<std::vector<int>>& gradients) const {
    gradients.resize(gradients.size() + count_);
    for (int j = 0; j < stages_; ++j) gradients[of(j)].push_back(j);
  }

 private:
  int stages_;
  int first_;
  int count_;
};

/// When theta_{t+1} of one stage is at the owner (hop 0) and its successors on the ring, in time
/// steps from the start of step t. The completed gradient leaves device N-1 at `ready`; the first
/// reader's need is a deadline, and the messages up to it share the time evenly.
class HandOn {
 public:
  HandOn(const Rule& rule, int stage, int owner) : owner_(owner), devices_(rule.micro_batches()) {
    const int last = devices_ - 1;
    const std::int64_t ready = rule.backward_time(last, stage, 0) + 1;
    const auto first_use = [&](int device) {
      return rule.forward_time(device, stage, rule.fresh(device, stage) ? 1 : 2);
    };
    int reader = 0;
    for (int h = 1; h < devices_; ++h) {
      if (first_use(device(h)) < first_use(device(reader))) reader = h;
    }
    const std::int64_t deadline = first_use(device(reader));
    const int diagonal = owner == last ? 0 : 1;
    const std::int64_t messages = reader + diagonal;
    for (int h = 0; h < devices_; ++h) {
      const std::int64_t share = messages == 0 ? 0 : (deadline - ready) * (h + diagonal) / messages;
      times_.push_back(h <= reader ? ready + share : first_use(device(h)));
    }
  }

  [[nodiscard]] int device(int hop) const { return (owner_ + hop) % devices_; }
  [[nodiscard]] std::int64_t time_at(int device) const {
    return times_[(device - owner_ + devices_) % devices_];
  }

 private:
  int owner_;
  int devices_;
  std::vector<std::int64_t> times_;
};

/// The token that lets micro-batch i begin once i - 1 is far enough ahead. One per step and not
/// only one per segment: an offset once lost to a hiccup would never come back by itself.
void add_tokens(PeriodBuilder& builder, const Rule& rule, int device) {
  const std::int64_t begin = rule.offset(device);
  if (device > 0) {
    const Line token{Payload::token, Direction::receive, device - 1, -1, device, 0, 0, -1};
    builder.add(begin, Phase::pace, token.start());
    builder.add(begin, Phase::pace, token.wait());
  }
  if (device + 1 < rule.micro_batches()) {
    const Line token{Payload::token, Direction::send, device + 1, -1, device + 1, 0, 0, -1};
    const std::int64_t ahead = rule.offset(device + 1) - begin;
    if (ahead == 0)
      builder.add(begin, Phase::pace, token.start());
    else
      builder.add(begin + ahead - 1, Phase::token, token.start());
    builder.add(begin + 2 * rule.stages() - 1, Phase::late_wait, token.wait());
  }
}

/// Waits for the partial sum of the device before and adds it to what this device computed.
void add_arrival(PeriodBuilder& builder, const Rule& rule, const ScheduleSpec& spec, int device,
                 int stage, const AlternatingBuffers& arriving, int own, std::int64_t begin) {
  const std::int64_t time = begin + 2 * rule.stages() - 1 - stage;
  const Line line{Payload::gradient,         Direction::receive, device - 1, stage, device - 1, 0,
                  spec.message_bytes[stage], arriving.of(stage)};
  if (arriving.first_in_step(stage))
    builder.add(begin, Phase::post, line.start());
  else
    builder.add(time - arriving.count(), Phase::late_post, line.start());
  builder.add(time, Phase::reduce, line.wait());
  builder.add(time, Phase::reduce, accumulate(device, stage, own, line.buffer));
}

/// Parameters of one stage on their way around the ring, seen from one device.
void add_hand_on(PeriodBuilder& builder, const Rule& rule, const ScheduleSpec& spec,
                 const HandOn& ring, int owner, int device, int stage) {
  const int devices = rule.micro_batches();
  if (devices == 1) return;
  const std::int64_t cycle = 2LL * rule.stages();
  const int next = (device + 1) % devices;
  const int before = (device + devices - 1) % devices;
  const std::int64_t bytes = spec.message_bytes[stage];
  const Line in{Payload::parameters, Direction::receive, before, stage, -1, 1, bytes, -1};
  const Line out{Payload::parameters, Direction::send, next, stage, -1, 1, bytes, -1};
  const std::int64_t here = ring.time_at(device);

  // The buffer of version t+1 is free once version t-1 was read for the last time.
  const bool fresh = rule.fresh(device, stage);
  const std::int64_t free = fresh ? rule.offset(device) : rule.backward_time(device, stage, 0);
  if (device != owner) {
    builder.add(free, fresh ? Phase::post : Phase::late_post, in.start());
    builder.add(here, Phase::receive_parameters, in.wait());
  }
  if (next == owner) return;
  builder.add(here, device == owner ? Phase::update : Phase::receive_parameters, out.start());
  // Two steps later the same buffer is written again.
  if (device == owner)
    builder.add(here + 2 * cycle, Phase::before_update, out.wait());
  else
    builder.add(free + 2 * cycle, fresh ? Phase::before_post : Phase::late_wait, out.wait());
}

}  // namespace

DevicePeriod single(const Rule& rule, const ScheduleSpec& spec) {
  const int n = rule.micro_batches();
  const int stages = rule.stages();
  const bool one_by_one = !rule.cyclic() && spec.parallel.order == Order::accumulate;
  const std::int64_t cycle = 2LL * stages;
  PeriodBuilder builder(one_by_one ? cycle * n : cycle);

  // Buffer j holds the sum of stage j; the first micro-batch writes it, the others add to it.
  DevicePeriod result;
  for (int j = 0; j < stages; ++j) result.gradients.push_back({j});
  const int own = stages;
  if (n > 1) {
    result.gradients.emplace_back(stages);
    std::iota(result.gradients.back().begin(), result.gradients.back().end(), 0);
  }
  for (int i = 0; i < n; ++i) {
    const std::int64_t begin = one_by_one ? cycle * i : rule.offset(i);
    add_micro_batch(
        builder, rule, i, i, begin, [&](int j) { return i == 0 ? j : own; },
        [&](int j, std::int64_t time) {
          if (i > 0) builder.add(time, Phase::compute, accumulate(i, j, j, own));
        });
  }
  const std::int64_t last = one_by_one ? cycle * (n - 1) : rule.offset(n - 1);
  for (int j = stages - 1; j >= 0; --j) builder.add(last + cycle - j, Phase::update, update(j, j));
  result.actions = builder.fold();
  return result;
}

DevicePeriod replicated_cyclic(const Rule& rule, const ScheduleSpec& spec,
                               const std::vector<int>& owner, int device) {
  const int last = rule.micro_batches() - 1;
  const int stages = rule.stages();
  const std::int64_t begin = rule.offset(device);
  PeriodBuilder builder(2LL * stages);
  DevicePeriod result;
  const AlternatingBuffers own(stages, 0);
  own.append_to(result.gradients);
  const std::int64_t gap = device > 0 ? begin - rule.offset(device - 1) : 0;
  const AlternatingBuffers arriving(stages, own.count(), gap);
  if (device > 0) arriving.append_to(result.gradients);

  add_tokens(builder, rule, device);
  add_micro_batch(
      builder, rule, device, 0, begin, [&](int j) { return own.of(j); },
      [&](int j, std::int64_t time) {
        if (device > 0) add_arrival(builder, rule, spec, device, j, arriving, own.of(j), begin);
        if (device == last && owner[j] == last) return;
        const Line line{device == last ? Payload::total : Payload::gradient,
                        Direction::send,
                        device == last ? owner[j] : device + 1,
                        j,
                        device,
                        0,
                        spec.message_bytes[j],
                        own.of(j)};
        builder.add(time, Phase::reduce, line.start());
        builder.add(time + own.reuse_after(j), Phase::before_post, line.wait());
      });

  for (int j = stages - 1; j >= 0; --j) {
    const HandOn ring(rule, j, owner[j]);
    if (owner[j] == device) {
      const std::int64_t now = ring.time_at(device);
      int source = own.of(j);
      if (device != last) {
        source = static_cast<int>(result.gradients.size());
        result.gradients.push_back({j});
        const Line total{
            Payload::total, Direction::receive, last, j, last, 0, spec.message_bytes[j], source};
        builder.add(std::max(begin, now - 2 * stages), Phase::post, total.start());
        builder.add(now, Phase::update, total.wait());
      }
      builder.add(now, Phase::update, update(j, source));
    }
    add_hand_on(builder, rule, spec, ring, owner[j], device, j);
  }
  result.actions = builder.fold();
  return result;
}

DevicePeriod replicated_dp(const Rule& rule, const ScheduleSpec& spec, int device) {
  const int devices = rule.micro_batches();
  const int last = devices - 1;
  const int stages = rule.stages();
  const std::int64_t cycle = 2LL * stages;
  const bool fast = spec.parallel.reduction == Reduction::fast;
  PeriodBuilder builder(cycle);
  DevicePeriod result;
  for (int j = 0; j < stages; ++j) result.gradients.push_back({j});
  const AlternatingBuffers arriving(stages, stages);
  const bool chain = !fast && devices > 1;
  if (chain && device > 0) arriving.append_to(result.gradients);

  add_micro_batch(
      builder, rule, device, 0, 0, [](int j) { return j; },
      [&](int j, std::int64_t time) {
        if (!chain) return;
        if (device > 0) add_arrival(builder, rule, spec, device, j, arriving, j, 0);
        const std::int64_t bytes = spec.message_bytes[j];
        const int next = (device + 1) % devices;
        const Line total_out{Payload::total, Direction::send, next, j, last, 0, bytes, j};
        if (device == last) {
          builder.add(time, Phase::reduce, total_out.start());
        } else {
          const Line out{Payload::gradient, Direction::send, next, j, device, 0, bytes, j};
          const int from = device == 0 ? last : device - 1;
          const Line total_in{Payload::total, Direction::receive, from, j, last, 0, bytes, j};
          builder.add(time, Phase::reduce, out.start());
          builder.add(cycle - 1, Phase::late_wait, out.wait());
          builder.add(cycle - 1, Phase::late_post, total_in.start());
          builder.add(cycle, Phase::update, total_in.wait());
          if (next != last) builder.add(cycle, Phase::update, total_out.start());
        }
        if (next != last) builder.add(time + cycle, Phase::before_post, total_out.wait());
      });

  if (fast && devices > 1) {
    Action sum{.kind = ActionKind::all_reduce, .payload = Payload::total};
    for (std::int64_t bytes : spec.message_bytes) sum.bytes += bytes;
    builder.add(cycle - 1, Phase::late_post, sum);
    sum.kind = ActionKind::wait;
    builder.add(cycle, Phase::update, sum);
  }
  for (int j = stages - 1; j >= 0; --j) builder.add(cycle, Phase::update, update(j, j));
  result.actions = builder.fold();
  return result;
}

}  // namespace carousel::placements
