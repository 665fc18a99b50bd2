// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/proof/action_fields.hpp"

#include <algorithm>

#include "core/plan/pieces.hpp"

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
        bare_.stage = counts_.first_stage;
        turn(&Action::buffer, counts_.inputs);
        break;
      case ActionKind::copy:
        bare_.payload = action_.payload;
        demand(passes_by(action_), "copies something else than parameters");
        version();
        if (any_stage() && piece()) keeps_piece();
        bare_.buffer = schedule_.travelling(device_, action_.step - segment_.first, action_.payload,
                                            action_.stage);
        break;
      case ActionKind::forward:
        demand(action_.time >= 0, "runs before the segment begins");
        version();
        [[fallthrough]];
      case ActionKind::release:
        micro_batch();
        if (stage()) turn(&Action::buffer, counts_.frames[action_.stage]);
        break;
      case ActionKind::backward:
        demand(action_.time >= 0, "runs before the segment begins");
        version();
        micro_batch();
        if (stage()) turn(&Action::source, counts_.frames[action_.stage]);
        gradient(&Action::buffer);
        break;
      case ActionKind::accumulate:
        micro_batch();
        // A worker adds up whole gradients, of which it then sends pieces.
        if (stage() && !(action_.piece < 0 && both_whole())) piece();
        gradient(&Action::buffer);
        gradient(&Action::source);
        break;
      case ActionKind::measure:
        if (stage() && piece()) own_piece();
        gradient(&Action::source);
        if (error_ == nullptr)
          demand(action_.piece < 0
                     ? measures()
                     : schedule_.spec().pieces[action_.stage][action_.piece].norms > 0,
                 "measures what nobody asks for");
        break;
      case ActionKind::update:
        version();
        if (stage() && piece()) own_piece();
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
    const ScheduleSpec& spec = schedule_.spec();
    switch (action_.payload) {
      case Payload::token: {
        micro_batch();
        const int from = sends() ? device_ : action_.peer;
        const int to = sends() ? action_.peer : device_;
        demand(from + tokens_apart(schedule_.parallel()) == to &&
                   action_.micro_batch == to * schedule_.parallel().passes,
               "lets another than the next one begin");
        break;
      }
      case Payload::activations:
        micro_batch();
        if (cut(counts_.first_stage, counts_.last_stage + 1) &&
            demand(action_.stage > 0, "crosses another cut")) {
          bare_.bytes = spec.activation_bytes[action_.stage - 1];
          turn(&Action::buffer, counts_.frames[action_.stage - (sends() ? 1 : 0)]);
        }
        break;
      case Payload::d_activations:
        micro_batch();
        if (cut(counts_.last_stage, counts_.first_stage - 1)) {
          bare_.bytes = spec.d_activation_bytes[action_.stage];
          turn(&Action::buffer, counts_.boundaries[action_.stage]);
        }
        break;
      case Payload::part:
        demand(!spec.pieces.empty(), "sends a part, and stages go whole");
        [[fallthrough]];
      case Payload::gradient:
      case Payload::total:
        micro_batch();
        if (any_stage() && piece())
          bare_.bytes = action_.piece < 0 ? spec.message_bytes[action_.stage]
                                          : spec.pieces[action_.stage][action_.piece].gradients;
        gradient(&Action::buffer);
        break;
      case Payload::norms:
        if (demand(any_stage() && piece() && action_.piece >= 0, "does not belong into training")) {
          bare_.bytes = spec.pieces[action_.stage][action_.piece].norms;
          demand(bare_.bytes > 0, "tells norms that nobody asks for");
          demand(counts_.optimizer[action_.stage] || spec.norm_bytes > 0,
                 "tells norms of what it does not update");
          demand(sends() == (action_.piece % shards_of(schedule_.parallel()) == counts_.shard),
                 "tells norms of another shard");
        }
        break;
      case Payload::predicted:
        demand(schedule_.parallel().predict > 0 && !schedule_.rule().always_stale(),
               "brings what nobody reads beside theta");
        [[fallthrough]];
      case Payload::parameters:
        version();
        if (any_stage() && piece())
          bare_.bytes = action_.piece < 0 ? spec.parameter_bytes[action_.stage]
                                          : spec.pieces[action_.stage][action_.piece].parameters;
        break;
      case Payload::forward_copy:
      case Payload::backward_copy:
        micro_batch();
        copy();
        break;
      default:
        demand(false, "does not belong into training");
    }
    return verdict();
  }

  const char* exchange() {
    demand(schedule_.spec().rounds, "exchanges rounds, and there are none");
    bare_.round = action_.round;
    return verdict();
  }

  const char* group() {
    demand(last_group() >= 0, "is a collective, and the placement has none");
    if (error_ != nullptr) return error_;
    const std::vector<int>& devices =
        schedule_.groups()[std::clamp(action_.group, 0, last_group())];
    demand(action_.kind == ActionKind::wait || action_.kind == kind_of_collective(),
           "is another collective than the placement has");
    demand(within(action_.group, last_group() + 1) && std::ranges::count(devices, device_) == 1,
           "names a group that is not the device's");
    bare_.group = action_.group;
    bare_.payload = action_.payload;
    demand(devices.size() > 1, "is a collective of a device with itself");
    if (action_.payload == Payload::norms) {
      demand(measures(), "tells norms that nobody asks for");
      bare_.bytes = schedule_.spec().norm_bytes;
      return verdict();
    }
    if (!schedule_.spec().pieces.empty()) return chunk();
    const PlacementTraits& traits = schedule_.traits();
    const ParallelConfig& parallel = schedule_.parallel();
    const bool copies = passes_by(action_);
    demand(copies || by_collectives(parallel.reduction),
           "is a collective, and the sums are ordered");
    if (copies) {
      demand(traits.passes_parameters && !cyclic(), "broadcasts what is handed on");
      copy();
    } else if (action_.payload == Payload::parameters) {
      demand(parallel.reduction == Reduction::owner, "broadcasts what every device updates");
      version();
      if (any_stage()) bare_.bytes = schedule_.parameter_bytes(action_.stage);
    } else if (action_.payload == Payload::total && action_.stage < 0) {
      // Others have no room for all stages in one message.
      demand(traits.sums_all_stages && !cyclic() && parallel.reduction == Reduction::fast,
             "sums no stage");
      for (const std::int64_t bytes : schedule_.spec().message_bytes) bare_.bytes += bytes;
    } else if (demand(action_.payload == (cyclic() ? Payload::gradient : Payload::total),
                      "does not belong into a collective") &&
               any_stage()) {
      bare_.bytes = schedule_.message_bytes(action_.stage);
      gradient(&Action::buffer);
    }
    if (cyclic()) {
      micro_batch();
      const Rule& rule = schedule_.rule();
      const int worker = rule.worker_of(action_.micro_batch);
      demand(rule.last_of(rule.last_in_slot(worker)) == action_.micro_batch,
             "is not named by the last micro-batch of its slot");
      // Where groups are those of a stage, their devices take the slots in turn.
      demand(traits.groups_by_stage || action_.group == rule.slot_of(worker),
             "is of another slot than its group");
      bare_.peer = devices.back();
    } else if (dp_sum_of(parallel) == ActionKind::reduce && any_stage()) {
      bare_.peer = schedule_.owner(action_.stage);
    } else if (traits.groups_by_stage) {
      demand(action_.group == action_.stage, "sums over the devices of another stage");
    }
    return verdict();
  }

 private:
  static bool within(int value, int end) { return value >= 0 && value < end; }

  bool demand(bool condition, const char* what) {
    if (!condition && error_ == nullptr) error_ = what;
    return condition;
  }

  const char* verdict() {
    if (starts_message(action_) && schedule_.spec().rounds) bare_.round = action_.round;
    demand(bare_ == action_, "has numbers that do not belong to it");
    return error_;
  }

  [[nodiscard]] bool measures() const { return schedule_.spec().norm_bytes > 0 && !cyclic(); }
  [[nodiscard]] bool cyclic() const { return schedule_.rule().cyclic(); }
  [[nodiscard]] bool sends() const { return action_.direction == Direction::send; }
  [[nodiscard]] int last_group() const { return static_cast<int>(schedule_.groups().size()) - 1; }

  /// What travels inside a slot where stages are cut.
  const char* chunk() {
    const int shards = shards_of(schedule_.parallel());
    demand(schedule_.parallel().reduction == Reduction::fast,
           "is a collective, and the sums are ordered");
    demand(action_.group == device_ / shards, "is of another slot than the device");
    if (!any_stage()) return verdict();
    const std::vector<PieceBytes>& pieces = schedule_.spec().pieces[action_.stage];
    const bool named = within(action_.piece, static_cast<int>(pieces.size()));
    if (!demand(named && action_.piece % shards == 0, "names no chunk")) return verdict();
    bare_.piece = action_.piece;
    const bool sums = action_.payload == Payload::part;
    const bool passes = schedule_.traits().passes_parameters;
    demand(sums || (passes ? passes_by(action_) : action_.payload == Payload::parameters),
           "does not belong into a collective");
    for (int p = action_.piece; p < action_.piece + shards; ++p)
      bare_.bytes += sums ? pieces[p].gradients : pieces[p].parameters;
    if (!sums) {
      version();
      if (passes)
        bare_.buffer = schedule_.travelling(device_, action_.step - segment_.first, action_.payload,
                                            action_.stage);
      return verdict();
    }
    micro_batch();
    demand(action_.micro_batch == (action_.group + 1) * shards * schedule_.parallel().passes - 1,
           "is not named by the last micro-batch of its slot");
    bare_.source = action_.source;
    bare_.buffer = action_.buffer;
    const int last = static_cast<int>(counts_.gradients.size());
    demand(within(action_.source, last) && counts_.gradients[action_.source].shard < 0 &&
               within(action_.buffer, last) && counts_.gradients[action_.buffer].shard >= 0,
           "does not sum whole gradients to a piece");
    return verdict();
  }

  [[nodiscard]] ActionKind kind_of_collective() const {
    if (!schedule_.spec().pieces.empty())
      return action_.payload == Payload::part ? ActionKind::reduce_scatter : ActionKind::all_gather;
    if (cyclic()) return ActionKind::reduce;
    if (action_.payload == Payload::norms) return ActionKind::all_reduce;
    if (action_.payload != Payload::total) return ActionKind::broadcast;
    return dp_sum_of(schedule_.parallel());
  }

  void version() { bare_.version = action_.version; }

  void micro_batch() {
    bare_.micro_batch = action_.micro_batch;
    demand(within(action_.micro_batch, schedule_.rule().micro_batches()),
           "names a micro-batch that is not");
  }

  bool any_stage() {
    bare_.stage = action_.stage;
    return demand(within(action_.stage, schedule_.rule().stages()), "names a stage that is not");
  }

  /// Where stages are cut, what the action is about is one piece.
  bool piece() {
    const auto& pieces = schedule_.spec().pieces;
    bare_.piece = action_.piece;
    if (pieces.empty()) return demand(action_.piece < 0, "names a piece, and stages go whole");
    const std::vector<PieceBytes>& cut = pieces[action_.stage];
    return demand(
        within(action_.piece, static_cast<int>(cut.size())) && cut[action_.piece].gradients > 0,
        "names a piece that is not");
  }

  [[nodiscard]] bool both_whole() const {
    const auto whole = [&](int buffer) {
      return within(buffer, static_cast<int>(counts_.gradients.size())) &&
             counts_.gradients[buffer].shard < 0;
    };
    return whole(action_.buffer) && whole(action_.source);
  }

  void own_piece() {
    demand(action_.piece < 0 || action_.piece % shards_of(schedule_.parallel()) == counts_.shard,
           "names a piece of another shard");
  }

  void keeps_piece() {
    demand(counts_.keeps(action_.stage, action_.piece, shards_of(schedule_.parallel())),
           "copies what it does not keep");
  }

  bool stage() {
    const bool here = action_.stage >= counts_.first_stage && action_.stage <= counts_.last_stage;
    return any_stage() && demand(here, "names a stage of other devices");
  }

  /// What crosses a cut arrives at, or leaves for, one stage alone.
  bool cut(int arriving, int leaving) {
    const bool here = action_.stage == (sends() ? leaving : arriving);
    return any_stage() && demand(here, "crosses another cut");
  }

  /// Parameters that pass by lie in the buffer of their pass, or in what the device owns.
  void copy() {
    version();
    if (!any_stage() || !piece()) return;
    bare_.bytes = action_.piece < 0
                      ? schedule_.parameter_bytes(action_.stage)
                      : schedule_.spec().pieces[action_.stage][action_.piece].parameters;
    const bool owns = counts_.owns(action_.stage);
    if (!demand(owns || counts_.travelling > 0, "hands on what every device has")) return;
    if (!owns && !schedule_.leaves_from_kept(device_, action_))
      bare_.buffer = schedule_.travelling(device_, action_.step - segment_.first, action_.payload,
                                          action_.stage);
    demand(action_.buffer == bare_.buffer, "names a buffer whose turn it is not");
  }

  void turn(int Action::*buffer, int count) {
    if (!demand(count > 0, "names a buffer that is not")) return;
    bare_.*buffer = schedule_.round_robin(action_.step - segment_.first,
                                          std::max(action_.micro_batch, 0), count);
    demand(action_.*buffer == bare_.*buffer, "names a buffer whose turn it is not");
  }

  void gradient(int Action::*buffer) {
    bare_.*buffer = action_.*buffer;
    if (!demand(within(action_.*buffer, static_cast<int>(counts_.gradients.size())),
                "names a gradient buffer that is not"))
      return;
    const auto& [stages, shard] = counts_.gradients[action_.*buffer];
    demand(std::ranges::find(stages, action_.stage) != stages.end(),
           "names a gradient buffer that is not for its stage");
    demand(shard < 0 ||
               (action_.piece >= 0 && action_.piece % shards_of(schedule_.parallel()) == shard),
           "names a gradient buffer that is not for its piece");
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
  Fields fields(schedule, segment, device, action);
  // Rounds belong to all steps that have messages in them.
  if (action.kind == ActionKind::exchange) return fields.exchange();
  if (action.step < segment.first || action.step >= segment.last) return "is outside the segment";
  if (is_collective(action)) return fields.group();
  const bool message = action.kind == ActionKind::post || action.kind == ActionKind::send ||
                       action.kind == ActionKind::wait;
  return message ? fields.message() : fields.compute();
}

}  // namespace carousel
