// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/plan/placements/parts.hpp"
#include "core/plan/placements/slots.hpp"

namespace carousel::placements {
namespace {

/// Buffers for parameters that pass by. Cyclic rules: one arrives while one is in use and one
/// leaves. dp: one arrives while one is in use.
constexpr int cyclic_buffers = 3;
constexpr int dp_buffers = 2;

/// Replica of N = R S: micro-batch R s + r is the one of slot s in replica r.
int replicas_of(const Rule& rule) {
  return std::max(1, rule.micro_batches() / rule.stages());
}

/// Device d of a cyclic rule. Within each replica the owner of stage j is slot S - 1 - j. In every
/// training step two copies of theta_{t-1} of each stage set out from the owner at slot 0, and two
/// of theta_t at the first slot that reads it; slot by slot they end where the version ends. The
/// owner itself reads what it owns, and a copy that comes to it starts there anew.
class CyclicDevice {
 public:
  CyclicDevice(const Rule& rule, const ScheduleSpec& spec, const std::vector<int>& owner,
               int device)
      : rule_(rule),
        spec_(spec),
        owner_(owner),
        device_(device),
        stages_(rule.stages()),
        replicas_(replicas_of(rule)),
        slot_(rule.slot_of(device)),
        builder_(2LL * stages_) {}

  Program program() {
    const int mine = stages_ - 1 - slot_;
    Program result{.first_device = device_, .buffers = counts_of(rule_, mine, mine)};
    BufferCounts& counts = result.buffers;
    counts.first_stage = 0;
    counts.last_stage = stages_ - 1;
    counts.travelling = stages_ > 1 ? cyclic_buffers : 0;
    add_tokens(builder_, rule_, device_);
    const AlternatingBuffers own =
        add_ring_passes(builder_, rule_, spec_, owner_, device_, counts.gradients);
    for (int j = 0; j < stages_; ++j) {
      add_copies(Payload::forward_copy, j);
      add_copies(Payload::backward_copy, j);
    }
    add_update(mine, own.of(mine), counts.gradients);
    result.actions = builder_.fold();
    return result;
  }

 private:
  [[nodiscard]] int device_of(int slot) const { return slot * replicas_ + device_ % replicas_; }
  [[nodiscard]] bool fresh(int slot, int stage) const {
    return rule_.fresh(device_of(slot), stage);
  }
  /// The slot from which a slot gets the copy of this stage, of the version that it reads.
  [[nodiscard]] int source_of(int slot, int stage) const {
    const int owner = stages_ - 1 - stage;
    const bool starts = slot == 0 || fresh(slot, stage) != fresh(slot - 1, stage);
    return starts ? owner : slot - 1;
  }

  /// Everything about one copy of one stage on this device.
  void add_copies(Payload payload, int stage) {
    const bool owns = stage == stages_ - 1 - slot_;
    if (!owns) {
      const MessageEnd in = copy_line(payload, Direction::receive, slot_, stage);
      const std::int64_t use = time_of(payload, slot_, stage);
      builder_.add(use - 2, Phase::late_post, in.start());
      builder_.add(use, Phase::arrive, in.wait());
    }
    for (int reader = 0; reader < stages_; ++reader) {
      if (reader == stages_ - 1 - stage || source_of(reader, stage) != slot_) continue;
      const MessageEnd out = copy_line(payload, Direction::send, reader, stage);
      // Behind the pass that reads it here; what is owned may leave before or after that.
      const std::int64_t time = time_of(payload, reader, stage) - 2;
      builder_.add(time, Phase::leave, out.start());
      builder_.add(time + 1, Phase::late_wait, out.wait());
    }
  }

  [[nodiscard]] std::int64_t time_of(Payload payload, int slot, int stage) const {
    const int i = device_of(slot);
    return payload == Payload::forward_copy ? rule_.forward_time(i, stage, 0)
                                            : rule_.backward_time(i, stage, 0);
  }

  /// The copy that the micro-batch of slot `reader` reads, seen from this device.
  [[nodiscard]] MessageEnd copy_line(Payload payload, Direction direction, int reader,
                                     int stage) const {
    const bool sends = direction == Direction::send;
    return {.payload = payload,
            .direction = direction,
            .peer = device_of(sends ? reader : source_of(reader, stage)),
            .stage = stage,
            .micro_batch = device_of(reader),
            .version = fresh(reader, stage) ? 0 : -1,
            .bytes = spec_.parameter_bytes[stage]};
  }

  /// The total comes to the owner in replica 0 and goes on from replica to replica.
  void add_update(int stage, int own, std::vector<GradientBuffer>& gradients) {
    const int last = rule_.micro_batches() - 1;
    const int replica = device_ % replicas_;
    const std::int64_t time = total_time(rule_, spec_, stage);
    int source = own;
    if (device_ != last) {
      source = static_cast<int>(gradients.size());
      gradients.push_back({{stage}});
      const MessageEnd in = total_line(rule_, spec_, Direction::receive,
                                       replica == 0 ? last : device_ - 1, stage, source);
      builder_.add(std::max<std::int64_t>(rule_.offset(device_), time - 2 * stages_ + 1),
                   Phase::post, in.start());
      builder_.add(time, Phase::update, in.wait());
    }
    builder_.add(time, Phase::update, update(stage, source));
    // In the last slot it is the last replica that completes the total.
    const bool passes_on = replica + 1 < replicas_ && device_ + 1 != last;
    if (!passes_on) return;
    const MessageEnd out = total_line(rule_, spec_, Direction::send, device_ + 1, stage, source);
    builder_.add(time, Phase::update, out.start());
    builder_.add(time, Phase::late_wait, out.wait());
  }

  const Rule& rule_;
  const ScheduleSpec& spec_;
  const std::vector<int>& owner_;
  int device_;
  int stages_;
  int replicas_;
  int slot_;
  ProgramBuilder builder_;
};

/// dp: the owner brings theta to all before every pass, while the pass before it runs; the gradient
/// goes to the owner as a chain of partial sums, or by one reduction per stage.
Program dp(const Rule& rule, const ScheduleSpec& spec, const std::vector<int>& owner, int device) {
  const int stages = rule.stages();
  const int last = rule.micro_batches() - 1;
  const std::int64_t cycle = 2LL * stages;
  const bool alone = last == 0;
  const bool fast = spec.parallel.reduction == Reduction::fast && !alone;
  ProgramBuilder builder(cycle);
  Program result{.first_device = device, .buffers = counts_of(rule, 0, -1)};
  BufferCounts& counts = result.buffers;
  counts.last_stage = stages - 1;
  counts.travelling = alone ? 0 : dp_buffers;
  for (int j = 0; j < stages; ++j) {
    counts.optimizer[j] = owner[j] == device;
    if (owner[j] == device) counts.owned.push_back(j);
  }

  std::vector<int> made(stages);  // [stage] buffer that backward fills
  if (fast) {
    const AlternatingBuffers own(stages, 0);
    own.append_to(counts.gradients);
    for (int j = 0; j < stages; ++j) {
      const bool keeps = needs_norms(spec) && owner[j] == device;
      made[j] = keeps ? static_cast<int>(counts.gradients.size()) : own.of(j);
      if (keeps) counts.gradients.push_back({{j}});
    }
    add_load(builder, {.micro_batch = device});
    for (int j = stages - 1; j >= 0; --j) {
      const Pass pass = pass_of(rule, device, j);
      add_forward(builder, rule, pass);
      add_backward(builder, rule, pass, made[j]);
      const CollectiveCall sum{.kind = ActionKind::reduce,
                               .root = owner[j],
                               .stage = j,
                               .bytes = spec.message_bytes[j],
                               .buffer = made[j]};
      builder.add(pass.backward_time, Phase::reduce, sum.start());
      builder.add(std::min(pass.backward_time + 2, cycle), Phase::before_update, sum.wait());
      add_release(builder, pass);
    }
  } else {
    const AlternatingBuffers own =
        add_ring_passes(builder, rule, spec, owner, device, counts.gradients);
    for (int j = 0; j < stages; ++j) made[j] = own.of(j);
  }
  std::vector<Action> updates;
  for (int j = stages - 1; j >= 0; --j) {
    if (!alone) {
      for (const Payload payload : {Payload::forward_copy, Payload::backward_copy}) {
        const int pass = payload == Payload::forward_copy ? j : 2 * stages - 1 - j;
        const CollectiveCall copy{.kind = ActionKind::broadcast,
                                  .payload = payload,
                                  .root = owner[j],
                                  .stage = j,
                                  .bytes = spec.parameter_bytes[j]};
        builder.add(std::max(0, pass - 1), Phase::post, copy.start());
        builder.add(pass, Phase::arrive, copy.wait());
      }
    }
    if (owner[j] != device) continue;
    int source = made[j];
    if (!fast && device != last) {
      source = static_cast<int>(counts.gradients.size());
      counts.gradients.push_back({{j}});
      const MessageEnd in = total_line(rule, spec, Direction::receive, last, j, source);
      builder.add(0, Phase::post, in.start());
      builder.add(cycle, Phase::update, in.wait());
    }
    const std::int64_t early = rule.backward_time(device, j, 0) + (fast ? 2 : 1);
    const std::int64_t time = device == last || fast ? std::min(early, cycle) : cycle;
    updates.push_back(update(j, source));
    builder.add(time, Phase::update, needs_norms(spec) ? measure(j, source) : updates.back());
  }
  if (needs_norms(spec)) {
    if (!alone) add_norms(builder, spec, 0, cycle, cycle);
    for (const Action& update : updates) builder.add(cycle, Phase::update, update);
  }
  result.actions = builder.fold();
  return result;
}

/// Micro-batch i on device i, parameters and optimizer state of a stage on its owner alone (ZeRO,
/// Rajbhandari et al. 2020, stage 3). dp: broadcast before every pass. Cyclic rules: two copies,
/// for forward and for backward, go from micro-batch to micro-batch.
Layout lay_out(const Rule& rule, const ScheduleSpec& spec) {
  if (!spec.pieces.empty()) return lay_out_sharded_slots(rule, spec);
  Layout layout{.period_time = 2LL * rule.stages()};
  // Copies set out where fresh ones are read first without slack, whatever the slack.
  const Rule tight(rule.kind(), rule.micro_batches(), rule.stages(), 0);
  for (int j = 0; j < rule.stages(); ++j) layout.owner.push_back(first_reader(tight, j));
  layout.groups = groups_of(rule);
  for (int device = 0; device < rule.micro_batches(); ++device) {
    layout.programs.push_back(rule.cyclic()
                                  ? CyclicDevice(rule, spec, layout.owner, device).program()
                                  : dp(rule, spec, layout.owner, device));
  }
  return layout;
}

}  // namespace

PlacementKind sharded() {
  return {
      .placement = Placement::sharded,
      .name = "sharded",
      .doc = "as replicated, but each parameter is stored on one device.",
      .help =
          "N: every stage has an owner (ZeRO). dp: owners broadcast their stages, gradients "
          "are reduced to them. Cyclic: stages travel from device to device; N = R S only. With "
          "shards every device of a slot keeps its piece; dp is then FSDP.",
      .formulas = {.devices = {"N", "N"},
                   .busy = {"1", "1"},
                   .largest_activations = {"A", "A"},
                   .held_activations = {"N A", "sum R (S - j) a_j"},
                   .parameter_copies = {"1 + 2 N max p_j/P", "2 R + 3 N max p_j/P"},
                   .optimizer_state = {"P", "R P"},
                   .sent = {"3 (N - 1) P", "(3 N - R - 1) P - L"},
                   .longest = {"2 (N - 1)", "0 or 1 for N = S"}},
      .devices = [](const ParallelConfig& parallel) { return parallel.micro_batches; },
      .layout = lay_out,
      .traits = {.passes_parameters = true,
                 .whole_slots = true,
                 .cuts_stages = true,
                 .paced = true,
                 .dp_reductions = {Reduction::ordered, Reduction::fast},
                 .cyclic_reductions = {Reduction::ordered, Reduction::fast},
                 .dp_sum = ActionKind::reduce}};
}

}  // namespace carousel::placements
