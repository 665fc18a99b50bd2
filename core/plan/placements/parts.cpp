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

Pass last_pass_of(const Rule& rule, int worker, int j) {
  return pass_of(rule, rule.last_of(worker), j);
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

void add_summed_backward(ProgramBuilder& builder, const Rule& rule, const Pass& pass,
                         const WorkerSum& buffers) {
  const int i = pass.micro_batch;
  const int worker = rule.worker_of(i);
  const bool first = i == rule.first_of(worker);
  const bool last = i == rule.last_of(worker);
  const auto add = [&](int to, int from) {
    builder.add(pass.backward_time, Phase::compute, accumulate(i, pass.stage, to, from));
  };
  if (buffers.before >= 0 && !(first && last)) {
    const int filled = first ? buffers.before : last ? buffers.sum : buffers.pass;
    add_backward(builder, rule, pass, filled);
    if (last)
      add(buffers.sum, buffers.before);
    else if (!first)
      add(buffers.before, buffers.pass);
    return;
  }
  add_backward(builder, rule, pass, first ? buffers.sum : buffers.pass);
  if (!first) add(buffers.sum, buffers.pass);
}

void add_total_backward(ProgramBuilder& builder, const Rule& rule, const Pass& pass, int total,
                        const WorkerSum& buffers) {
  const int i = pass.micro_batch;
  const int worker = rule.worker_of(i);
  if (worker == 0) return add_summed_backward(builder, rule, pass, {total, buffers.pass});
  add_summed_backward(builder, rule, pass, buffers);
  if (i == rule.last_of(worker))
    builder.add(pass.backward_time, Phase::compute, accumulate(i, pass.stage, total, buffers.sum));
}

int append_pass_buffer(const Rule& rule, std::vector<GradientBuffer>& gradients) {
  if (rule.passes() == 1) return -1;
  GradientBuffer any;
  for (int j = 0; j < rule.stages(); ++j) any.stages.push_back(j);
  gradients.push_back(std::move(any));
  return static_cast<int>(gradients.size()) - 1;
}

FreeParameters free_parameters(const Rule& rule, int worker, int stage) {
  // The one copy of dp is read by all passes, the older one of two by those that are not fresh.
  const int end = rule.cyclic() ? rule.first_fresh(worker, stage) : rule.last_of(worker) + 1;
  if (end == rule.first_of(worker)) return {rule.offset(worker), false};
  return {rule.backward_time(end - 1, stage, 0), true};
}

AlternatingBuffers::AlternatingBuffers(int stages, int first_buffer, std::int64_t time_steps)
    : stages_(stages),
      first_(first_buffer),
      count_(
          static_cast<int>(std::min<std::int64_t>(stages, std::max<std::int64_t>(2, time_steps)))) {
}

std::int64_t AlternatingBuffers::reuse_after(int stage, std::int64_t again) const {
  if (stage - count_ >= 0) return count_;
  int next = stages_ - 1;
  while (of(next) != of(stage)) --next;
  return again + stage - next;
}

void AlternatingBuffers::append_to(std::vector<GradientBuffer>& gradients, int shard) const {
  gradients.resize(gradients.size() + count_, {.stages = {}, .shard = shard});
  for (int j = 0; j < stages_; ++j) gradients[of(j)].stages.push_back(j);
}

Term term_of(const Rule& rule, const ScheduleSpec& spec, int worker) {
  Term term{worker, worker};
  if (!rule.cyclic() || spec.parallel.reduction != Reduction::fast) return term;
  term = {rule.first_in_slot(worker), rule.last_in_slot(worker)};
  const bool spare = traits_of(spec.parallel.placement).totals_may_wait && rule.slack() > 0;
  if (term.joint() && (term.last + 1 < rule.workers() || spare)) term.delay = 1;
  return term;
}

void add_joint_sum(ProgramBuilder& builder, const Rule& rule, const ScheduleSpec& spec,
                   const Pass& pass, const Term& term, int group, int root, int buffer) {
  const int last = rule.last_of(term.last);
  const CollectiveCall sum{.kind = ActionKind::reduce,
                           .payload = Payload::gradient,
                           .group = group,
                           .root = root,
                           .stage = pass.stage,
                           .micro_batch = last,
                           .bytes = spec.message_bytes[pass.stage],
                           .buffer = buffer};
  const Turns turns{pass.turn, pass.turn};
  const std::int64_t delay = pass.micro_batch == last ? term.delay : 1;
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
  for (int w = 0; w < rule.workers(); ++w) groups[rule.cyclic() ? rule.slot_of(w) : 0].push_back(w);
  return groups;
}

std::int64_t total_time(const Rule& rule, const ScheduleSpec& spec, int stage) {
  const int last = rule.workers() - 1;
  return rule.gradient_time(last, stage, 0) + term_of(rule, spec, last).delay + 1;
}

void add_arrival(ProgramBuilder& builder, const Rule& rule, const ScheduleSpec& spec,
                 const Term& term, int stage, Chain chain, const AlternatingBuffers& arriving) {
  const std::int64_t begin = rule.offset(term.last) + term.delay;
  const std::int64_t time = rule.gradient_time(term.last, stage, 0) + term.delay;
  const MessageEnd line{.payload = Payload::gradient,
                        .direction = Direction::receive,
                        .peer = chain.first_program + term.first - 1,
                        .stage = stage,
                        .micro_batch = rule.last_of(term.first - 1),
                        .bytes = spec.message_bytes[stage],
                        .buffer = arriving.of(stage)};
  if (arriving.first_in_step(stage))
    builder.add(begin, Phase::post, line.start());
  else
    builder.add(time - arriving.count(), Phase::late_post, line.start());
  builder.add(time, Phase::reduce, line.wait());
  builder.add(time, Phase::reduce,
              accumulate(rule.last_of(term.last), stage, chain.own, line.buffer));
}

void add_dp_chain(ProgramBuilder& builder, const Rule& rule, const ScheduleSpec& spec, int worker,
                  int stage, Chain chain, const AlternatingBuffers& arriving) {
  const int last = rule.workers() - 1;
  const int next = worker == last ? 0 : worker + 1;
  const std::int64_t cycle = rule.period();
  const std::int64_t time = rule.gradient_time(worker, stage, 0);
  const std::int64_t reuse = rule.backward_time(rule.first_of(worker), stage, 1);
  if (worker > 0) add_arrival(builder, rule, spec, {worker, worker}, stage, chain, arriving);
  const MessageEnd total_out =
      total_line(rule, spec, Direction::send, chain.first_program + next, stage, chain.own);
  if (worker == last) {
    builder.add(time, Phase::reduce, total_out.start());
  } else {
    MessageEnd out = total_out;
    out.payload = Payload::gradient;
    out.micro_batch = rule.last_of(worker);
    const int before = worker == 0 ? last : worker - 1;
    const MessageEnd total_in =
        total_line(rule, spec, Direction::receive, chain.first_program + before, stage, chain.own);
    builder.add(time, Phase::reduce, out.start());
    builder.add(cycle - 1, Phase::late_wait, out.wait());
    builder.add(cycle - 1, Phase::late_post, total_in.start());
    builder.add(cycle, Phase::update, total_in.wait());
    if (next != last) builder.add(cycle, Phase::update, total_out.start());
  }
  if (next != last) builder.add(reuse, Phase::before_post, total_out.wait());
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
  const int last = rule.workers() - 1;
  const int stages = rule.stages();
  const std::int64_t begin = rule.offset(device);
  const Term term = term_of(rule, spec, device);
  const bool has_sum = device == term.last;
  const bool adds = has_sum && term.first > 0;
  // What is summed by a collective takes another time step; the last stages of a backward keep
  // their totals until all are measured; and sums over passes are of all stages.
  const auto kept = needs_norms(spec) && device == last ? std::ranges::count(owner, last) : 0;
  const std::int64_t apart = rule.passes() > 1 ? stages : term.joint() ? 3 : 2;
  const AlternatingBuffers own(stages, 0, std::max<std::int64_t>(apart, kept));
  own.append_to(gradients);
  const int pass_buffer = append_pass_buffer(rule, gradients);
  const std::int64_t gap = adds ? begin - rule.offset(term.first - 1) : 0;
  const AlternatingBuffers arriving(stages, static_cast<int>(gradients.size()), gap);
  if (adds) arriving.append_to(gradients);

  add_passes(builder, rule, device,
             [&](int j) { return WorkerSum{.sum = own.of(j), .pass = pass_buffer}; });
  for (int j = stages - 1; j >= 0; --j) {
    const Pass pass = last_pass_of(rule, device, j);
    if (term.joint())
      add_joint_sum(builder, rule, spec, pass, term, rule.slot_of(device), term.last, own.of(j));
    if (adds) add_arrival(builder, rule, spec, term, j, {.own = own.of(j)}, arriving);
    if (has_sum && (device != last || owner[j] != last)) {
      MessageEnd line = total_line(rule, spec, Direction::send, owner[j], j, own.of(j));
      if (device != last) {
        line.payload = Payload::gradient;
        line.peer = term_of(rule, spec, device + 1).last;
        line.micro_batch = rule.last_of(device);
      }
      builder.add(pass.backward_time + term.delay, Phase::reduce, line.start());
      // The next to fill the buffer is the first pass of the next step, where there are several.
      builder.add(pass.backward_time + own.reuse_after(j, 2LL * stages), Phase::before_post,
                  line.wait());
    }
  }
  return own;
}

void add_tokens(ProgramBuilder& builder, const Rule& rule, int device, int apart) {
  const std::int64_t begin = rule.offset(device);
  if (device >= apart) {
    const MessageEnd token{.payload = Payload::token,
                           .direction = Direction::receive,
                           .peer = device - apart,
                           .micro_batch = rule.first_of(device)};
    builder.add(begin, Phase::pace, token.start());
    builder.add(begin, Phase::pace, token.wait());
  }
  const int next = device + apart;
  if (next < rule.workers()) {
    const MessageEnd token{.payload = Payload::token,
                           .direction = Direction::send,
                           .peer = next,
                           .micro_batch = rule.first_of(next)};
    const std::int64_t ahead = rule.offset(next) - begin;
    if (ahead == 0)
      builder.add(begin, Phase::pace, token.start());
    else
      builder.add(begin + ahead - 1, Phase::leave, token.start());
    builder.add(begin + rule.period() - 1, Phase::late_wait, token.wait());
  }
}

int first_reader(const Rule& rule, int stage) {
  const bool read = rule.cyclic() && rule.fresh(rule.micro_batches() - 1, stage);
  const Rule without_slack(RuleKind::cdp_v2, rule.micro_batches(), rule.stages(), 0, false,
                           rule.passes());
  const Rule& reads = read ? rule : without_slack;
  int first = 0;
  for (int w = 1; w < rule.workers(); ++w) {
    if (reads.first_use(w, stage, 0) < reads.first_use(first, stage, 0)) first = w;
  }
  return first;
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
