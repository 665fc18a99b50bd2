// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/placements/parts.hpp"

#include <algorithm>

namespace carousel::placements {
namespace {

Action passing(ActionKind kind, const Pass& pass, std::int64_t version) {
  return {.kind = kind, .micro_batch = pass.micro_batch, .stage = pass.stage, .version = version};
}

std::int64_t version_of(const Rule& rule, const Pass& pass) {
  return rule.fresh(pass.micro_batch, pass.stage) ? 0 : -1;
}

}  // namespace

Action MessageEnd::start() const {
  Action action = wait();
  action.kind = direction == Direction::send ? ActionKind::send : ActionKind::post;
  return action;
}

Action MessageEnd::wait() const {
  return {.kind = ActionKind::wait,
          .payload = payload,
          .direction = direction,
          .micro_batch = micro_batch,
          .stage = stage,
          .piece = piece,
          .version = version,
          .peer = peer,
          .bytes = bytes,
          .buffer = buffer};
}

Action CollectiveCall::start() const {
  Action action = wait();
  action.kind = kind;
  return action;
}

Action CollectiveCall::wait() const {
  return {.kind = ActionKind::wait,
          .payload = payload,
          .micro_batch = micro_batch,
          .stage = stage,
          .piece = piece,
          .version = version,
          .peer = root,
          .group = group,
          .bytes = bytes,
          .buffer = buffer,
          .source = source};
}

Pass pass_of(const Rule& rule, int i, int j) {
  return {.micro_batch = i,
          .stage = j,
          .forward_time = rule.forward_time(i, j, 0),
          .backward_time = rule.backward_time(i, j, 0)};
}

void add_load(ProgramBuilder& builder, const Pass& pass) {
  builder.add(pass.forward_time, Phase::arrive, passing(ActionKind::load, pass, 0),
              {.here = pass.turn});
}

void add_forward(ProgramBuilder& builder, const Rule& rule, const Pass& pass) {
  const Action forward = passing(ActionKind::forward, pass, version_of(rule, pass));
  builder.add(pass.forward_time, Phase::compute, forward, {.here = pass.turn});
}

void add_backward(ProgramBuilder& builder, const Rule& rule, const Pass& pass, int buffer) {
  Action backward = passing(ActionKind::backward, pass, version_of(rule, pass));
  backward.buffer = buffer;
  builder.add(pass.backward_time, Phase::compute, backward, {.here = pass.turn});
}

void add_release(ProgramBuilder& builder, const Pass& pass) {
  builder.add(pass.backward_time, Phase::release, passing(ActionKind::release, pass, 0),
              {.here = pass.turn});
}

void add_boundaries(ProgramBuilder& builder, const ScheduleSpec& spec, const Pass& pass,
                    Neighbour before, Neighbour behind) {
  const int j = pass.stage;
  const auto line = [&](Payload payload, Direction direction, int stage, int cut) {
    const bool forwards = payload == Payload::activations;
    return MessageEnd{.payload = payload,
                      .direction = direction,
                      .peer = cut < j ? before.program : behind.program,
                      .stage = stage,
                      .micro_batch = pass.micro_batch,
                      .bytes = (forwards ? spec.activation_bytes : spec.d_activation_bytes)[cut]};
  };
  if (before.program >= 0) {
    const Turns turns{pass.turn, before.turn};
    // A landing is free when its frame is, and that is when the time step before has released it.
    const MessageEnd in = line(Payload::activations, Direction::receive, j, j - 1);
    builder.add(pass.forward_time - 1, Phase::late_post, in.start(), turns);
    builder.add(pass.forward_time, Phase::arrive, in.wait(), turns);
    const MessageEnd out = line(Payload::d_activations, Direction::send, j - 1, j - 1);
    builder.add(pass.backward_time, Phase::leave, out.start(), turns);
    // The next backward here comes two time steps later, or later than that.
    builder.add(pass.backward_time + 2, Phase::before_post, out.wait(), turns);
  }
  if (behind.program >= 0) {
    const Turns turns{pass.turn, behind.turn};
    const MessageEnd out = line(Payload::activations, Direction::send, j + 1, j);
    builder.add(pass.forward_time, Phase::leave, out.start(), turns);
    builder.add(pass.forward_time + 2, Phase::before_post, out.wait(), turns);
    const MessageEnd in = line(Payload::d_activations, Direction::receive, j, j);
    builder.add(pass.backward_time - 1, Phase::post, in.start(), turns);
    builder.add(pass.backward_time, Phase::arrive, in.wait(), turns);
  }
}

Action measure(int stage, int source, int piece) {
  Action action{.kind = ActionKind::measure, .stage = stage, .piece = piece};
  action.source = source;
  return action;
}

Action update(int stage, int source, int piece) {
  Action action{.kind = ActionKind::update, .stage = stage, .piece = piece, .version = 1};
  action.source = source;
  return action;
}

Action accumulate(int micro_batch, int stage, int buffer, int source, int piece) {
  Action action{
      .kind = ActionKind::accumulate, .micro_batch = micro_batch, .stage = stage, .piece = piece};
  action.buffer = buffer;
  action.source = source;
  return action;
}

void add_summed_backward(ProgramBuilder& builder, const Rule& rule, const Pass& pass, int sum,
                         int own) {
  const bool first = pass.micro_batch == 0;
  add_backward(builder, rule, pass, first ? sum : own);
  if (!first)
    builder.add(pass.backward_time, Phase::compute,
                accumulate(pass.micro_batch, pass.stage, sum, own));
}

AlternatingBuffers::AlternatingBuffers(int stages, int first_buffer, std::int64_t time_steps)
    : stages_(stages),
      first_(first_buffer),
      count_(
          static_cast<int>(std::min<std::int64_t>(stages, std::max<std::int64_t>(2, time_steps)))) {
}

std::int64_t AlternatingBuffers::reuse_after(int stage) const {
  if (stage - count_ >= 0) return count_;
  int next = stages_ - 1;
  while (of(next) != of(stage)) --next;
  return 2 * stages_ + stage - next;
}

void AlternatingBuffers::append_to(std::vector<GradientBuffer>& gradients, int shard) const {
  gradients.resize(gradients.size() + count_, {.stages = {}, .shard = shard});
  for (int j = 0; j < stages_; ++j) gradients[of(j)].stages.push_back(j);
}

Term term_of(const Rule& rule, const ScheduleSpec& spec, int micro_batch) {
  Term term{micro_batch, micro_batch};
  if (!rule.cyclic() || spec.parallel.reduction != Reduction::fast) return term;
  term = {rule.first_of_slot(micro_batch), rule.last_of_slot(micro_batch)};
  const bool spare = traits_of(spec.parallel.placement).totals_may_wait && rule.slack() > 0;
  if (term.joint() && (term.last + 1 < rule.micro_batches() || spare)) term.delay = 1;
  return term;
}

void add_joint_sum(ProgramBuilder& builder, const ScheduleSpec& spec, const Pass& pass,
                   const Term& term, int group, int root, int buffer) {
  const CollectiveCall sum{.kind = ActionKind::reduce,
                           .payload = Payload::gradient,
                           .group = group,
                           .root = root,
                           .stage = pass.stage,
                           .micro_batch = term.last,
                           .bytes = spec.message_bytes[pass.stage],
                           .buffer = buffer};
  const Turns turns{pass.turn, pass.turn};
  const std::int64_t delay = pass.micro_batch == term.last ? term.delay : 1;
  builder.add(pass.backward_time, Phase::reduce, sum.start(), turns);
  builder.add(pass.backward_time + delay, Phase::reduce, sum.wait(), turns);
}

bool needs_norms(const ScheduleSpec& spec) {
  return spec.norm_bytes > 0;
}

void add_norms(ProgramBuilder& builder, const ScheduleSpec& spec, int group, std::int64_t begin,
               std::int64_t end) {
  if (!needs_norms(spec)) return;
  const CollectiveCall exchange{
      .payload = Payload::norms, .group = group, .bytes = spec.norm_bytes};
  builder.add(begin, Phase::update, exchange.start());
  builder.add(end, Phase::update, exchange.wait());
}

std::vector<std::vector<int>> groups_of(const Rule& rule) {
  std::vector<std::vector<int>> groups(rule.cyclic() ? rule.stages() : 1);
  for (int i = 0; i < rule.micro_batches(); ++i)
    groups[rule.cyclic() ? rule.slot(i) : 0].push_back(i);
  return groups;
}

std::int64_t total_time(const Rule& rule, const ScheduleSpec& spec, int stage) {
  const int last = rule.micro_batches() - 1;
  return rule.backward_time(last, stage, 0) + term_of(rule, spec, last).delay + 1;
}

void add_arrival(ProgramBuilder& builder, const Rule& rule, const ScheduleSpec& spec,
                 const Term& term, int stage, Chain chain, const AlternatingBuffers& arriving) {
  const std::int64_t begin = rule.offset(term.last) + term.delay;
  const std::int64_t time = rule.backward_time(term.last, stage, 0) + term.delay;
  const MessageEnd line{.payload = Payload::gradient,
                        .direction = Direction::receive,
                        .peer = chain.first_program + term.first - 1,
                        .stage = stage,
                        .micro_batch = term.first - 1,
                        .bytes = spec.message_bytes[stage],
                        .buffer = arriving.of(stage)};
  if (arriving.first_in_step(stage))
    builder.add(begin, Phase::post, line.start());
  else
    builder.add(time - arriving.count(), Phase::late_post, line.start());
  builder.add(time, Phase::reduce, line.wait());
  builder.add(time, Phase::reduce, accumulate(term.last, stage, chain.own, line.buffer));
}

void add_dp_chain(ProgramBuilder& builder, const Rule& rule, const ScheduleSpec& spec, int i,
                  int stage, Chain chain, const AlternatingBuffers& arriving) {
  const int last = rule.micro_batches() - 1;
  const int next = i == last ? 0 : i + 1;
  const std::int64_t cycle = 2LL * rule.stages();
  const std::int64_t time = rule.backward_time(i, stage, 0);
  if (i > 0) add_arrival(builder, rule, spec, {i, i}, stage, chain, arriving);
  const MessageEnd total_out =
      total_line(rule, spec, Direction::send, chain.first_program + next, stage, chain.own);
  if (i == last) {
    builder.add(time, Phase::reduce, total_out.start());
  } else {
    MessageEnd out = total_out;
    out.payload = Payload::gradient;
    out.micro_batch = i;
    const int before = i == 0 ? last : i - 1;
    const MessageEnd total_in =
        total_line(rule, spec, Direction::receive, chain.first_program + before, stage, chain.own);
    builder.add(time, Phase::reduce, out.start());
    builder.add(cycle - 1, Phase::late_wait, out.wait());
    builder.add(cycle - 1, Phase::late_post, total_in.start());
    builder.add(cycle, Phase::update, total_in.wait());
    if (next != last) builder.add(cycle, Phase::update, total_out.start());
  }
  if (next != last) builder.add(time + cycle, Phase::before_post, total_out.wait());
}

MessageEnd total_line(const Rule& rule, const ScheduleSpec& spec, Direction direction, int peer,
                      int stage, int buffer) {
  return {.payload = Payload::total,
          .direction = direction,
          .peer = peer,
          .stage = stage,
          .micro_batch = rule.micro_batches() - 1,
          .bytes = spec.message_bytes[stage],
          .buffer = buffer};
}

AlternatingBuffers add_ring_passes(ProgramBuilder& builder, const Rule& rule,
                                   const ScheduleSpec& spec, const std::vector<int>& owner,
                                   int device, std::vector<GradientBuffer>& gradients) {
  const int last = rule.micro_batches() - 1;
  const int stages = rule.stages();
  const std::int64_t begin = rule.offset(device);
  const Term term = term_of(rule, spec, device);
  const bool has_sum = device == term.last;
  const bool adds = has_sum && term.first > 0;
  // What is summed by a collective takes another time step; the last stages of a backward keep
  // their totals until all are measured.
  const auto kept = needs_norms(spec) && device == last ? std::ranges::count(owner, last) : 0;
  const AlternatingBuffers own(stages, 0, std::max<std::int64_t>(term.joint() ? 3 : 2, kept));
  own.append_to(gradients);
  const std::int64_t gap = adds ? begin - rule.offset(term.first - 1) : 0;
  const AlternatingBuffers arriving(stages, own.count(), gap);
  if (adds) arriving.append_to(gradients);

  add_load(builder, {.micro_batch = device, .forward_time = begin});
  for (int j = stages - 1; j >= 0; --j) {
    const Pass pass = pass_of(rule, device, j);
    add_forward(builder, rule, pass);
    add_backward(builder, rule, pass, own.of(j));
    if (term.joint())
      add_joint_sum(builder, spec, pass, term, rule.slot(device), term.last, own.of(j));
    if (adds) add_arrival(builder, rule, spec, term, j, {.own = own.of(j)}, arriving);
    if (has_sum && (device != last || owner[j] != last)) {
      MessageEnd line = total_line(rule, spec, Direction::send, owner[j], j, own.of(j));
      if (device != last) {
        line.payload = Payload::gradient;
        line.peer = term_of(rule, spec, device + 1).last;
        line.micro_batch = device;
      }
      builder.add(pass.backward_time + term.delay, Phase::reduce, line.start());
      builder.add(pass.backward_time + own.reuse_after(j), Phase::before_post, line.wait());
    }
    add_release(builder, pass);
  }
  return own;
}

void add_tokens(ProgramBuilder& builder, const Rule& rule, int device, int apart) {
  const std::int64_t begin = rule.offset(device);
  if (device >= apart) {
    const MessageEnd token{.payload = Payload::token,
                           .direction = Direction::receive,
                           .peer = device - apart,
                           .micro_batch = device};
    builder.add(begin, Phase::pace, token.start());
    builder.add(begin, Phase::pace, token.wait());
  }
  const int next = device + apart;
  if (next < rule.micro_batches()) {
    const MessageEnd token{
        .payload = Payload::token, .direction = Direction::send, .peer = next, .micro_batch = next};
    const std::int64_t ahead = rule.offset(next) - begin;
    if (ahead == 0)
      builder.add(begin, Phase::pace, token.start());
    else
      builder.add(begin + ahead - 1, Phase::leave, token.start());
    builder.add(begin + 2 * rule.stages() - 1, Phase::late_wait, token.wait());
  }
}

int first_fresh(const Rule& rule, int stage) {
  const int last = rule.slot(rule.micro_batches() - 1);
  const int slack = rule.slack() <= stage ? rule.slack() : 0;
  for (int i = 0; i < rule.micro_batches(); ++i) {
    if (rule.slot(i) + stage >= last + slack) return i;
  }
  return rule.micro_batches() - 1;
}

BufferCounts counts_of(const Rule& rule, int first_stage, int last_stage) {
  BufferCounts counts;
  counts.first_stage = first_stage;
  counts.last_stage = last_stage;
  counts.parameter_copies = rule.versions();
  counts.optimizer.assign(rule.stages(), false);
  for (int j = first_stage; j <= last_stage; ++j) {
    counts.owned.push_back(j);
    counts.optimizer[j] = true;
  }
  return counts;
}

}  // namespace carousel::placements
