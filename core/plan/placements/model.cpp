// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/placements/parts.hpp"

namespace carousel::placements {
namespace {

/// Gradient buffers that every device has: what it computed, and the sum that arrives, or one of
/// its own, to which that is added. Behind them come the total and, with `local`, the device's sum.
enum Buffer : int { own, arriving };

/// Cyclic rules: R replicas of S - j devices for every stage j, in programs ordered by stage. In
/// replica r, micro-batch s of a training step is micro-batch R s + r of the rule, and a team takes
/// its micro-batches in turn. See design: the micro-batch after the last S - j ones is for the
/// device that completes the gradient, so that v2 finds its fresh parameters in place.
class CyclicStage {
 public:
  CyclicStage(const Rule& rule, const ScheduleSpec& spec, int stage, int replica)
      : rule_(rule),
        spec_(spec),
        stages_(rule.stages()),
        replicas_(rule.micro_batches() / rule.stages()),
        stage_(stage),
        replica_(replica),
        size_(stages_ - stage),
        local_(spec.parallel.reduction == Reduction::local),
        joint_(spec.parallel.reduction == Reduction::fast && replicas_ > 1),
        total_(has_sum() ? 2 : 1),
        builder_(2LL * stages_) {}

  Program program() {
    for (int s = 0; s < stages_; ++s) add_micro_batch(s);
    add_totals();
    Program result{.team = size_, .actions = builder_.fold()};
    result.buffers = counts_of(rule_, stage_, stage_);
    result.buffers.gradients.assign(local_sum() + (sums_first() ? 1 : 0), {{stage_}});
    return result;
  }

 private:
  /// Whether one device runs all micro-batches of the stage.
  [[nodiscard]] bool alone() const { return size_ == 1 && replicas_ == 1; }
  /// Whether a device sums what it computed in a step before any of it leaves.
  [[nodiscard]] bool sums_first() const { return !alone() && local_ && size_ < stages_; }
  /// Whether the sum over the micro-batches so far comes to this replica.
  [[nodiscard]] bool has_sum() const { return !joint_ || replica_ == replicas_ - 1; }
  /// Whether it stays on the device, which runs all micro-batches of its replica.
  [[nodiscard]] bool keeps_sum() const { return alone() || (joint_ && size_ == 1); }
  /// A device alone in its team computes the next gradient before a sum could wait.
  [[nodiscard]] std::int64_t delay_of(const Term& term) const { return size_ > 1 ? term.delay : 0; }
  [[nodiscard]] int program_of(int stage, int replica) const { return stage * replicas_ + replica; }
  /// Whether totals arrive: the only device of the last replica completes them all.
  [[nodiscard]] bool gets_totals() const { return size_ > 1 || replica_ < replicas_ - 1; }
  [[nodiscard]] int local_sum() const { return total_ + (gets_totals() ? 1 : 0); }
  /// The first group of the stage; see model().
  [[nodiscard]] int group() const { return stage_ * stages_ - stage_ * (stage_ - 1) / 2; }
  [[nodiscard]] int micro_batch(int s) const { return s * replicas_ + replica_; }
  [[nodiscard]] Neighbour here(int stage, int s) const {
    return {stage >= 0 && stage < stages_ ? program_of(stage, replica_) : -1, s};
  }

  void add_micro_batch(int s) {
    const int i = micro_batch(s);
    Pass pass = pass_of(rule_, i, stage_);
    pass.turn = s;
    add_load(builder_, pass);
    add_forward(builder_, rule_, pass);
    Term term = term_of(rule_, spec_, i);
    term.delay = delay_of(term);
    const int sum = add_gradient(pass, term);
    if (hops_on(s)) {
      const MessageEnd out = partial_sum(Direction::send, s, replica_, sum);
      const Turns turns{s, s + (replica_ + 1) / replicas_};
      builder_.add(pass.backward_time + term.delay, Phase::reduce, out.start(), turns);
      builder_.add(pass.backward_time + 2, Phase::before_post, out.wait(), turns);
    }
    add_release(builder_, pass);
    add_boundaries(builder_, spec_, pass, here(stage_ - 1, s), here(stage_ + 1, s));
  }

  /// Whether the sum through micro-batch s of this replica goes on to the next micro-batch. With
  /// `local`, only the last micro-batch of each device in a step passes on what the device summed.
  [[nodiscard]] bool hops_on(int s) const {
    const bool last = s == stages_ - 1 && replica_ == replicas_ - 1;
    return !last && !keeps_sum() && has_sum() && (!local_ || s >= stages_ - size_);
  }
  /// Whether a sum arrives from the micro-batch before.
  [[nodiscard]] bool hops_here(int s) const {
    const bool begins = s == 0 || (local_ && s == stages_ - size_);
    const bool first = begins && (joint_ || replica_ == 0);
    return !first && !keeps_sum() && has_sum() && (!local_ || s >= stages_ - size_);
  }

  /// Backward and the sums behind it; returns the buffer of the sum through this micro-batch.
  int add_gradient(const Pass& pass, const Term& term) {
    const int s = pass.turn;
    const Turns turns{s, 0};
    const std::int64_t time = pass.backward_time + term.delay;
    // Where a device adds up micro-batches of a step, the first one writes the sum.
    const bool adds_up = has_sum() && (keeps_sum() || sums_first());
    const int sum = !adds_up ? own : keeps_sum() ? arriving : local_sum();
    const int fresh = adds_up && s < size_ ? sum : own;
    add_backward(builder_, rule_, pass, fresh);
    if (term.joint())
      add_joint_sum(builder_, rule_, spec_, pass, term, group(), program_of(stage_, replicas_ - 1),
                    fresh);
    if (fresh != sum)
      builder_.add(time, term.joint() ? Phase::reduce : Phase::compute,
                   accumulate(pass.micro_batch, stage_, sum, own), turns);
    if (hops_here(s)) {
      const bool from_slot_before = joint_ || replica_ == 0;
      const int before = from_slot_before ? replicas_ - 1 : replica_ - 1;
      const int from = from_slot_before ? s - 1 : s;
      const MessageEnd in = partial_sum(Direction::receive, from, before, arriving);
      // The device is free for this micro-batch when its forward begins, but for what was delayed.
      builder_.add(pass.forward_time, joint_ ? Phase::late_post : Phase::post, in.start(),
                   {s, from});
      builder_.add(time, Phase::reduce, in.wait(), {s, from});
      builder_.add(time, Phase::reduce, accumulate(pass.micro_batch, stage_, sum, arriving), turns);
    }
    return sum;
  }

  /// The sum through micro-batch s of a replica, to or from the next one.
  [[nodiscard]] MessageEnd partial_sum(Direction direction, int s, int replica, int buffer) const {
    const int next = joint_ ? replica : (replica + 1) % replicas_;
    return {.payload = Payload::gradient,
            .direction = direction,
            .peer = program_of(stage_, direction == Direction::send ? next : replica),
            .stage = stage_,
            .micro_batch = s * replicas_ + replica,
            .bytes = spec_.message_bytes[stage_],
            .buffer = buffer};
  }

  /// Totals go from the device that completes them through the replicas, and in each replica from
  /// device to device in the order in which these come to need the new parameters.
  void add_totals() {
    const int last = stages_ - 1;
    const std::int64_t ready = rule_.backward_time(rule_.micro_batches() - 1, stage_, 0) + 1;
    const int sum = sums_first() ? local_sum() : keeps_sum() ? arriving : own;
    for (int hop = 0; hop < size_; ++hop) {
      const bool completes = hop == 0 && replica_ == replicas_ - 1;
      // The device of hop h is free for the update, and v2 reads the new parameters there, 2 h time
      // steps later; no slack is needed.
      const std::int64_t time = ready + 2LL * hop;
      const int turn = last + hop;
      const int source = completes ? sum : total_;
      // Without a step between two totals, one buffer has no time to spare.
      const std::int64_t early = stages_ > 1 ? 2 : 1;
      if (!completes) {
        const int from = hop > 0 ? replica_ : (replica_ + replicas_ - 1) % replicas_;
        const MessageEnd in =
            total_line(rule_, spec_, Direction::receive, program_of(stage_, from), stage_, source);
        const Turns turns{turn, hop > 0 ? turn - 1 : turn};
        builder_.add(time - early, Phase::post, in.start(), turns);
        builder_.add(time, Phase::update, in.wait(), turns);
      }
      builder_.add(time, Phase::update, update(stage_, source), {turn, 0});
      // A device alone in its team computes again in the next time step but one.
      const std::int64_t sent = time + (size_ > 1 ? 2 : 1);
      const bool crosses = hop == 0 && replicas_ > 1 && replica_ != replicas_ - 2;
      if (crosses) add_total_out(time, sent, source, (replica_ + 1) % replicas_, {turn, turn});
      if (hop + 1 < size_) add_total_out(time, sent, source, replica_, {turn, turn + 1});
    }
  }

  void add_total_out(std::int64_t time, std::int64_t sent, int source, int replica, Turns turns) {
    const MessageEnd out =
        total_line(rule_, spec_, Direction::send, program_of(stage_, replica), stage_, source);
    builder_.add(time, Phase::update, out.start(), turns);
    builder_.add(sent, Phase::before_post, out.wait(), turns);
  }

  const Rule& rule_;
  const ScheduleSpec& spec_;
  int stages_;
  int replicas_;
  int stage_;
  int replica_;
  int size_;
  bool local_;
  bool joint_;  // replicas sum the micro-batches of a slot by collectives
  int total_;   // gradient buffer
  ProgramBuilder builder_;
};

/// One device per micro-batch and stage, as programs ordered by stage.
Program dp(const Rule& rule, const ScheduleSpec& spec, int i, int j) {
  const int n = rule.micro_batches();
  const std::int64_t cycle = 2LL * rule.stages();
  const bool fast = spec.parallel.reduction == Reduction::fast;
  const Pass pass = pass_of(rule, i, j);
  const auto neighbour = [&](int stage) {
    return Neighbour{stage >= 0 && stage < rule.stages() ? stage * n + i : -1};
  };
  ProgramBuilder builder(cycle);
  Program result{.buffers = counts_of(rule, j, j)};
  result.buffers.gradients.assign(!fast && i > 0 ? 2 : 1, {{j}});
  add_load(builder, pass);
  add_forward(builder, rule, pass);
  add_backward(builder, rule, pass, own);
  if (!fast && n > 1)
    add_dp_chain(builder, rule, spec, i, j, {.first_program = j * n, .own = own},
                 AlternatingBuffers(1, arriving));
  add_release(builder, pass);
  add_boundaries(builder, spec, pass, neighbour(j - 1), neighbour(j + 1));
  if (fast && n > 1) {
    const CollectiveCall sum{.group = j, .stage = j, .bytes = spec.message_bytes[j], .buffer = own};
    builder.add(pass.backward_time, Phase::reduce, sum.start());
    builder.add(cycle, Phase::update, sum.wait());
  }
  if (needs_norms(spec)) builder.add(cycle, Phase::update, measure(j, own));
  if (rule.stages() > 1) add_norms(builder, spec, rule.stages() + i, cycle, cycle);
  builder.add(cycle, Phase::update, update(j, own));
  result.actions = builder.fold();
  return result;
}

/// One stage of one micro-batch on a device at a time. dp: N S devices. Cyclic rules: S - j devices
/// per replica take the micro-batches of stage j in turn.
Layout lay_out(const Rule& rule, const ScheduleSpec& spec) {
  const int n = rule.micro_batches();
  const int stages = rule.stages();
  Layout layout{.period_time = 2LL * stages, .turns = stages};
  int devices = 0;
  for (int j = 0; j < stages; ++j) {
    layout.owner.push_back(devices);
    // dp sums over all devices of a stage, cyclic rules over those in the same place of their team.
    const int first_group = static_cast<int>(layout.groups.size());
    layout.groups.resize(first_group + (rule.cyclic() ? stages - j : 1));
    const int replicas = rule.cyclic() ? n / stages : n;
    for (int r = 0; r < replicas; ++r) {
      layout.programs.push_back(rule.cyclic() ? CyclicStage(rule, spec, j, r).program()
                                              : dp(rule, spec, r, j));
      Program& program = layout.programs.back();
      program.first_device = devices;
      for (int k = 0; k < program.team; ++k) layout.groups[first_group + k].push_back(devices++);
    }
  }
  // Behind them come those of the stages of one micro-batch, which tell each other norms.
  for (int i = 0; needs_norms(spec) && i < n; ++i) {
    layout.groups.emplace_back();
    for (int j = 0; j < stages; ++j) layout.groups.back().push_back(j * n + i);
  }
  return layout;
}

}  // namespace

PlacementKind model() {
  return {
      .placement = Placement::model,
      .name = "model",
      .doc = "a device for each stage of each micro-batch; cyclic rules need about half of them.",
      .help =
          "A device for every stage of every micro-batch: N S for dp. Cyclic rules share devices "
          "and need R S (S + 1) / 2; N = R S only.",
      .formulas = {.devices = {"N S", "R S (S + 1) / 2"},
                   .busy = {"1 / S", "2 / (S + 1)"},
                   .largest_activations = {"max a_j", "max a_j"},
                   .held_activations = {"N A", "sum R (S - j) a_j"},
                   .parameter_copies = {"N", "2 R sum (S-j) p_j/P"},
                   .optimizer_state = {"N P", "sum R (S - j) p_j"},
                   .sent = {"2 (N-1) P + N C", "sums, totals, N C"},
                   .longest = {"2 (N - 1)", "0 or 1 for N = S"}},
      .devices =
          [](const ParallelConfig& parallel) {
            const int n = parallel.micro_batches;
            const int stages = parallel.stages;
            return parallel.rule == RuleKind::dp ? n * stages
                                                 : n / stages * stages * (stages + 1) / 2;
          },
      .layout = lay_out,
      .traits = {.splits_stages = true,
                 .holds_one = true,
                 .whole_slots = true,
                 .dp_reductions = {Reduction::ordered, Reduction::fast},
                 .cyclic_reductions = {Reduction::ordered, Reduction::local, Reduction::fast},
                 .groups_by_stage = true}};
}

}  // namespace carousel::placements
