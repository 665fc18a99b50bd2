// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
// The executor's half that speaks with other devices: where a message lies, its start, the wait for
// it, and what it brings beside its numbers.
#include <algorithm>

#include "core/base/check.hpp"
#include "core/base/copy.hpp"
#include "core/train/clipping.hpp"
#include "core/train/executor.hpp"
#include "core/train/rider.hpp"

namespace carousel {
namespace {

Collective::Kind collective_kind(ActionKind kind) {
  if (kind == ActionKind::broadcast) return Collective::Kind::broadcast;
  return kind == ActionKind::reduce ? Collective::Kind::reduce : Collective::Kind::all_reduce;
}

/// Messages of one tag between two devices keep their order, which is that of the steps.
int tag_of(const Action& action, int stages) {
  return static_cast<int>(action.payload) * (stages + 1) + action.stage + 1;
}

}  // namespace

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
    case Payload::gradient:
    case Payload::total:
      return bytes(memory.gradient(std::max(action.buffer, 0)));
    case Payload::parameters:
      return bytes(memory.parameters(j, action.version));
    case Payload::forward_copy:
    case Payload::backward_copy:
      return bytes(counts_.owns(j) ? memory.parameters(j, action.version)
                                   : memory.travelling(action.buffer));
    case Payload::norms:
      return bytes(memory.norms());
    case Payload::sums:
      return bytes(sends ? memory.parameters(0, action.version) + stage(0).rider_offset()
                         : memory.gradient(action.buffer));
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
  const std::vector<int>& owned = counts_.owned;
  const int first = owned.empty() ? 0 : owned.front();
  const int end = first + static_cast<int>(owned.size());
  CAROUSEL_CHECK(owned.empty() || owned.back() + 1 == end, "stages {} to {} are {}", first,
                 owned.back(), owned.size());
  carousel::leave_own_norms(exec_, parts_.memory.norms(), parts_.schedule.rule().stages(), first,
                            end);
}

void Executor::start_message(const Action& action) {
  const double now = parts_.seconds();
  if (is_collective(action)) {
    if (action.payload == Payload::norms) leave_own_norms();
    finish(exec_, "carousel::train::before_collective");
    const Collective collective{.kind = collective_kind(action.kind),
                                .group = action.group,
                                .root = action.peer,
                                .data = reinterpret_cast<real*>(payload(action)),
                                .count = static_cast<std::size_t>(action.bytes) / sizeof(real),
                                .round = action.round.number()};
    pending_.push_back({action, parts_.transport.join(collective), now});
    return;
  }
  const Message message{action.peer, tag_of(action, parts_.schedule.rule().stages()),
                        payload(action), static_cast<std::size_t>(action.bytes),
                        action.round.number()};
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
  if (action.direction != Direction::send) arrive(action);
  return true;
}

/// Looks at what rides with a message that is complete.
void Executor::arrive(const Action& action) {
  const auto behind = [&](std::byte* data) {
    return reinterpret_cast<real*>(data) + stage(0).rider_offset();
  };
  switch (action.payload) {
    case Payload::sums:
      return learn(action.version - 1, reinterpret_cast<real*>(payload(action)));
    case Payload::parameters:
    case Payload::forward_copy:
    case Payload::backward_copy:
      if (training_ && action.stage == 0) learn(action.version - 1, behind(payload(action)));
      return;
    case Payload::activations: {
      if (!training_) return;
      const Ages ages = read_ages(exec_, rider_of(payload(action), action.bytes));
      if (ages.divergence >= 0) diverge_at(action.step - ages.divergence);
      if (ages.pause >= 0) pause_at(action.step - ages.pause);
      return;
    }
    default:
      return;
  }
}

}  // namespace carousel
