// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
// What messages and collectives ask of a symbolic device, and bring to it.
#include <algorithm>

#include "core/plan/pieces.hpp"
#include "core/proof/symbolic_device.hpp"

namespace carousel {

/// The buffer a message of this device lands in or leaves from; null for tokens.
SymbolicDevice::Pending* SymbolicDevice::pending(const Action& action) {
  switch (action.payload) {
    case Payload::parameters:
    case Payload::predicted:
      return owns(action.stage) ? &message_copy(action).pending : nullptr;
    case Payload::forward_copy:
    case Payload::backward_copy:
      return &passing(action, action.payload).pending;
    case Payload::part:
    case Payload::gradient:
    case Payload::total:
      return &gradient(action.buffer, action).pending;
    case Payload::norms:
      return &piece_norm(action).pending;
    case Payload::activations:
      return action.direction == Direction::send
                 ? &in_turn(frames_[action.stage - 1], action).pending
                 : &in_turn(landings_, action).pending;
    case Payload::d_activations:
      return &in_turn(boundaries_[action.stage], action).pending;
    default:
      return nullptr;
  }
}

void SymbolicDevice::post(const Action& action) {
  if (action.payload == Payload::token) return;
  const bool copies = passes_by(action);
  const bool stay = action.payload == Payload::parameters || action.payload == Payload::predicted;
  demand(!stay || owns(action.stage), "lands nowhere");
  demand(!stay || is_read(action), "gets parameters that it does not read");
  demand(!copies || !owns(action.stage), "gets a copy of what it owns");
  if (!fine()) return;
  // Whoever left out an update would go on with the momentum of the step before.
  demand(!stay || !makes(action), "gets parameters that it must make itself");
  if (copies) enter(action, action.piece);
  Pending* buffer = pending(action);
  demand(buffer->idle(), "lands in a buffer that is in use");
  if (stay)
    demand(message_copy(action).version < action.version,
           "lands on a version that is here already");
  if (action.payload == Payload::activations)
    demand(in_turn(landings_, action).who == Occupant{}, "lands on activations in use");
  if (action.payload == Payload::d_activations)
    demand(in_turn(boundaries_[action.stage], action).who == Occupant{},
           "lands on a gradient of activations in use");
  if (action.payload == Payload::norms) piece_norm(action).step = -1;
  // A gradient that is overwritten here and still needed is missed where it is needed, and so are
  // parameters that pass by.
  buffer->landing = true;
}

void SymbolicDevice::send(const Action& action) {
  constexpr const char* missing = "what it sends is not here";
  const Occupant self{action.step, action.micro_batch};
  switch (action.payload) {
    case Payload::parameters:
    case Payload::predicted: {
      demand(owns(action.stage) && is_read(action), missing);
      if (!fine()) return;
      const ParameterCopy& copy = message_copy(action);
      demand(copy.version == action.version && !copy.pending.landing, missing);
      break;
    }
    case Payload::forward_copy:
    case Payload::backward_copy: {
      const ParameterCopy& copy = passing(action, action.payload);
      demand(copy.version == action.version && !copy.pending.landing, missing);
      demand(stays(action.stage, action.piece) || is_of(copy, action, action.payload), missing);
      break;
    }
    case Payload::part:
    case Payload::gradient:
    case Payload::total:
      demand(holds(gradient(action.buffer, action), action), missing);
      break;
    case Payload::norms:
      demand(piece_norm(action).step == action.step, missing);
      break;
    case Payload::activations:
      demand(in_turn(frames_[action.stage - 1], action).holds(self), missing);
      break;
    case Payload::d_activations:
      demand(in_turn(boundaries_[action.stage], action).holds(self), missing);
      break;
    default:
      token(action);
  }
  if (!fine()) return;
  if (Pending* buffer = pending(action); buffer != nullptr) ++buffer->sends;
}

Statement SymbolicDevice::statement(const Action& send) {
  Statement result;
  if (send.payload == Payload::activations)
    result.decision = in_turn(frames_[send.stage - 1], send).decision;
  if (send.payload == Payload::part || send.payload == Payload::gradient ||
      send.payload == Payload::total)
    result.summed = gradient(send.buffer, send).summed;
  return result;
}

void SymbolicDevice::collective(const Action& action) {
  const bool cyclic = parallel_.rule != RuleKind::dp;
  if (action.payload == Payload::norms) {
    // Others' norms of the step before give way to zeros.
    for (int j = 0; j < parallel_.stages; ++j)
      demand(!counts_.optimizer[j] || norms_[j] == action.step,
             "tells a norm that is not measured");
    demand(!norms_travel_, "tells norms that are on their way");
    norms_travel_ = true;
    return;
  }
  if (action.kind == ActionKind::broadcast) {
    ParameterCopy& copy = broadcast_copy(action);
    if (action.peer == device_) {
      demand(owns(action.stage) && copy.version == action.version, "what it sends is not here");
      ++copy.pending.sends;
      return;
    }
    if (action.payload == Payload::parameters) {
      demand(!counts_.optimizer[action.stage], "gets parameters that it must make itself");
      demand(copy.version < action.version, "lands on a version that is here already");
    } else {
      demand(!owns(action.stage), "gets a copy of what it owns");
    }
    demand(copy.pending.idle(), "lands in a buffer that is in use");
    copy.pending.landing = true;
    return;
  }
  const int first = action.stage < 0 ? 0 : action.stage;
  const int last = action.stage < 0 ? parallel_.stages - 1 : action.stage;
  const std::vector<int>& devices = schedule_.groups()[action.group];
  const auto place = std::ranges::find(devices, device_) - devices.begin();
  const int first_own =
      (cyclic ? first_of_term(action.micro_batch) : 0) + static_cast<int>(place) * parallel_.passes;
  const MicroBatchSet own(first_own, first_own + parallel_.passes - 1);
  for (int j = first; j <= last; ++j) {
    GradientSum& buffer = gradients_[action.stage < 0 ? j : action.buffer][0];
    demand(buffer.step == action.step && buffer.stage == j && buffer.summed == own &&
               buffer.pending.idle(),
           "not all gradients are here");
    buffer.pending.landing = true;
  }
}

void SymbolicDevice::finish_collective(const Action& action) {
  if (action.payload == Payload::norms) {
    norms_.assign(parallel_.stages, action.step);
    norms_travel_ = false;
    return;
  }
  if (action.payload == Payload::parameters || passes_by(action)) {
    ParameterCopy& copy = broadcast_copy(action);
    if (action.peer == device_)
      --copy.pending.sends;
    else if (action.payload == Payload::parameters)
      copy = {action.version, {}};
    else
      copy = {action.version, {}, action.stage, action.payload, action.step};
    if (action.stage == 0) learn(action.version - 1);
    return;
  }
  const int last =
      parallel_.rule == RuleKind::dp ? parallel_.micro_batches - 1 : action.micro_batch;
  const MicroBatchSet all(first_of_term(last), last);
  if (action.stage < 0) {
    for (int j = 0; j < parallel_.stages; ++j) gradients_[j][0] = {action.step, j, -1, all, {}};
    return;
  }
  const bool gets = action.peer < 0 || action.peer == device_;
  gradients_[action.buffer][0] =
      gets ? GradientSum{action.step, action.stage, -1, all, {}} : GradientSum{};
}

template <class Visit>
void SymbolicDevice::for_each_of_chunk(const Action& action, const Visit& visit) {
  const int shards = shards_of(parallel_);
  for (int p = action.piece; p < action.piece + shards; ++p) {
    if (exists(action.stage, p)) visit(p, p % shards == counts_.shard);
  }
}

SymbolicDevice::ParameterCopy& SymbolicDevice::gathered(const Action& action, int piece) {
  return action.payload == Payload::parameters ? copy_of(action.stage, action.version, piece)
                                               : passing_buffer(action, action.payload)[piece];
}

void SymbolicDevice::chunk(const Action& action) {
  const bool passes = action.payload != Payload::parameters;
  const int first_own = device_ * parallel_.passes;
  const MicroBatchSet own_gradient(first_own, first_own + parallel_.passes - 1);
  bool entered = false;  // once for all pieces, of which there may be thousands
  for_each_of_chunk(action, [&](int piece, bool own) {
    if (action.kind == ActionKind::reduce_scatter) {
      GradientSum& from = gradients_[action.source][piece];
      demand(from.step == action.step && from.stage == action.stage && from.piece == piece &&
                 from.summed == own_gradient && !from.pending.landing,
             "not all gradients are here");
      ++from.pending.sends;
      if (!own) return;
      Pending& to = gradients_[action.buffer][0].pending;
      demand(to.idle(), "lands in a buffer that is in use");
      to.landing = true;
      return;
    }
    ParameterCopy& copy = gathered(action, piece);
    if (own) {
      demand(copy.version == action.version && !copy.pending.landing &&
                 (!passes || is_of(copy, action, action.payload)),
             "what it sends is not here");
      ++copy.pending.sends;
      return;
    }
    if (passes) {
      if (!entered) enter(action);
      entered = true;
      demand_room(copy);
    }
    demand(copy.pending.idle(), "lands in a buffer that is in use");
    demand(passes || copy.version < action.version, "lands on a version that is here already");
    copy.pending.landing = true;
  });
}

void SymbolicDevice::finish_chunk(const Action& action) {
  const int first = first_of_term(action.micro_batch < 0 ? 0 : action.micro_batch);
  for_each_of_chunk(action, [&](int piece, bool own) {
    if (action.payload == Payload::part) {
      --gradients_[action.source][piece].pending.sends;
      if (own)
        gradients_[action.buffer][0] = {
            action.step, action.stage, piece, MicroBatchSet(first, action.micro_batch), {}};
      return;
    }
    ParameterCopy& copy = gathered(action, piece);
    if (own)
      --copy.pending.sends;
    else if (action.payload == Payload::parameters)
      copy = {action.version, {}};
    else
      copy = {action.version, {}, action.stage, action.payload, action.step};
    if (action.stage == 0 && piece == 0) learn(action.version - 1);
  });
}

const char* SymbolicDevice::finish(const Action& action, const Statement& landed) {
  if (is_collective(action) && action.piece >= 0) {
    finish_chunk(action);
  } else if (is_collective(action)) {
    finish_collective(action);
  } else if (action.direction != Direction::send) {
    land(action, landed);
  } else {
    if (Pending* buffer = pending(action); buffer != nullptr) --buffer->sends;
    if (action.payload == Payload::d_activations)
      in_turn(boundaries_[action.stage], action).who = {};
  }
  return error_;
}

void SymbolicDevice::land(const Action& action, const Statement& landed) {
  const Occupant self{action.step, action.micro_batch};
  switch (action.payload) {
    case Payload::token:
      token_ = action.step;
      break;
    case Payload::parameters:
    case Payload::predicted:
      message_copy(action) = {action.version, {}};
      // What comes beside parameters brings nothing new.
      if (action.stage == 0 && action.piece <= 0 &&
          (action.payload == Payload::parameters ||
           counts_.reads_of(0) == ParametersRead::predicted))
        learn(action.version - 1);
      break;
    case Payload::forward_copy:
    case Payload::backward_copy:
      passing(action, action.payload) = {
          action.version, {}, action.stage, action.payload, action.step};
      if (action.stage == 0) learn(action.version - 1);
      break;
    case Payload::activations:
      in_turn(landings_, action) = {self, {}};
      known_decision_ = std::max(known_decision_, landed.decision);
      break;
    case Payload::d_activations:
      in_turn(boundaries_[action.stage], action) = {self, {}};
      break;
    case Payload::norms:
      piece_norm(action) = {action.step, {}};
      break;
    default:
      gradient(action.buffer, action) = {
          action.step, action.stage, action.piece, landed.summed, {}};
  }
}

}  // namespace carousel
