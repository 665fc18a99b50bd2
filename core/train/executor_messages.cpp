// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
// The executor's half that speaks with other devices: where a message lies, and what it brings
// beside its numbers.
#include <algorithm>

#include "core/base/check.hpp"
#include "core/base/copy.hpp"
#include "core/train/clipping.hpp"
#include "core/train/executor.hpp"
#include "core/train/kernels.hpp"
#include "core/train/rider.hpp"

namespace carousel {

/// The piece that comes first in memory of all that a message or collective is about.
int Executor::first_of(const Action& action) const {
  const bool chunk = is_collective(action) && action.piece >= 0;
  return chunk ? action.piece + stage(action.stage).shards - 1 : action.piece;
}

real* Executor::summed(const Action& action) const {
  return parts_.memory.gradient(action.source) + stage(action.stage).piece(first_of(action)).begin;
}

/// What rides with parameters of a stage that stay on the device, behind its first piece.
std::byte* Executor::rider_of_stage(const Action& action) const {
  const StageMemory& memory = stage(action.stage);
  const int first = memory.pieces.empty() ? -1 : 0;
  return parts_.memory.piece(memory, action.stage, action.version, first) +
         memory.stored_rider_in(first);
}

std::byte* Executor::payload(const Action& action) const {
  const DeviceMemory& memory = parts_.memory;
  const int j = action.stage;
  const bool sends = action.direction == Direction::send;
  const auto bytes = [](auto* data) { return reinterpret_cast<std::byte*>(data); };
  switch (action.payload) {
    case Payload::activations:
      if (!sends) return memory.landing(action.buffer);
      return memory.frame(j - 1, action.buffer) + stage(j - 1).leaving_offset;
    case Payload::d_activations:
      return memory.boundary(j, action.buffer);
    case Payload::part:
    case Payload::gradient:
    case Payload::total:
      // All stages in one sum begin with the first buffer.
      return bytes(gradient(std::max(action.buffer, 0), action));
    case Payload::parameters:
      return memory.parameters(j, action.version) + stage(j).piece(first_of(action)).stored_begin;
    case Payload::predicted:
      return memory.predicted(j, action.version) + stage(j).piece(first_of(action)).stored_begin;
    case Payload::forward_copy:
    case Payload::backward_copy:
      if (counts_.owns(j)) return memory.parameters(j, action.version);
      if (parts_.schedule.leaves_from_kept(parts_.device, action))
        return piece(action, action.version);
      return memory.travelling(action.buffer) + stage(j).piece(first_of(action)).stored_begin;
    case Payload::norms:
      return action.piece < 0 ? bytes(memory.norms()) : bytes(block_sums(action));
    case Payload::sums:
      return sends ? rider_of_stage(action) : bytes(memory.gradient(action.buffer));
    case Payload::metrics:
      // On device 0 the results of the senders lie one after the other behind its own.
      return bytes(memory.evaluation(sends ? 0 : action.buffer));
    case Payload::none:
    case Payload::token:
      break;
  }
  return nullptr;  // carries nothing
}

/// What others have measured comes with the sum, or came with that of the step before.
void Executor::leave_own_norms() {
  const std::vector<bool>& measured = counts_.optimizer;
  const auto begin = std::ranges::find(measured, true);
  const auto behind = std::find(begin, measured.end(), false);
  CAROUSEL_CHECK(std::find(behind, measured.end(), true) == measured.end(),
                 "stages of a device do not follow each other");
  const auto first = static_cast<int>(begin - measured.begin());
  const auto end = static_cast<int>(behind - measured.begin());
  carousel::leave_own_norms(lane_->workers.one(), parts_.memory.norms(),
                            parts_.schedule.rule().stages(), first, end);
}

void Executor::arrive(const Action& wait, Request request) {
  if (record_ != nullptr) {
    MessageRecord* const row =
        parts_.recorder.add({.kind = to_string(wait.payload),
                             .direction = wait.direction == Direction::send ? "send" : "receive",
                             .step = wait.step,
                             .stage = wait.stage,
                             .piece = wait.piece,
                             .micro_batch = wait.micro_batch,
                             .peer = wait.peer,
                             .bytes = wait.bytes});
    clock_.stamp(lane_->exec, &row->waited);
    note_times(lane_->workers.one(), parts_.communication.times(request), &record_->begin, row);
  }
  if (wait.direction != Direction::send) look_at(wait);
  end();
}

/// Looks at what rides with a message that is complete.
void Executor::look_at(const Action& arrived) {
  const Reports& reports = parts_.reports;
  const auto numbers = [](std::byte* data) { return reinterpret_cast<const real*>(data); };
  switch (arrived.payload) {
    case Payload::sums:
      return reports.learn(lane_->workers.one(), arrived.version - 1, numbers(payload(arrived)),
                           first_step_.value_or(arrived.version));
    case Payload::predicted:
      // What comes beside parameters comes behind them.
      if (counts_.reads_of(arrived.stage) == ParametersRead::both) return;
      [[fallthrough]];
    case Payload::parameters:
    case Payload::forward_copy:
    case Payload::backward_copy:
      // The first piece has what rides with the stage.
      if (!first_step_ || arrived.stage != 0 || arrived.piece > 0) return;
      return reports.learn(lane_->workers.one(), arrived.version - 1,
                           numbers(payload(arrived) + stage(0).stored_rider_in(first_of(arrived))),
                           *first_step_);
    case Payload::activations:
      if (!first_step_) return;
      return read_ages(lane_->workers.one(), rider_of(payload(arrived), arrived.bytes, ages_size),
                       arrived.step, *first_step_, reports.decisions());
    default:
      return;
  }
}

}  // namespace carousel
