// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/executor.hpp"

#include <Kokkos_Profiling_ScopedRegion.hpp>
#include <algorithm>

#include "core/base/add.hpp"
#include "core/base/check.hpp"
#include "core/base/copy.hpp"
#include "core/train/clipping.hpp"
#include "core/train/kernels.hpp"
#include "core/train/rider.hpp"
#include "core/train/shown_images.hpp"
#include "core/train/update.hpp"

namespace carousel {

Executor::Executor(ExecutorParts parts)
    : parts_(std::move(parts)),
      lane_(parts_.lanes.front().get()),
      clock_(lane_->exec, parts_.seconds),
      counts_(parts_.schedule.buffers(parts_.device)),
      buffers_{.frames = std::vector<int>(parts_.schedule.rule().stages())},
      frames_(parts_.schedule.rule().stages()),
      epochs_(counts_.inputs),
      loads_(lane_->exec, staged_batches + 1) {
  for (const ActionKind kind : computing_kinds) {
    for (std::size_t j = 0; j < frames_.size(); ++j)
      regions_[kind].push_back(fmt::format("carousel::{} of stage {}", to_string(kind), j));
  }
}

void Executor::begin(std::optional<std::int64_t> first_step) {
  first_step_ = first_step;
  executed_ = 0;
  given_back_ = loads_.marked();  // the prefetcher has begun anew
  if (!first_step_) return;
  clock_.calibrate(parts_.lanes.front()->exec);
  parts_.communication.begin_segment();
}

void Executor::rehearse(const Action& action, int lane, std::optional<std::int64_t> first_step,
                        int samples) {
  lane_ = parts_.lanes[lane].get();
  first_step_ = first_step;
  samples_ = samples;
  rehearses_ = true;
  perform(action);
  finish(lane_->exec, "carousel::train::rehearse");
  rehearses_ = false;
}

ActionRecord* Executor::note(const Action& action) {
  DeviceMemory& memory = parts_.memory;
  if (action.kind == ActionKind::forward) memory.acquire_frame(action.stage);
  if (action.kind == ActionKind::release) memory.release_frame(action.stage);
  if (!first_step_ || !parts_.recorder.profiles(action.step)) return nullptr;
  ActionRecord* const row = parts_.recorder.add({.kind = to_string(action.kind),
                                                 .step = action.step,
                                                 .micro_batch = action.micro_batch,
                                                 .stage = action.stage,
                                                 .version = action.version});
  parts_.recorder.add(memory.in_use());
  return row;
}

void Executor::turn_to(const Action& action, ActionRecord* row, int lane) {
  lane_ = parts_.lanes[lane].get();
  parts_.activity.starts(action);
  record_ = row;
  if (row != nullptr) clock_.stamp(lane_->exec, &row->begin);
}

void Executor::execute(const Action& action, ActionRecord* row, int lane) {
  turn_to(action, row, lane);
  perform(action);
  end();
}

void Executor::prepare(const Action& start, ActionRecord* row) {
  turn_to(start, row);
  if (start.payload == Payload::norms) leave_own_norms();
}

void Executor::end() {
  if (record_ != nullptr) clock_.stamp(lane_->exec, &record_->end);
  parts_.activity.ends();
  ++executed_;
}

void Executor::perform(const Action& action) {
  // What a device computes shows in the tools that Kokkos knows.
  std::optional<Kokkos::Profiling::ScopedRegion> region;
  if (computes(action)) region.emplace(regions_.at(action.kind)[std::max(action.stage, 0)]);
  switch (action.kind) {
    case ActionKind::load:
      return load(action);
    case ActionKind::forward:
      return forward(action);
    case ActionKind::backward:
      return backward(action);
    case ActionKind::accumulate:
      return accumulate(action);
    case ActionKind::measure:
      return measure(action.stage, parts_.memory.gradient(action.source));
    case ActionKind::update:
      return update(action);
    case ActionKind::release:
      return;  // it was counted when it was handed over
    default:
      fail(ExitCode::internal, "not to be executed: {}", to_string(action));
  }
}

StageArguments Executor::arguments(const Action& pass) {
  const DeviceMemory& memory = parts_.memory;
  const int first = counts_.first_stage;
  const int j = pass.stage;
  parts_.schedule.resolve(parts_.device, pass, first_step_, buffers_);
  const bool training = first_step_.has_value();
  StageArguments result;
  result.samples = training ? parts_.micro_batch_size : samples_;
  result.images = memory.images(buffers_.input);
  if (counts_.lands()) result.landing = memory.landing(buffers_.landing);
  for (int stage = first; stage <= j; ++stage)
    frames_[stage] = memory.frame(stage, buffers_.frames[stage]);
  result.frames = frames_;
  result.scratch = lane_->scratch;
  // What stays on the device, or the copy that passes by for this pass.
  result.parameters = buffers_.parameters < 0 ? memory.parameters(j, pass.version)
                                              : memory.travelling(buffers_.parameters);
  result.training = training;
  result.draw = {parts_.seed, epochs_[buffers_.input], memory.samples(buffers_.input)};
  result.targets = memory.targets(buffers_.input);
  if (!training && !rehearses_ && parts_.chosen != nullptr)
    result.chosen = parts_.chosen + std::int64_t{pass.micro_batch} * parts_.micro_batch_size;
  result.report = training ? memory.report(pass.micro_batch) : memory.evaluation(pass.source);
  return result;
}

void Executor::load(const Action& action) {
  const double asked = parts_.seconds();
  // Behind kernels that the device has yet to come to; it has enough to do.
  while (loads_.marked() - given_back_ == staged_batches) give_batches_back();
  const Batch& batch = parts_.prefetcher.acquire(action.step, action.micro_batch);
  data_wait_ += parts_.seconds() - asked;
  samples_ = batch.request.count;
  const int input = action.buffer;
  const auto bring = [&](void* to, const auto& from) {
    copy<MemorySpace, HostSpace>(lane_->exec, to, from.data(), from.size_bytes());
  };
  if (counts_.first_stage == 0) show(batch, input);
  if (counts_.last_stage + 1 == std::ssize(frames_))
    bring(parts_.memory.targets(input), batch.targets);
  bring(parts_.memory.samples(input), batch.samples);
  epochs_[input] = batch.request.epoch;
  loads_.mark();
  give_batches_back();
}

/// Those that are on the device, to be filled again.
void Executor::give_batches_back() {
  for (; given_back_ < loads_.marked() && loads_.has_reached(given_back_ + 1); ++given_back_)
    parts_.prefetcher.release();
}

void Executor::show(const Batch& batch, int input) {
  const DeviceMemory& memory = parts_.memory;
  const auto* images = reinterpret_cast<const std::uint8_t*>(batch.inputs.data());
  const ShownPart* shown = batch.parts.data();
  if (memory.read_images() != nullptr) {
    copy<MemorySpace, HostSpace>(lane_->exec, memory.read_images(), images,
                                 batch.inputs.size_bytes());
    copy<MemorySpace, HostSpace>(lane_->exec, memory.parts(), shown, batch.parts.size_bytes());
    images = memory.read_images();
    shown = memory.parts();
  }
  show_images(for_numbers(2 * std::ssize(batch.inputs)), parts_.prefetcher.source().spec(),
              batch.request.count, images, shown, memory.levels(), memory.images(input));
}

void Executor::forward(const Action& action) {
  const StageArguments arguments = this->arguments(action);
  const int j = action.stage;
  lane_->stages[j - counts_.first_stage].forward(lane_->workers, arguments);
  if (!first_step_ || j < counts_.last_stage || j + 1 == std::ssize(frames_)) return;
  write_ages(lane_->workers.one(), parts_.reports.decisions(), action.step,
             rider_of(frames_[j] + stage(j).leaving_offset,
                      parts_.schedule.spec().activation_bytes[j], ages_size));
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
  lane_->stages[j - counts_.first_stage].backward(lane_->workers, arguments);
  // What the micro-batch reports rides down from the device of the last stage.
  const int sums = stage(j).sums;
  real* rider = gradient + stage(j).rider_offset();
  if (counts_.last_stage + 1 == std::ssize(frames_))
    write_rider(lane_->workers.one(), arguments.report, sums, rider);
  else
    copy_rider(lane_->workers.one(), sums,
               rider_of(arguments.d_output, spec.d_activation_bytes[j], rider_size(sums)), rider);
  if (!rehearses_ && parts_.wants_pause()) ask_for_pause(lane_->workers.one(), sums, rider);
  if (j == counts_.first_stage && j > 0)
    copy_rider(lane_->workers.one(), sums, rider,
               rider_of(arguments.d_input, spec.d_activation_bytes[j - 1], rider_size(sums)));
}

void Executor::accumulate(const Action& action) {
  // Numbers that ride behind the gradient are summed with it.
  const auto size = static_cast<std::size_t>(stage(action.stage).message_size);
  add(for_numbers(3 * static_cast<std::int64_t>(size)),
      Vector(parts_.memory.gradient(action.buffer), size),
      ConstVector(parts_.memory.gradient(action.source), size));
}

void Executor::measure(int stage, const real* gradient_sum) {
  const DeviceMemory& memory = parts_.memory;
  const std::int64_t size = this->stage(stage).parameter_size;
  measure_norm(for_numbers(size), gradient_sum, size, gradient_scale(), memory.workspace(0),
               memory.norms() + stage);
}

/// What an update multiplies the gradient by; null: nothing.
const real* Executor::clip_factor(int stage, const real* gradient_sum) {
  const OptimizerConfig& optimizer = parts_.optimizer;
  real* const norms = parts_.memory.norms();
  if (norms == nullptr) return nullptr;
  real* const factor = parts_.memory.clip_factor();
  switch (optimizer.clipping()) {
    case Clipping::none:
      break;
    case Clipping::stage:
      measure(stage, gradient_sum);
      find_clip_factor(lane_->workers.one(), norms + stage, 1, optimizer.clip_stage_norm, factor);
      return factor;
    case Clipping::model:
      find_clip_factor(lane_->workers.one(), norms, parts_.schedule.rule().stages(),
                       optimizer.clip_norm, factor);
      return factor;
  }
  return nullptr;
}

void Executor::update(const Action& action) {
  const DeviceMemory& memory = parts_.memory;
  const int j = action.stage;
  const StageMemory& stage = this->stage(j);
  const auto numbers = [](std::byte* bytes) { return reinterpret_cast<real*>(bytes); };
  const real* gradient = memory.gradient(action.source);
  std::byte* const next = memory.parameters(j, action.version);
  real* const next_full = memory.full_parameters(j, action.version);
  // What is rehearsed leaves it where reports will lie.
  std::uint64_t* const digest = rehearses_ ? reinterpret_cast<std::uint64_t*>(memory.report(0))
                                           : parts_.reports.digest(action.step, j);
  const real scale = gradient_scale();
  constexpr int vectors = 6;  // that a rule reads and writes, about
  carousel::update(for_numbers(vectors * stage.parameter_size),
                   {parts_.optimizer, parts_.learning_rate(action.step), action.step}, stage,
                   {.theta = memory.full_parameters(j, action.step),
                    .gradient_sum = gradient,
                    .scale = scale,
                    .clip = clip_factor(j, gradient),
                    .states = memory.optimizer(j),
                    .next = next_full,
                    .digest = digest,
                    .workspace = memory.workspace(0)});
  if (stage.keeps_full)
    store_parameters(for_numbers(2 * stage.parameter_size), stage.parameter_ranges, next_full,
                     next);
  const std::int64_t buffers = stage.stored_buffers();
  update_statistics(for_numbers(3 * stage.buffer_size),
                    {.size = stage.buffer_size,
                     .running = numbers(memory.parameters(j, action.step) + buffers),
                     .batch_sums = gradient + stage.parameter_size,
                     .scale = scale,
                     .next = numbers(next + buffers),
                     .parameters = stage.parameter_size,
                     .digest = digest});
  real* const rider = numbers(next + stage.stored_rider_offset);
  copy_rider(lane_->workers.one(), stage.sums, gradient + stage.rider_offset(), rider);
  if (rehearses_) return;
  parts_.on_update(lane_->exec, action.step, j, next_full);
  if (j == 0) parts_.reports.learn(lane_->workers.one(), action.step, rider, *first_step_);
}

}  // namespace carousel
