// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/action_fields.hpp"

#include <algorithm>

namespace carousel {
namespace {

/// Copies the numbers that the action may have, one by one, into a bare action; whatever then
/// differs from the action has no meaning there.
class Fields {
 public:
  Fields(const Schedule& schedule, const Segment& segment, int device, const Action& action)
      : schedule_(schedule),
        counts_(schedule.buffers(device)),
        segment_(segment),
        device_(device),
        action_(action),
        bare_{.kind = action.kind, .time = action.time, .step = action.step} {}

  const char* compute() {
    switch (action_.kind) {
      case ActionKind::load:
        micro_batch();
        bare_.stage = 0;
        turn(&Action::buffer, counts_.inputs);
        break;
      case ActionKind::forward:
        version();
        [[fallthrough]];
      case ActionKind::release:
        micro_batch();
        if (stage()) turn(&Action::buffer, counts_.frames[action_.stage]);
        break;
      case ActionKind::backward:
        version();
        micro_batch();
        if (stage()) turn(&Action::source, counts_.frames[action_.stage]);
        gradient(&Action::buffer);
        break;
      case ActionKind::accumulate:
        micro_batch();
        stage();
        gradient(&Action::buffer);
        gradient(&Action::source);
        break;
      case ActionKind::update:
        version();
        stage();
        gradient(&Action::source);
        break;
      default:
        demand(false, "does not belong into training");
    }
    return verdict();
  }

  const char* message() {
    const Direction direction =
        action_.kind == ActionKind::send ? Direction::send : Direction::receive;
    demand(action_.kind == ActionKind::wait || action_.direction == direction,
           "goes the wrong way");
    bare_.direction = action_.direction;
    bare_.payload = action_.payload;
    bare_.peer = action_.peer;
    demand(within(action_.peer, schedule_.devices()) && action_.peer != device_, "has no peer");
    switch (action_.payload) {
      case Payload::token:
        micro_batch();
        break;
      case Payload::gradient:
      case Payload::total:
        micro_batch();
        if (stage()) bare_.bytes = schedule_.message_bytes(action_.stage);
        gradient(&Action::buffer);
        break;
      case Payload::parameters:
        version();
        if (stage()) bare_.bytes = schedule_.message_bytes(action_.stage);
        break;
      default:
        demand(false, "does not belong into training");
    }
    return verdict();
  }

  const char* all_reduce() {
    bare_.payload = Payload::total;
    for (int j = 0; j < schedule_.rule().stages(); ++j) bare_.bytes += schedule_.message_bytes(j);
    return verdict();
  }

 private:
  static bool within(int value, int end) { return value >= 0 && value < end; }

  bool demand(bool condition, const char* what) {
    if (!condition && error_ == nullptr) error_ = what;
    return condition;
  }

  const char* verdict() {
    demand(bare_ == action_, "has numbers that do not belong to it");
    return error_;
  }

  void version() { bare_.version = action_.version; }

  void micro_batch() {
    bare_.micro_batch = action_.micro_batch;
    demand(within(action_.micro_batch, schedule_.rule().micro_batches()),
           "names a micro-batch that is not");
  }

  bool stage() {
    bare_.stage = action_.stage;
    return demand(within(action_.stage, schedule_.rule().stages()), "names a stage that is not");
  }

  void turn(int Action::*buffer, int count) {
    bare_.*buffer = schedule_.round_robin(device_, action_.step - segment_.first,
                                          std::max(action_.micro_batch, 0), count);
    demand(action_.*buffer == bare_.*buffer, "names a buffer whose turn it is not");
  }

  void gradient(int Action::*buffer) {
    bare_.*buffer = action_.*buffer;
    if (!demand(within(action_.*buffer, static_cast<int>(counts_.gradients.size())),
                "names a gradient buffer that is not"))
      return;
    const std::vector<int>& stages = counts_.gradients[action_.*buffer];
    demand(std::ranges::find(stages, action_.stage) != stages.end(),
           "names a gradient buffer that is not for its stage");
  }

  const Schedule& schedule_;
  const BufferCounts& counts_;
  Segment segment_;
  int device_;
  const Action& action_;
  Action bare_;
  const char* error_ = nullptr;
};

}  // namespace

const char* misnamed_field(const Schedule& schedule, const Segment& segment, int device,
                           const Action& action) {
  if (action.step < segment.first || action.step >= segment.last) return "is outside the segment";
  Fields fields(schedule, segment, device, action);
  if (collective(action)) return fields.all_reduce();
  const bool message = action.kind == ActionKind::post || action.kind == ActionKind::send ||
                       action.kind == ActionKind::wait;
  return message ? fields.message() : fields.compute();
}

}  // namespace carousel
