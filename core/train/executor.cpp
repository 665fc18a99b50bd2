// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/executor.hpp"

#include <Kokkos_Profiling_ScopedRegion.hpp>
#include <algorithm>

#include "core/base/add.hpp"
#include "core/base/check.hpp"
#include "core/base/copy.hpp"
#include "core/optim/norm_blocks.hpp"
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
      states_(std::ssize(parts_.optimizer.states())),
      buffers_{.frames = std::vector<int>(parts_.schedule.rule().stages())},
      frames_(parts_.schedule.rule().stages()),
      epochs_(counts_.inputs),
      loads_(lane_->exec, staged_batches + 1) {
  const auto& pieces = parts_.schedule.spec().pieces;
  for (const ActionKind kind : computing_kinds) {
    for (std::size_t j = 0; j < frames_.size(); ++j) {
      std::vector<std::string> names = {
          fmt::format("carousel::{} of stage {}", to_string(kind), j)};
      for (std::size_t p = 0; !pieces.empty() && p < pieces[j].size(); ++p)
        names.push_back(fmt::format("{}, piece {}", names.front(), p));
      regions_[kind].push_back(std::move(names));
    }
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
                                                 .piece = action.piece,
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
  if (start.payload == Payload::norms && start.piece < 0) leave_own_norms();
}

void Executor::end() {
  if (record_ != nullptr) clock_.stamp(lane_->exec, &record_->end);
  parts_.activity.ends();
  ++executed_;
}

void Executor::perform(const Action& action) {
  // What a device computes shows in the tools that Kokkos knows.
  std::optional<Kokkos::Profiling::ScopedRegion> region;
  if (computes(action))
    region.emplace(regions_.at(action.kind)[std::max(action.stage, 0)].at(1 + action.piece));
  switch (action.kind) {
    case ActionKind::load:
      return load(action);
    case ActionKind::copy:
      return copy_piece(action);
    case ActionKind::forward:
      return forward(action);
    case ActionKind::backward:
      return backward(action);
    case ActionKind::accumulate:
      return accumulate(action);
    case ActionKind::measure:
      return measure(action);
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
  const bool stale = training && pass.version < pass.step;
  result.parameters = buffers_.parameters >= 0 ? memory.travelling(buffers_.parameters)
                      : stale                  ? memory.predicted(j, pass.version)
                                               : memory.parameters(j, pass.version);
  result.frozen = memory.frozen(j);
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
  show_batch(lane_->exec, for_numbers(2 * std::ssize(batch.inputs)),
             parts_.prefetcher.source().spec(), batch,
             {memory.read_images(), memory.parts(), memory.levels(), memory.images(input)});
}

void Executor::copy_piece(const Action& action) {
  if (!passes_by(action)) return store(action);
  const StagePiece& piece = stage(action.stage).piece(action.piece);
  copy<MemorySpace, MemorySpace>(lane_->exec,
                                 parts_.memory.travelling(action.buffer) + piece.stored_begin,
                                 this->piece(action, action.version),
                                 static_cast<std::size_t>(piece.stored_end - piece.stored_begin));
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
  const std::int64_t numbers = stage(action.stage).piece(action.piece).size();
  const auto size = static_cast<std::size_t>(numbers);
  add(for_numbers(3 * numbers), Vector(gradient(action.buffer, action), size),
      ConstVector(gradient(action.source, action), size));
}

/// Of a stage that is cut, the squares of a piece: the norm follows when those of all are here.
void Executor::measure(const Action& action) {
  const DeviceMemory& memory = parts_.memory;
  const StageMemory& stage = this->stage(action.stage);
  const std::int64_t size = stage.parameters_of(action.piece);
  const real* const sum = gradient(action.source, action);
  if (action.piece >= 0) {
    square_blocks(for_numbers(size), sum, size, block_sums(action));
    return;
  }
  const std::span<std::byte> workspace = memory.workspace(0);
  CAROUSEL_CHECK(std::ssize(workspace) >= norm_bytes(size), "{} bytes to measure {} numbers",
                 workspace.size(), size);
  auto* const sums = reinterpret_cast<double*>(workspace.data());
  square_blocks(for_numbers(size), sum, size, sums);
  find_norm(lane_->workers.one(), sums, norm_blocks(size), gradient_scale(),
            memory.norms() + action.stage);
}

/// The norm of a stage that is cut, from those of its blocks that are here.
void Executor::find_stage_norm(int stage) {
  find_norm(lane_->workers.one(), parts_.memory.block_sums(stage),
            norm_blocks(this->stage(stage).parameter_size), gradient_scale(),
            parts_.memory.norms() + stage);
}

/// Squares of the piece of a stage.
double* Executor::block_sums(const Action& action) const {
  return parts_.memory.block_sums(action.stage) +
         stage(action.stage).piece(action.piece).begin / norm_block;
}

/// What an update multiplies the gradient by; null: nothing.
const real* Executor::clip_factor(const Action& action) {
  const OptimizerConfig& optimizer = parts_.optimizer;
  real* const norms = parts_.memory.norms();
  if (norms == nullptr) return nullptr;
  real* const factor = parts_.memory.clip_factor();
  switch (optimizer.clipping()) {
    case Clipping::none:
      break;
    case Clipping::stage:
      if (action.piece < 0)
        measure(action);
      else
        find_stage_norm(action.stage);
      find_clip_factor(lane_->workers.one(), norms + action.stage, 1, optimizer.clip_stage_norm,
                       factor);
      return factor;
    case Clipping::model: {
      const int stages = parts_.schedule.rule().stages();
      for (int j = 0; action.piece >= 0 && j < stages; ++j) find_stage_norm(j);
      find_clip_factor(lane_->workers.one(), norms, stages, optimizer.clip_norm, factor);
      return factor;
    }
  }
  return nullptr;
}

/// Where a gradient buffer has the piece of a stage that an action is about.
real* Executor::gradient(int buffer, const Action& action) const {
  const bool whole = counts_.gradients[buffer].shard < 0;
  return parts_.memory.gradient(buffer) +
         (whole && action.piece >= 0 ? stage(action.stage).piece(action.piece).begin : 0);
}

/// Where the parameters of the piece are that stay on the device, as they are stored.
std::byte* Executor::piece(const Action& action, std::int64_t version) const {
  return parts_.memory.piece(stage(action.stage), action.stage, version, action.piece);
}

/// What an update reads and writes.
real* Executor::full_parameters(const Action& action, std::int64_t version) const {
  real* const full = parts_.memory.full_parameters(action.stage, version);
  return full != nullptr ? full + stage(action.stage).parameters_before(action.piece)
                         : reinterpret_cast<real*>(piece(action, version));
}

void Executor::update(const Action& action) {
  const DeviceMemory& memory = parts_.memory;
  const int j = action.stage;
  const StageMemory& stage = this->stage(j);
  const std::int64_t first = stage.piece(action.piece).begin;
  const std::int64_t size = stage.parameters_of(action.piece);
  const real* const sum = gradient(action.source, action);
  real* const next_full = full_parameters(action, action.version);
  real* states = memory.optimizer(j);
  if (states != nullptr) states += states_ * stage.parameters_before(action.piece);
  const bool averages = states != nullptr && parts_.optimizer.ema > 0;
  // What is rehearsed leaves it where reports will lie.
  std::uint64_t* const digest = rehearses_ ? reinterpret_cast<std::uint64_t*>(memory.report(0))
                                           : parts_.reports.digest(action.step, j);
  const real scale = gradient_scale();
  constexpr int vectors = 6;  // that a rule reads and writes, about
  carousel::update(for_numbers(vectors * size),
                   {parts_.optimizer, parts_.learning_rate(action.step), action.step}, stage,
                   {.first = first,
                    .size = size,
                    .theta = full_parameters(action, action.step),
                    .gradient_sum = sum,
                    .scale = scale,
                    .clip = clip_factor(action),
                    .states = states,
                    .average = averages ? states + (states_ - 1) * size : nullptr,
                    .next = next_full,
                    .digest = digest,
                    .adds_digest = action.piece >= stage.shards,
                    .workspace = memory.workspace(0)});
  store(action);
  if (action.piece <= 0) update_riders(action, sum + (stage.parameter_size - first), digest);
  if (!rehearses_ && action.piece < 0) parts_.on_update(lane_->exec, action.step, j, next_full);
}

/// Puts parameters of a version that the device updates, and with prediction what is read in their
/// place, where passes read them; to evaluate them, where passes read nothing else.
void Executor::store(const Action& action) {
  const int j = action.stage;
  const StageMemory& stage = this->stage(j);
  const DeviceMemory& memory = parts_.memory;
  const std::int64_t version = action.version;
  const std::int64_t first = stage.piece(action.piece).begin;
  const std::int64_t size = stage.parameters_of(action.piece);
  const real* const theta = full_parameters(action, version);
  const ParametersRead reads = counts_.reads_of(j);
  const bool evaluates = action.payload == Payload::parameters;
  if (reads == ParametersRead::predicted ? evaluates
                                         : memory.full_parameters(j, version) != nullptr)
    store_parameters(for_numbers(2 * size), stage.parameter_ranges, first, size, theta,
                     piece(action, version));
  if (reads == ParametersRead::theta || evaluates) return;
  store_predicted(
      for_numbers(3 * size), stage.parameter_ranges, first, size, theta,
      full_parameters(action, version - 1), static_cast<real>(parts_.schedule.parallel().predict),
      reads == ParametersRead::both ? memory.predicted(j, version) : piece(action, version));
}

/// What lies behind the parameters of a stage: running statistics, and what rides.
void Executor::update_riders(const Action& action, const real* sums, std::uint64_t* digest) {
  const int j = action.stage;
  const StageMemory& stage = this->stage(j);
  const auto numbers = [](std::byte* bytes) { return reinterpret_cast<real*>(bytes); };
  std::byte* const next = piece(action, action.version);
  const std::int64_t buffers = stage.stored_buffers_in(action.piece);
  update_statistics(for_numbers(3 * stage.buffer_size), stage.statistics,
                    {.running = numbers(piece(action, action.step) + buffers),
                     .batch_sums = sums,
                     .scale = gradient_scale(),
                     .next = numbers(next + buffers),
                     .parameters = stage.parameter_size,
                     .digest = digest});
  real* const rider = numbers(next + stage.stored_rider_in(action.piece));
  copy_rider(lane_->workers.one(), stage.sums, sums + stage.buffer_size, rider);
  // It goes with what is read in place of parameters, too.
  if (counts_.reads_of(j) == ParametersRead::both)
    copy<MemorySpace, MemorySpace>(
        lane_->exec, parts_.memory.predicted(j, action.version) + buffers, next + buffers,
        static_cast<std::size_t>(stage.stored_bytes - buffers));
  if (rehearses_ || j > 0) return;
  parts_.reports.learn(lane_->workers.one(), action.step, rider, *first_step_);
}

}  // namespace carousel
