// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/issuer.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace carousel {
namespace {

Collective::Kind collective_kind(ActionKind kind) {
  switch (kind) {
    case ActionKind::reduce:
      return Collective::Kind::reduce;
    case ActionKind::broadcast:
      return Collective::Kind::broadcast;
    case ActionKind::reduce_scatter:
      return Collective::Kind::reduce_scatter;
    case ActionKind::all_gather:
      return Collective::Kind::all_gather;
    default:
      return Collective::Kind::all_reduce;
  }
}

/// Messages of one tag between two devices keep their order, which is that of the steps.
int tag_of(const Action& action, const Schedule& schedule) {
  const int stages = schedule.rule().stages();
  const int pieces = schedule.most_pieces();
  const int of_stage = static_cast<int>(action.payload) * (stages + 1) + action.stage + 1;
  return of_stage * pieces + std::max(action.piece, 0);
}

}  // namespace

Issuer::Issuer(IssuerParts parts)
    : parts_(std::move(parts)),
      lane_order_(parts_.schedule, parts_.device, static_cast<int>(parts_.compute.size())),
      begun_(parts_.first_step - 1),
      told_(parts_.first_step - 1) {
  pending_.reserve(parts_.schedule.buffers(parts_.device).requests);
  updates_.reserve(2 * decision_lag * parts_.schedule.rule().stages());
  const auto& stages = parts_.schedule.spec().pieces;
  const int shards = shards_of(parts_.schedule.parallel());
  // Groups are in the order in which pieces lie, which are counted from behind.
  for (int j = 0; j < std::ssize(stages); ++j) {
    for (int first = 0; first < std::ssize(stages[j]); first += shards) {
      Chunk& chunk = chunks_[{j, first}];
      for (int p = first + shards - 1; p >= first; --p) {
        chunk.gradients.push_back(static_cast<int>(stages[j][p].gradients / sizeof(real)));
        chunk.parameters.push_back(static_cast<int>(stages[j][p].parameters));
      }
    }
  }
}

void Issuer::begin(const Segment& segment) {
  training_ = true;
  segment_ = segment;
  period_ = parts_.schedule.first_period(segment);
  next_ = 0;
  begun_ = segment.first - 1;
  parts_.reports.forget_pause();
  parts_.recorder.begin(parts_.schedule, parts_.device, segment);
  parts_.executor.begin(segment.first);
  lane_order_.begin(segment.first);
}

void Issuer::begin(std::span<const Action> actions) {
  training_ = false;
  list_ = actions;
  next_ = 0;
  parts_.executor.begin(std::nullopt);
}

/// Finds the next action, unless it is there; false where nothing is left.
bool Issuer::fetch() {
  if (action_) return true;
  if (!training_) {
    if (next_ == list_.size()) return false;
    action_ = list_[next_++];
    return true;
  }
  const Schedule& schedule = parts_.schedule;
  const std::vector<ProgramAction>& period = schedule.program(parts_.device).actions;
  for (; period_ < schedule.end_period(segment_); ++period_, next_ = 0) {
    while (next_ < period.size()) {
      action_ = schedule.instantiate(parts_.device, period[next_++], period_, segment_);
      if (action_) return true;
    }
  }
  return false;
}

bool Issuer::is_done() {
  if (fetch()) return false;
  CAROUSEL_CHECK(pending_.empty(), "{} messages were never waited for", pending_.size());
  return true;
}

void Issuer::issue() {
  while (fetch()) {
    if (is_full()) return;
    const bool of_step = training_ && action_->kind != ActionKind::exchange;
    if (of_step && action_->step > begun_) {
      if (!may_begin(action_->step)) return;
      if (action_->step >= segment_.last) {
        action_.reset();
        continue;
      }
    }
    hand_over(*action_);
    action_.reset();
  }
}

/// A wait takes two tasks, and so does a start; an action that waits for other queues takes one for
/// each of them.
bool Issuer::is_full() const {
  return parts_.communication.full() ||
         std::ranges::any_of(parts_.compute, [](const Queue* queue) { return queue->full(); });
}

/// Whether an action of a step that none was of before may be handed over. The device has then
/// begun step - host_lead, before which it knew what was decided at step - decision_lag.
bool Issuer::may_begin(std::int64_t step) {
  if (!beginnings_[step % host_lead].reached()) return false;
  listen();
  collect(step - decision_lag);
  obey();
  if (step >= segment_.last) return true;
  const Event now = queue().record();
  while (begun_ < step) beginnings_[++begun_ % host_lead] = now;
  return true;
}

/// Ends the segment where what is known says so. May be some decision is known early: it ends no
/// step of which an action is handed over.
void Issuer::obey() {
  const Decisions& known = *parts_.reports.decisions();
  diverged_at_ = known.diverged_at;
  for (const std::int64_t step : {known.diverged_at, known.paused_at}) {
    if (step >= 0) segment_.last = std::min(segment_.last, step + decision_lag);
  }
  CAROUSEL_CHECK(begun_ < segment_.last, "step {} has begun, and step {} is the last one", begun_,
                 segment_.last - 1);
}

/// Reads the digests of steps up to `last`, which the device has made: updates of step t write what
/// every forward of step t + 2 may read, and so come before all of step t + device_lag.
void Issuer::collect(std::int64_t last) {
  std::erase_if(updates_, [&](Receipt& update) {
    if (update.step > last) return false;
    update.digest = *parts_.reports.digest(update.step, update.stage);
    parts_.recorder.add(update);
    return true;
  });
}

void Issuer::listen() {
  const std::int64_t known = parts_.reports.known_step();
  if (known == told_) return;
  parts_.activity.completes(known + 1);
  while (told_ < known) {
    ++told_;
    parts_.on_step(told_, parts_.reports.sums(told_));
  }
}

void Issuer::end() {
  listen();
  obey();
  collect(segment_.last - 1);
  parts_.recorder.end();
}

void Issuer::hand_over(const Action& action) {
  switch (action.kind) {
    case ActionKind::update:
      note_update(action);
      return compute(action);
    case ActionKind::load:
    case ActionKind::copy:
    case ActionKind::forward:
    case ActionKind::backward:
    case ActionKind::accumulate:
    case ActionKind::measure:
    case ActionKind::release:
      return compute(action);
    case ActionKind::post:
    case ActionKind::send:
    case ActionKind::all_reduce:
    case ActionKind::reduce:
    case ActionKind::broadcast:
    case ActionKind::reduce_scatter:
    case ActionKind::all_gather:
      return start(action);
    case ActionKind::exchange:
      return parts_.communication.exchange(action.round.number());
    case ActionKind::wait:
      return wait(action);
  }
  fail(ExitCode::internal, "no such action: {}", to_string(action));
}

/// Of several pieces of a stage, one receipt.
void Issuer::note_update(const Action& action) {
  const bool noted = std::ranges::any_of(updates_, [&](const Receipt& update) {
    return update.step == action.step && update.stage == action.stage;
  });
  if (!noted) updates_.push_back({action.step, action.stage, 0});
}

void Issuer::compute(const Action& action) {
  Executor* const executor = &parts_.executor;
  const int lane = lane_order_.lane_of(action, training_);
  Queue& queue = *parts_.compute[lane];
  const bool shares = training_ && parts_.compute.size() > 1;
  if (shares) {
    const std::vector<Event>& before = lane_order_.before(action);
    for (std::size_t k = 0; k < before.size(); ++k) {
      if (k > 0) queue.submit([] {});  // each task waits for one event
      queue.wait(before[k]);
    }
  }
  ActionRecord* const row = executor->note(action);
  queue.submit([executor, action, row, lane] { executor->execute(action, row, lane); },
               is_pass(action));
  if (shares) lane_order_.after(action, queue.record());
}

void Issuer::start(const Action& action) {
  Executor* const executor = &parts_.executor;
  ActionRecord* const row = executor->note(action);
  queue().submit([executor, action, row] { executor->prepare(action, row); });
  const Event after = queue().record();
  queue().submit([executor] { executor->end(); });
  std::byte* const data = parts_.executor.payload(action);
  CommunicationQueue& messages = parts_.communication;
  if (is_collective(action)) {
    Collective collective{.kind = collective_kind(action.kind),
                          .group = action.group,
                          .root = action.peer,
                          .data = reinterpret_cast<real*>(data),
                          .count = static_cast<std::size_t>(action.bytes) / sizeof(real),
                          .round = action.round.number()};
    if (action.piece >= 0) name_parts(action, collective);
    pending_.push_back({action, messages.join(collective, after)});
    return;
  }
  const Message message{action.peer, tag_of(action, parts_.schedule), data,
                        static_cast<std::size_t>(action.bytes), action.round.number()};
  if (action.kind == ActionKind::post) {
    pending_.push_back({action, messages.post(message, after)});
    return;
  }
  pending_.push_back({action, messages.send(message, after)});
  if (!training_) return;
  ++sent_.messages;
  sent_.bytes += action.bytes;
}

/// What each of a group has of a chunk.
void Issuer::name_parts(const Action& action, Collective& collective) const {
  const Chunk& chunk = chunks_.at({action.stage, action.piece});
  if (action.kind == ActionKind::all_gather) {
    collective.count = static_cast<std::size_t>(action.bytes);
    collective.parts = chunk.parameters;
    return;
  }
  const int shard = parts_.schedule.buffers(parts_.device).shard;
  collective.from = parts_.executor.summed(action);
  collective.parts = chunk.gradients;
  collective.own = static_cast<std::size_t>(*(chunk.gradients.rbegin() + shard));
}

void Issuer::wait(const Action& action) {
  const auto pending = std::ranges::find_if(
      pending_, [&](const Pending& candidate) { return same_message(candidate.action, action); });
  CAROUSEL_CHECK(pending != pending_.end(), "nothing was started for: {}", to_string(action));
  const Request request = pending->request;
  *pending = pending_.back();
  pending_.pop_back();
  Executor* const executor = &parts_.executor;
  ActionRecord* const row = executor->note(action);
  queue().submit([executor, action, row] { executor->turn_to(action, row); });
  queue().wait(parts_.communication.done(request));
  queue().submit([executor, action, request] { executor->arrive(action, request); });
  parts_.communication.release(request);
}

}  // namespace carousel
