// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/executor.hpp"

#include <algorithm>
#include <array>

#include "core/base/check.hpp"
#include "core/base/copy.hpp"
#include "core/train/kernels.hpp"
#include "core/train/optimizer.hpp"
#include "core/train/rider.hpp"

namespace carousel {
namespace {

/// Messages of one tag between two devices keep their order, which is that of the steps.
int tag_of(const Action& action, int stages) {
  return static_cast<int>(action.payload) * (stages + 1) + action.stage + 1;
}

}  // namespace

Executor::Executor(const ExecutionSpace& exec, ExecutorParts parts)
    : exec_(exec),
      parts_(std::move(parts)),
      counts_(parts_.schedule.buffers(parts_.device)),
      collected_(parts_.stages.size()),
      frames_(parts_.stages.size()),
      epochs_(counts_.inputs),
      digest_(Kokkos::view_alloc(exec_, "carousel::train::digest"), parts_.stages.size()) {
  pending_.reserve(parts_.schedule.program(parts_.device).actions.size() +
                   parts_.schedule.devices());
}

void Executor::begin(const Segment& segment) {
  training_ = true;
  segment_ = segment;
  period_ = parts_.schedule.first_period(segment);
  next_ = 0;
  parts_.recorder.begin(parts_.schedule, parts_.device, segment);
}

void Executor::begin(std::span<const Action> actions) {
  training_ = false;
  list_ = actions;
  next_ = 0;
}

bool Executor::fetch() {
  if (!training_) {
    if (next_ == list_.size()) return false;
    action_ = list_[next_++];
    return true;
  }
  const Schedule& schedule = parts_.schedule;
  const std::vector<ProgramAction>& period = schedule.program(parts_.device).actions;
  for (; period_ < schedule.end_period(segment_); ++period_, next_ = 0) {
    while (next_ < period.size()) {
      const std::optional<Action> action =
          schedule.instantiate(parts_.device, period[next_++], period_, segment_);
      if (!action) continue;
      action_ = *action;
      return true;
    }
  }
  return false;
}

Executor::State Executor::advance() {
  bool moved = false;
  bool computed = false;
  while (true) {
    if (!fetched_ && !fetch()) {
      CAROUSEL_CHECK(pending_.empty(), "{} messages were never waited for", pending_.size());
      return State::done;
    }
    fetched_ = true;
    const bool computes = is_pass(action_);
    if (computes && computed) return State::moved;
    computed = computed || computes;
    const double begin = blocked_since_ >= 0 ? blocked_since_ : parts_.seconds();
    if (!execute(action_)) {
      blocked_since_ = begin;
      return moved ? State::moved : State::blocked;
    }
    if (training_) record(action_, begin);
    blocked_since_ = -1;
    fetched_ = false;
    moved = true;
  }
}

bool Executor::execute(const Action& action) {
  switch (action.kind) {
    case ActionKind::load:
      load(action);
      return true;
    case ActionKind::forward:
      forward(action);
      return true;
    case ActionKind::backward:
      backward(action);
      return true;
    case ActionKind::accumulate:
      accumulate(action);
      return true;
    case ActionKind::update:
      update(action);
      return true;
    case ActionKind::release:
      parts_.memory.release_frame(action.stage);
      return true;
    case ActionKind::post:
    case ActionKind::send:
    case ActionKind::all_reduce:
      start_message(action);
      return true;
    case ActionKind::wait:
      return wait(action);
    case ActionKind::save:
      save(action);
      return true;
    default:
      fail(ExitCode::internal, "this build does not execute: {}", to_string(action));
  }
}

void Executor::record(const Action& action, double begin) {
  if (!parts_.recorder.profiles(action.step)) return;
  parts_.recorder.add({.kind = to_string(action.kind),
                       .step = action.step,
                       .micro_batch = action.micro_batch,
                       .stage = action.stage,
                       .version = action.version,
                       .begin = begin,
                       .end = parts_.seconds()},
                      parts_.memory.in_use());
}

int Executor::turn(const Action& action, int count) const {
  if (!training_) return 0;
  return parts_.schedule.round_robin(action.step - segment_.first, action.micro_batch, count);
}

StageArguments Executor::arguments(const Action& action) {
  const DeviceMemory& memory = parts_.memory;
  const int j = action.stage;
  const int input = turn(action, counts_.inputs);
  StageArguments result;
  result.samples = training_ ? parts_.micro_batch_size : samples_;
  result.images = memory.images(input);
  for (int before = 0; before <= j; ++before)
    frames_[before] = memory.frame(before, turn(action, counts_.frames[before]));
  result.frames = frames_;
  result.scratch = memory.scratch();
  result.parameters = memory.parameters(j, action.version);
  result.training = training_;
  result.draw = {parts_.seed, epochs_[input], memory.samples(input)};
  result.labels = memory.labels(input);
  result.metrics = training_ ? memory.metrics(action.micro_batch)
                             : memory.evaluation(action.micro_batch / parts_.schedule.devices());
  return result;
}

void Executor::load(const Action& action) {
  const Batch& batch = parts_.prefetcher.acquire(action.step, action.micro_batch);
  samples_ = batch.request.count;
  const int input = turn(action, counts_.inputs);
  const auto bring = [&](void* to, const auto& from) {
    copy<MemorySpace, HostSpace>(exec_, to, from.data(), from.size_bytes());
  };
  bring(parts_.memory.images(input), batch.images);
  bring(parts_.memory.labels(input), batch.labels);
  bring(parts_.memory.samples(input), batch.samples);
  finish(exec_, "carousel::train::load");  // before the batch is filled again
  epochs_[input] = batch.request.epoch;
  parts_.prefetcher.release();
}

void Executor::forward(const Action& action) {
  parts_.memory.acquire_frame(action.stage);
  parts_.stages[action.stage].forward(exec_, arguments(action), parts_.transport);
}

void Executor::backward(const Action& action) {
  const DeviceMemory& memory = parts_.memory;
  const int j = action.stage;
  real* gradient = memory.gradient(action.buffer);
  StageArguments stage = arguments(action);
  stage.d_parameters = gradient;
  if (j + 1 < static_cast<int>(parts_.stages.size()))
    stage.d_output = memory.boundary(j, turn(action, counts_.boundaries[j]));
  if (j > 0) stage.d_input = memory.boundary(j - 1, turn(action, counts_.boundaries[j - 1]));
  parts_.stages[j].backward(exec_, stage, parts_.transport);
  write_rider(exec_, stage.metrics, gradient + parts_.stages[j].memory().rider_offset());
}

void Executor::accumulate(const Action& action) {
  // Numbers that ride behind the gradient are summed with it.
  const auto size = static_cast<std::size_t>(parts_.stages[action.stage].memory().message_size);
  add(exec_, Vector(parts_.memory.gradient(action.buffer), size),
      ConstVector(parts_.memory.gradient(action.source), size));
}

void Executor::update(const Action& action) {
  const DeviceMemory& memory = parts_.memory;
  const int j = action.stage;
  const StageMemory& stage = parts_.stages[j].memory();
  const real* current = memory.parameters(j, action.step);
  const real* gradient = memory.gradient(action.source);
  real* next = memory.parameters(j, action.version);
  const auto scale = static_cast<real>(1.0 / parts_.schedule.rule().micro_batches());
  const SgdStep step =
      sgd_step(parts_.optimizer, parts_.learning_rate(action.step), action.step == 0);
  carousel::update(exec_, step, stage.parameter_ranges,
                   {.theta = current,
                    .gradient_sum = gradient,
                    .scale = scale,
                    .momentum = memory.optimizer(j),
                    .next = next,
                    .digest = digest_.data() + j});
  const std::int64_t buffers = stage.parameter_size;
  update_statistics(exec_, {.size = stage.buffer_size,
                            .running = current + buffers,
                            .batch_sums = gradient + buffers,
                            .scale = scale,
                            .next = next + buffers,
                            .parameters = buffers,
                            .digest = digest_.data() + j});
  const std::int64_t rider = stage.rider_offset();
  copy_rider(exec_, gradient + rider, next + rider);
  std::uint64_t digest = 0;
  copy_to_host(exec_, std::span(&digest, 1), digest_.data() + j);
  parts_.recorder.add(Receipt{action.step, j, digest});
  parts_.on_update(action.step, j, next);
  if (j == 0) learn(action.step, next + rider);
}

void Executor::learn(std::int64_t step, const real* rider) {
  std::array<real, rider_size> numbers = {};
  copy_to_host(exec_, numbers, rider);
  const StepSums sums{numbers[0], numbers[1], numbers[2], numbers[3]};
  if (sums.non_finite > 0 && diverged_at_ < 0) {
    // No device has begun step + 3 when it learns of this; all end the segment before it.
    diverged_at_ = step;
    segment_.last = std::min(segment_.last, step + 3);
  }
  parts_.on_step(step, sums);
}

std::byte* Executor::payload(const Action& action) const {
  const DeviceMemory& memory = parts_.memory;
  switch (action.payload) {
    case Payload::gradient:
    case Payload::total:
      return reinterpret_cast<std::byte*>(memory.gradient(std::max(action.buffer, 0)));
    case Payload::parameters:
      return reinterpret_cast<std::byte*>(memory.parameters(action.stage, action.version));
    case Payload::optimizer_state:
      return reinterpret_cast<std::byte*>(action.direction == Direction::send
                                              ? memory.optimizer(action.stage)
                                              : memory.gradient(action.buffer));
    case Payload::metrics: {
      // On device 0 the results of the senders lie one after the other behind its own.
      const bool sends = action.direction == Direction::send;
      return reinterpret_cast<std::byte*>(memory.evaluation(sends ? 0 : action.buffer));
    }
    default:
      return nullptr;  // a token carries nothing
  }
}

void Executor::start_message(const Action& action) {
  const double now = parts_.seconds();
  if (action.kind == ActionKind::all_reduce) {
    finish(exec_, "carousel::train::before_all_reduce");
    const auto count = static_cast<std::size_t>(action.bytes) / sizeof(real);
    pending_.push_back(
        {action, parts_.transport.all_reduce(parts_.memory.gradient(0), count), now});
    return;
  }
  const Message message{action.peer, tag_of(action, parts_.schedule.rule().stages()),
                        payload(action), static_cast<std::size_t>(action.bytes)};
  if (action.kind == ActionKind::post) {
    pending_.push_back({action, parts_.transport.post(message), now});
    return;
  }
  finish(exec_, "carousel::train::before_send");
  pending_.push_back({action, parts_.transport.send(message), now});
  if (!training_) return;
  ++sent_.messages;
  sent_.bytes += action.bytes;
}

bool Executor::wait(const Action& action) {
  const auto pending = std::ranges::find_if(
      pending_, [&](const Pending& candidate) { return same_message(candidate.action, action); });
  CAROUSEL_CHECK(pending != pending_.end(), "nothing was started for: {}", to_string(action));
  const double now = parts_.seconds();
  const std::optional<double> completed = parts_.transport.test(pending->request);
  if (!completed) return false;
  if (training_ && parts_.recorder.profiles(action.step)) {
    parts_.recorder.add({.kind = to_string(action.payload),
                         .direction = action.direction == Direction::send ? "send" : "receive",
                         .step = action.step,
                         .stage = action.stage,
                         .micro_batch = action.micro_batch,
                         .peer = action.peer,
                         .bytes = action.bytes,
                         .posted = pending->posted,
                         .completed = *completed,
                         .waited = blocked_since_ < 0 ? 0 : now - blocked_since_});
  }
  *pending = pending_.back();
  pending_.pop_back();
  if (training_ && action.payload == Payload::parameters && action.stage == 0 &&
      action.direction == Direction::receive)
    learn(action.version - 1,
          parts_.memory.parameters(0, action.version) + parts_.stages[0].memory().rider_offset());
  return true;
}

void Executor::save(const Action& action) {
  const int j = action.stage;
  const real* state =
      action.bytes > 0 ? parts_.memory.gradient(action.buffer) : parts_.memory.optimizer(j);
  collected_[j].clear();
  if (state == nullptr) return;
  const auto size = static_cast<std::size_t>(parts_.stages[j].memory().parameter_size);
  collected_[j].resize(size);
  copy_to_host(exec_, collected_[j], state);
}

}  // namespace carousel
