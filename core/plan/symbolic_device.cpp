// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/symbolic_device.hpp"

#include <algorithm>

#include "core/plan/action_fields.hpp"

namespace carousel {
namespace {

/// The rule once more, straight from the paper's table and not by way of Rule.
std::int64_t slot_by_rule(const ParallelConfig& parallel, std::int64_t i) {
  return parallel.stages * i / parallel.micro_batches;
}

std::int64_t version_by_rule(const ParallelConfig& parallel, int i, int j, std::int64_t t) {
  if (parallel.rule == RuleKind::dp) return t;
  if (parallel.rule == RuleKind::cdp_v1) return t - 1;
  const std::int64_t last = slot_by_rule(parallel, parallel.micro_batches - 1);
  return slot_by_rule(parallel, i) + j >= last + parallel.slack ? t : t - 1;
}

/// Whether devices pace each other by tokens.
bool paced(const ParallelConfig& parallel) {
  return parallel.rule != RuleKind::dp && parallel.placement == Placement::replicated;
}

}  // namespace

SymbolicDevice::SymbolicDevice(const Schedule& schedule, const Segment& segment, int device)
    : schedule_(schedule),
      parallel_(schedule.parallel()),
      segment_(segment),
      device_(device),
      known_decision_(segment.first - 1) {
  const BufferCounts& counts = schedule.buffers(device);
  for (int j = 0; j < parallel_.stages; ++j) {
    parameters_.emplace_back(counts.parameter_copies);
    for (std::int64_t v = segment.first - counts.parameter_copies + 1; v <= segment.first; ++v)
      copy_of(j, v).version = v;
    frames_.emplace_back(counts.frames[j]);
    boundaries_.emplace_back(counts.boundaries[j]);
  }
  gradients_.resize(counts.gradients.size());
  inputs_.resize(counts.inputs);
}

const char* SymbolicDevice::execute(const Action& action) {
  error_ = misnamed_field(schedule_, segment_, device_, action);
  demand(action.step <= known_decision_ + 2, "runs before step - 2 is known to be complete");
  if (!fine()) return error_;
  switch (action.kind) {
    case ActionKind::load:
      load(action);
      break;
    case ActionKind::forward:
      forward(action);
      break;
    case ActionKind::backward:
      backward(action);
      break;
    case ActionKind::accumulate:
      accumulate(action);
      break;
    case ActionKind::update:
      update(action);
      break;
    case ActionKind::release:
      release(action);
      break;
    case ActionKind::post:
      post(action);
      break;
    case ActionKind::send:
      send(action);
      break;
    case ActionKind::all_reduce:
      all_reduce(action);
      break;
    case ActionKind::wait:
    case ActionKind::save:
      break;
  }
  return error_;
}

SymbolicDevice::ParameterCopy& SymbolicDevice::copy_of(int stage, std::int64_t version) {
  const auto copies = static_cast<std::int64_t>(parameters_[stage].size());
  return parameters_[stage][((version % copies) + copies) % copies];
}

/// The executor takes these buffers in turn; so must whoever checks its lists.
SymbolicDevice::Occupant& SymbolicDevice::in_turn(std::vector<Occupant>& buffers,
                                                  const Action& action) {
  return buffers[schedule_.round_robin(device_, action.step - segment_.first, action.micro_batch,
                                       static_cast<int>(buffers.size()))];
}

SymbolicDevice::Occupant& SymbolicDevice::input_of(const Action& action) {
  return in_turn(inputs_, action);
}

SymbolicDevice::Occupant& SymbolicDevice::frame_of(int stage, const Action& action) {
  return in_turn(frames_[stage], action);
}

SymbolicDevice::Occupant& SymbolicDevice::boundary_of(int stage, const Action& action) {
  return in_turn(boundaries_[stage], action);
}

bool SymbolicDevice::holds(const GradientBuffer& buffer, const Action& action, int last) const {
  return !buffer.pending.landing && buffer.step == action.step && buffer.stage == action.stage &&
         buffer.first == 0 && buffer.last == last;
}

void SymbolicDevice::load(const Action& action) {
  demand(input_of(action) == Occupant{}, "overwrites images in use");
  input_of(action) = {action.step, action.micro_batch};
}

/// Both passes read the version of the rule, from a copy that nothing is landing in.
void SymbolicDevice::demand_version(const Action& action) {
  const std::int64_t version =
      version_by_rule(parallel_, action.micro_batch, action.stage, action.step);
  const ParameterCopy& copy = copy_of(action.stage, version);
  demand(action.version == version, "does not use the version of the rule");
  demand(copy.version == version && !copy.pending.landing, "its parameters are not here");
}

void SymbolicDevice::forward(const Action& action) {
  const Occupant self{action.step, action.micro_batch};
  const int j = action.stage;
  demand_version(action);
  demand(progress_[self].forwards++ == j, "is not the next forward of this micro-batch");
  demand(input_of(action) == self, "its images and labels are not here");
  demand(j == 0 || frame_of(j - 1, action) == self, "its input is not here");
  demand(frame_of(j, action) == Occupant{}, "overwrites activations in use");
  const bool waits_for_token = paced(parallel_) && action.micro_batch > 0 && j == 0;
  demand(!waits_for_token || token_ == action.step, "begins without the token of its step");
  frame_of(j, action) = self;
}

void SymbolicDevice::backward(const Action& action) {
  const Occupant self{action.step, action.micro_batch};
  const int j = action.stage;
  const int last = parallel_.stages - 1;
  demand_version(action);
  demand(progress_[self].forwards == parallel_.stages, "runs before forward is complete");
  demand(progress_[self].backwards++ == last - j, "is not the next backward of this micro-batch");
  demand(frame_of(j, action) == self, "its activations are not in that frame");
  demand(input_of(action) == self, "its images and labels are gone");
  demand(j == 0 || frame_of(j - 1, action) == self, "its input is gone");
  if (j < last) {
    demand(boundary_of(j, action) == self, "the gradient of its output is not here");
    boundary_of(j, action) = {};
  }
  if (j > 0) {
    demand(boundary_of(j - 1, action) == Occupant{}, "overwrites a gradient of activations");
    boundary_of(j - 1, action) = self;
  }
  GradientBuffer& gradient = gradients_[action.buffer];
  demand(gradient.pending.idle(), "overwrites a gradient that is being sent or received");
  gradient = {action.step, j, action.micro_batch, action.micro_batch, {}};
}

void SymbolicDevice::accumulate(const Action& action) {
  GradientBuffer& to = gradients_[action.buffer];
  GradientBuffer& from = gradients_[action.source];
  demand(to.pending.idle(), "overwrites a gradient that is being sent or received");
  demand(!from.pending.landing, "reads a gradient that has not landed");
  const GradientBuffer& low = to.first <= from.first ? to : from;
  const GradientBuffer& high = to.first <= from.first ? from : to;
  demand(low.step == action.step && high.step == action.step, "adds gradients of another step");
  demand(low.stage == action.stage && high.stage == action.stage, "adds another stage");
  demand(low.first == 0 && high.first == high.last && low.last + 1 == high.first,
         "does not add in index order");
  demand(high.last == action.micro_batch, "adds another micro-batch than it says");
  to = {action.step, action.stage, 0, high.last, {}};
  from.step = -1;  // added once
}

void SymbolicDevice::update(const Action& action) {
  const int j = action.stage;
  demand(schedule_.buffers(device_).optimizer[j], "has no optimizer state here");
  demand(holds(gradients_[action.source], action, parallel_.micro_batches - 1),
         "its gradient is not complete");
  demand(action.version == action.step + 1, "does not make the next version");
  const ParameterCopy& old = copy_of(j, action.step);
  demand(old.version == action.step && !old.pending.landing, "its parameters are not here");
  ParameterCopy& next = copy_of(j, action.version);
  demand(next.version <= action.step, "makes a version that is here already");
  demand(next.pending.idle(), "overwrites parameters that are being sent or received");
  next.version = action.version;
  if (j == 0) known_decision_ = action.step;
}

void SymbolicDevice::release(const Action& action) {
  const Occupant self{action.step, action.micro_batch};
  demand(frame_of(action.stage, action) == self, "releases activations that are not there");
  demand(progress_[self].backwards >= parallel_.stages - action.stage, "releases before backward");
  frame_of(action.stage, action) = {};
  if (action.stage > 0) return;
  demand(input_of(action) == self, "releases images that are not there");
  input_of(action) = {};
}

/// The buffer a message of this device lands in or leaves from; null for tokens.
SymbolicDevice::Pending* SymbolicDevice::pending(const Action& action) {
  if (action.payload == Payload::parameters) return &copy_of(action.stage, action.version).pending;
  if (action.payload == Payload::gradient || action.payload == Payload::total)
    return &gradients_[action.buffer].pending;
  return nullptr;
}

void SymbolicDevice::post(const Action& action) {
  Pending* buffer = pending(action);
  if (buffer == nullptr) return;
  demand(buffer->idle(), "lands in a buffer that is in use");
  if (action.payload == Payload::parameters) {
    demand(copy_of(action.stage, action.version).version < action.version,
           "lands on a version that is here already");
  }
  // A gradient that is overwritten here and still needed is missed where it is needed.
  buffer->landing = true;
}

void SymbolicDevice::send(const Action& action) {
  switch (action.payload) {
    case Payload::parameters: {
      const ParameterCopy& copy = copy_of(action.stage, action.version);
      demand(copy.version == action.version && !copy.pending.landing, "what it sends is not here");
      break;
    }
    case Payload::gradient:
      demand(holds(gradients_[action.buffer], action, action.micro_batch),
             "what it sends is not here");
      break;
    case Payload::total:
      demand(holds(gradients_[action.buffer], action, parallel_.micro_batches - 1),
             "what it sends is not here");
      break;
    default: {
      const int i = action.micro_batch;
      const std::int64_t ahead =
          i > 0 ? 2 * (slot_by_rule(parallel_, i) - slot_by_rule(parallel_, i - 1)) : -1;
      const Progress& before = progress_[{action.step, i - 1}];
      demand(before.forwards + before.backwards == ahead, "paces the next device wrongly");
    }
  }
  if (Pending* buffer = pending(action); buffer != nullptr) ++buffer->sends;
}

void SymbolicDevice::all_reduce(const Action& action) {
  demand(parallel_.rule == RuleKind::dp, "is a collective in a cyclic rule");
  if (!fine()) return;
  for (int j = 0; j < parallel_.stages; ++j) {
    GradientBuffer& buffer = gradients_[j];
    demand(buffer.step == action.step && buffer.stage == j && buffer.first == device_ &&
               buffer.last == device_ && buffer.pending.idle(),
           "not all gradients are here");
    buffer.pending.landing = true;
  }
}

void SymbolicDevice::finish(const Action& action) {
  const int last = parallel_.micro_batches - 1;
  if (collective(action)) {
    for (int j = 0; j < parallel_.stages; ++j) gradients_[j] = {action.step, j, 0, last, {}};
    return;
  }
  if (action.direction == Direction::send) {
    if (Pending* buffer = pending(action); buffer != nullptr) --buffer->sends;
  } else if (action.payload == Payload::token) {
    token_ = action.step;
  } else if (action.payload == Payload::parameters) {
    copy_of(action.stage, action.version) = {action.version, {}};
    if (action.stage == 0) known_decision_ = action.version - 1;
  } else {
    const int through = action.payload == Payload::total ? last : action.micro_batch;
    gradients_[action.buffer] = {action.step, action.stage, 0, through, {}};
  }
}

const char* SymbolicDevice::at_the_end() {
  error_ = nullptr;
  const auto nobody = [](const Occupant& occupant) { return occupant == Occupant{}; };
  demand(std::ranges::all_of(inputs_, nobody), "images were never released");
  for (int j = 0; j < parallel_.stages; ++j) {
    demand(std::ranges::all_of(frames_[j], nobody), "activations were never released");
    // Updates and arrivals go from version to version, so that none was left out.
    for (std::int64_t back = 0; back < std::ssize(parameters_[j]); ++back)
      demand(copy_of(j, segment_.last - back).version == segment_.last - back,
             "parameters are not complete");
  }
  const std::int64_t steps = segment_.last - segment_.first;
  demand(std::ssize(progress_) == steps * schedule_.local_micro_batches(device_),
         "micro-batches are missing");
  for (const auto& [who, passes] : progress_)
    demand(passes.backwards == parallel_.stages, "a backward is missing");
  return error_;
}

}  // namespace carousel
