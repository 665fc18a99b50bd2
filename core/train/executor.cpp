// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/executor.hpp"

#include <Kokkos_Profiling_ScopedRegion.hpp>
#include <algorithm>
#include <array>
#include <optional>

#include "core/base/add.hpp"
#include "core/base/check.hpp"
#include "core/base/copy.hpp"
#include "core/train/clipping.hpp"
#include "core/train/kernels.hpp"
#include "core/train/optimizer.hpp"
#include "core/train/rider.hpp"
#include "core/train/shown_images.hpp"

namespace carousel {

Executor::Executor(const ExecutionSpace& exec, ExecutorParts parts)
    : exec_(exec),
      parts_(std::move(parts)),
      counts_(parts_.schedule.buffers(parts_.device)),
      buffers_{.frames = std::vector<int>(parts_.schedule.rule().stages())},
      frames_(parts_.schedule.rule().stages()),
      epochs_(counts_.inputs),
      digest_(Kokkos::view_alloc(exec_, "carousel::train::digest"), frames_.size()),
      known_step_(parts_.first_step - 1) {
  for (const ActionKind kind : computing_kinds) {
    for (std::size_t j = 0; j < frames_.size(); ++j)
      regions_[kind].push_back(fmt::format("carousel::{} of stage {}", to_string(kind), j));
  }
  pending_.reserve(parts_.schedule.program(parts_.device).actions.size() +
                   parts_.schedule.devices());
}

void Executor::begin(const Segment& segment) {
  training_ = true;
  segment_ = segment;
  paused_at_ = -1;
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
  bool passed = false;
  while (true) {
    if (!fetched_ && !fetch()) {
      CAROUSEL_CHECK(pending_.empty(), "{} messages were never waited for", pending_.size());
      return State::done;
    }
    if (!fetched_) parts_.activity.starts(action_);
    fetched_ = true;
    const bool passes = is_pass(action_);
    if (passes && passed) return State::moved;
    passed = passed || passes;
    const double begin = blocked_since_ >= 0 ? blocked_since_ : parts_.seconds();
    if (!execute(action_)) {
      blocked_since_ = begin;
      return moved ? State::moved : State::blocked;
    }
    if (training_) record(action_, begin);
    parts_.activity.ends();
    blocked_since_ = -1;
    fetched_ = false;
    moved = true;
  }
}

bool Executor::execute(const Action& action) {
  // What a device computes shows in the tools that Kokkos knows.
  std::optional<Kokkos::Profiling::ScopedRegion> region;
  if (computes(action)) region.emplace(regions_.at(action.kind)[std::max(action.stage, 0)]);
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
    case ActionKind::measure:
      measure(action.stage, parts_.memory.gradient(action.source));
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
    case ActionKind::reduce:
    case ActionKind::broadcast:
      start_message(action);
      return true;
    case ActionKind::exchange:
      parts_.transport.exchange(action.round.number());
      return true;
    case ActionKind::wait:
      return wait(action);
  }
  fail(ExitCode::internal, "no such action: {}", to_string(action));
}

void Executor::record(const Action& action, double begin) {
  // Rounds are no action of a training step.
  if (action.kind == ActionKind::exchange || !parts_.recorder.profiles(action.step)) return;
  parts_.recorder.add({.kind = to_string(action.kind),
                       .step = action.step,
                       .micro_batch = action.micro_batch,
                       .stage = action.stage,
                       .version = action.version,
                       .begin = begin,
                       .end = parts_.seconds()},
                      parts_.memory.in_use());
}

StageArguments Executor::arguments(const Action& pass) {
  const DeviceMemory& memory = parts_.memory;
  const int first = counts_.first_stage;
  const int j = pass.stage;
  parts_.schedule.resolve(parts_.device, pass,
                          training_ ? std::optional(segment_.first) : std::nullopt, buffers_);
  StageArguments result;
  result.samples = training_ ? parts_.micro_batch_size : samples_;
  result.images = memory.images(buffers_.input);
  if (counts_.lands()) result.landing = memory.landing(buffers_.landing);
  for (int stage = first; stage <= j; ++stage)
    frames_[stage] = memory.frame(stage, buffers_.frames[stage]);
  result.frames = frames_;
  result.scratch = memory.scratch();
  // What stays on the device, or the copy that passes by for this pass.
  result.parameters = buffers_.parameters < 0 ? memory.parameters(j, pass.version)
                                              : memory.travelling(buffers_.parameters);
  result.training = training_;
  result.draw = {parts_.seed, epochs_[buffers_.input], memory.samples(buffers_.input)};
  result.labels = memory.labels(buffers_.input);
  if (!training_ && parts_.chosen != nullptr)
    result.chosen = parts_.chosen + std::int64_t{pass.micro_batch} * parts_.micro_batch_size;
  result.metrics = training_ ? memory.metrics(pass.micro_batch) : memory.evaluation(pass.source);
  return result;
}

void Executor::load(const Action& action) {
  const double asked = parts_.seconds();
  const Batch& batch = parts_.prefetcher.acquire(action.step, action.micro_batch);
  data_wait_ += parts_.seconds() - asked;
  samples_ = batch.request.count;
  const int input = action.buffer;
  const auto bring = [&](void* to, const auto& from) {
    copy<MemorySpace, HostSpace>(exec_, to, from.data(), from.size_bytes());
  };
  if (counts_.first_stage == 0) show(batch, input);
  if (counts_.last_stage + 1 == std::ssize(frames_))
    bring(parts_.memory.labels(input), batch.labels);
  bring(parts_.memory.samples(input), batch.samples);
  finish(exec_, "carousel::train::load");  // before the batch is filled again
  epochs_[input] = batch.request.epoch;
  parts_.prefetcher.release();
}

void Executor::show(const Batch& batch, int input) {
  const DeviceMemory& memory = parts_.memory;
  const std::uint8_t* images = batch.images.data();
  const ShownPart* shown = batch.parts.data();
  if (memory.read_images() != nullptr) {
    copy<MemorySpace, HostSpace>(exec_, memory.read_images(), images, batch.images.size_bytes());
    copy<MemorySpace, HostSpace>(exec_, memory.parts(), shown, batch.parts.size_bytes());
    images = memory.read_images();
    shown = memory.parts();
  }
  show_images(exec_, parts_.prefetcher.input(), batch.request.count, images, shown, memory.levels(),
              memory.images(input));
}

void Executor::forward(const Action& action) {
  parts_.memory.acquire_frame(action.stage);
  const StageArguments arguments = this->arguments(action);
  const int j = action.stage;
  parts_.stages[j - counts_.first_stage].forward(exec_, arguments);
  if (!training_ || j < counts_.last_stage || j + 1 == std::ssize(frames_)) return;
  const std::int64_t message = parts_.schedule.spec().activation_bytes[j];
  const auto age = [&](std::int64_t step) { return step < 0 ? -1 : action.step - step; };
  write_ages(exec_, {.divergence = age(diverged_at_), .pause = age(paused_at_)},
             rider_of(frames_[j] + stage(j).leaving_offset, message));
}

void Executor::backward(const Action& action) {
  const DeviceMemory& memory = parts_.memory;
  const ScheduleSpec& spec = parts_.schedule.spec();
  const int j = action.stage;
  const bool last = j + 1 == std::ssize(frames_);
  real* gradient = memory.gradient(action.buffer);
  StageArguments arguments = this->arguments(action);
  arguments.d_parameters = gradient;
  if (!last) arguments.d_output = memory.boundary(j, buffers_.d_output);
  if (j > 0) arguments.d_input = memory.boundary(j - 1, buffers_.d_input);
  parts_.stages[j - counts_.first_stage].backward(exec_, arguments);
  // What the micro-batch reports rides down from the device of the last stage.
  real* rider = gradient + stage(j).rider_offset();
  if (counts_.last_stage + 1 == std::ssize(frames_))
    write_rider(exec_, arguments.metrics, rider);
  else
    copy_rider(exec_, rider_of(arguments.d_output, spec.d_activation_bytes[j]), rider);
  if (parts_.wants_pause()) ask_for_pause(exec_, rider);
  if (j == counts_.first_stage && j > 0)
    copy_rider(exec_, rider, rider_of(arguments.d_input, spec.d_activation_bytes[j - 1]));
}

void Executor::accumulate(const Action& action) {
  // Numbers that ride behind the gradient are summed with it.
  const auto size = static_cast<std::size_t>(stage(action.stage).message_size);
  add(exec_, Vector(parts_.memory.gradient(action.buffer), size),
      ConstVector(parts_.memory.gradient(action.source), size));
}

void Executor::measure(int stage, const real* gradient_sum) {
  const DeviceMemory& memory = parts_.memory;
  measure_norm(exec_, gradient_sum, this->stage(stage).parameter_size, gradient_scale(),
               memory.workspace(0), memory.norms() + stage);
}

/// What an update multiplies the gradient by; null: nothing.
const real* Executor::clip_factor(int stage, const real* gradient_sum) {
  const OptimizerConfig& optimizer = parts_.optimizer;
  real* const norms = parts_.memory.norms();
  if (norms == nullptr) return nullptr;
  real* const factor = parts_.memory.clip_factor();
  switch (clipping_of(optimizer)) {
    case Clipping::none:
      break;
    case Clipping::stage:
      measure(stage, gradient_sum);
      find_clip_factor(exec_, norms + stage, 1, optimizer.clip_stage_norm, factor);
      return factor;
    case Clipping::model:
      find_clip_factor(exec_, norms, parts_.schedule.rule().stages(), optimizer.clip_norm, factor);
      return factor;
  }
  return nullptr;
}

void Executor::update(const Action& action) {
  const DeviceMemory& memory = parts_.memory;
  const int j = action.stage;
  const StageMemory& stage = this->stage(j);
  const real* current = memory.parameters(j, action.step);
  const real* gradient = memory.gradient(action.source);
  real* next = memory.parameters(j, action.version);
  const real scale = gradient_scale();
  carousel::update(exec_, {parts_.optimizer, parts_.learning_rate(action.step), action.step},
                   stage.parameter_ranges,
                   {.theta = current,
                    .gradient_sum = gradient,
                    .scale = scale,
                    .clip = clip_factor(j, gradient),
                    .states = memory.optimizer(j),
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
  if (step <= known_step_) return;
  known_step_ = step;
  parts_.activity.completes(step + 1);
  std::array<real, rider_size> numbers = {};
  copy_to_host(exec_, numbers, rider);
  const StepSums sums{numbers[0], numbers[1], numbers[2], numbers[3]};
  if (sums.non_finite > 0) diverge_at(step);
  if (sums.pause > 0) pause_at(step);
  parts_.on_step(step, sums);
}

// No device has begun step + decision_lag when it learns of these; all end the segment before it.

void Executor::diverge_at(std::int64_t step) {
  if (diverged_at_ >= 0) return;
  diverged_at_ = step;
  segment_.last = std::min(segment_.last, step + decision_lag);
}

void Executor::pause_at(std::int64_t step) {
  // A wish of the segment before was heard there.
  if (paused_at_ >= 0 || step < segment_.first) return;
  paused_at_ = step;
  segment_.last = std::min(segment_.last, step + decision_lag);
}

}  // namespace carousel
