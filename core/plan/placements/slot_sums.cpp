// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/placements/slot_sums.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace carousel::placements {
namespace {

std::int64_t buffers_of_own(const Rule& rule, const SumTimes& times, bool keeps_in_own) {
  const bool all = rule.passes() > 1 || times.keeps_all || (times.keeps_totals && keeps_in_own);
  return all ? rule.stages() : 3;
}

}  // namespace

int slots_of(const Rule& rule) {
  return rule.together() ? 1 : rule.stages();
}

Rule ring_of(const Rule& rule) {
  return {rule.kind(),     slots_of(rule) * rule.passes(),
          rule.stages(),   rule.slack(),
          rule.together(), rule.passes()};
}

SlotPlace::SlotPlace(const Rule& rule, const ScheduleSpec& spec, int device)
    : rule_(rule),
      spec_(spec),
      slots_(slots_of(rule)),
      replicas_(rule.workers() / slots_),
      device_(device) {}

bool SlotPlace::has_piece(int stage, int replica) const {
  bool found = false;
  for_each_piece(stage, [&](int piece) { found = found || replica_of(piece) == replica; });
  return found;
}

MessageEnd SlotPlace::line(Payload payload, Direction direction, int peer, int stage,
                           int piece) const {
  const PieceBytes& bytes = spec_.pieces[stage][piece];
  const bool gradients =
      payload == Payload::part || payload == Payload::gradient || payload == Payload::total;
  return {.payload = payload,
          .direction = direction,
          .peer = peer,
          .stage = stage,
          .piece = piece,
          .bytes = gradients                   ? bytes.gradients
                   : payload == Payload::norms ? bytes.norms
                                               : bytes.parameters};
}

CollectiveCall SlotPlace::gather(Payload payload, int stage, int piece,
                                 std::int64_t version) const {
  CollectiveCall call{.kind = ActionKind::all_gather,
                      .payload = payload,
                      .group = slot(),
                      .stage = stage,
                      .piece = piece,
                      .version = version};
  for (int p = piece; p < piece + replicas_; ++p) call.bytes += spec_.pieces[stage][p].parameters;
  return call;
}

CollectiveCall SlotPlace::scatter(int stage, int piece, int source, int sum) const {
  CollectiveCall call{.kind = ActionKind::reduce_scatter,
                      .payload = Payload::part,
                      .group = slot(),
                      .stage = stage,
                      .piece = piece,
                      .micro_batch = last_of_slot(slot()),
                      .buffer = sum,
                      .source = source};
  for (int p = piece; p < piece + replicas_; ++p) call.bytes += spec_.pieces[stage][p].gradients;
  return call;
}

SlotSums::SlotSums(const Rule& rule, const ScheduleSpec& spec, const SlotPlace& place,
                   std::vector<int> owner, SumTimes times, ProgramBuilder& builder,
                   BufferCounts& counts)
    : rule_(rule),
      spec_(spec),
      place_(place),
      owner_(std::move(owner)),
      times_(std::move(times)),
      builder_(builder),
      counts_(counts),
      fast_(is_fast(spec, place)),
      own_(rule.stages(), 0, buffers_of_own(rule, times_, keeps_in_own())) {
  make_buffers();
}

void SlotSums::make_buffers() {
  const int stages = rule_.stages();
  const int replicas = place_.replicas();
  std::vector<GradientBuffer>& gradients = counts_.gradients;
  own_.append_to(gradients);
  pass_buffer_ = append_pass_buffer(rule_, gradients);
  // Sums that run beside the next step need what its passes would overwrite.
  if (rule_.passes() > 1 && rule_.together() && rule_.cyclic()) {
    first_before_ = static_cast<int>(gradients.size());
    for (int j = 0; j < stages; ++j) gradients.push_back({{j}});
  }
  const auto chunks_of = [&](int stage) { return std::ssize(spec_.pieces[stage]) / replicas; };
  std::ptrdiff_t most = 0;
  for (int j = 0; j < stages; ++j) most = std::max(most, chunks_of(j));
  const AlternatingBuffers none(stages, 0);
  const std::int64_t gap = place_.slot() > 0 ? rule_.offset(place_.device()) -
                                                   rule_.offset(place_.twin(place_.slot() - 1))
                                             : 0;
  for (std::ptrdiff_t c = 0; c < most; ++c) {
    const auto next = [&](std::int64_t time_steps) {
      const auto first = std::ssize(gradients);
      const AlternatingBuffers buffers(stages, static_cast<int>(first), time_steps);
      buffers.append_to(gradients, place_.replica());
      for (auto& buffer : std::span(gradients).subspan(first))
        std::erase_if(buffer.stages, [&](int j) { return chunks_of(j) <= c; });
      return buffers;
    };
    ChunkBuffers chunk{.arriving = place_.slot() > 0 ? next(gap) : none, .others = {}};
    // The first one keeps the sum until it is sent or read.
    for (int q = 0; q < replicas; ++q) {
      const bool sum = q == first_other();
      const bool all = times_.keeps_all || (sum && times_.keeps_totals);
      const std::int64_t time_steps = all ? stages : sum ? times_.kept : times_.delay + 1;
      const bool used = q != place_.replica() && (!fast_ || sum);
      chunk.others.push_back(used ? next(time_steps) : none);
    }
    buffers_.push_back(std::move(chunk));
  }
}

WorkerSum SlotSums::own(int stage) const {
  return {.sum = own_.of(stage),
          .pass = pass_buffer_,
          .before = first_before_ < 0 ? -1 : first_before_ + stage};
}

std::int64_t SlotSums::reuse_of_own(int stage) const {
  const bool first_pass = first_before_ < 0;  // of the next step overwrites it, or the last one
  return own_.reuse_after(stage, first_pass ? 2LL * rule_.stages() : rule_.period());
}

void SlotSums::add_parts_out(const Pass& pass) {
  const int j = pass.stage;
  if (fast_)
    return place_.for_each_chunk(j, [&](int piece) {
      builder_.add(pass.backward_time, Phase::leave,
                   place_.scatter(j, piece, own_.of(j), sum_buffer(j, piece)).start());
    });
  place_.for_each_piece(j, [&](int piece) {
    if (place_.is_mine(piece)) return;
    const int peer = place_.device_of(place_.slot(), place_.replica_of(piece));
    MessageEnd out = place_.line(Payload::part, Direction::send, peer, j, piece);
    out.micro_batch = rule_.last_of(place_.device());
    out.buffer = own_.of(j);
    builder_.add(pass.backward_time, Phase::leave, out.start());
    builder_.add(pass.backward_time + reuse_of_own(j), Phase::before_post, out.wait());
  });
}

void SlotSums::add_sums(const Pass& pass, Phase phase) {
  const int j = pass.stage;
  if (fast_)
    place_.for_each_chunk(j, [&](int piece) {
      builder_.add(times_.sums[j], phase,
                   place_.scatter(j, piece, own_.of(j), sum_buffer(j, piece)).wait());
    });
  place_.for_each_own(j, [&](int piece) { add_sum(pass, piece, phase); });
}

void SlotSums::add_sum(const Pass& pass, int piece, Phase phase) {
  const int j = pass.stage;
  const int slot = place_.slot();
  const std::int64_t time = times_.sums[j];
  const ChunkBuffers& buffers = buffers_[piece / place_.replicas()];
  std::vector<Addend> terms;
  const auto arrive = [&](MessageEnd in, const AlternatingBuffers& where, int micro_batch) {
    in.micro_batch = micro_batch;
    in.buffer = where.of(j);
    terms.push_back({micro_batch, in.buffer});
    // Sums stay until they have left, or all are added up behind the backward of all stages.
    if (times_.keeps_all || in.buffer == sum_buffer(j, piece))
      builder_.add(pass.backward_time, Phase::post, in.start());
    else if (where.first_in_step(j))
      builder_.add(rule_.offset(place_.device()) + time - pass.backward_time, Phase::post,
                   in.start());
    else
      builder_.add(times_.sums[j + where.count()], Phase::late_post, in.start());
    builder_.add(time, phase, in.wait());
  };
  if (slot > 0)
    arrive(place_.line(Payload::gradient, Direction::receive, place_.twin(slot - 1), j, piece),
           buffers.arriving, place_.last_of_slot(slot - 1));
  if (fast_) terms.push_back({place_.last_of_slot(slot), sum_buffer(j, piece)});
  for (int q = 0; q < place_.replicas() && !fast_; ++q) {
    const int device = place_.device_of(slot, q);
    if (q == place_.replica())
      terms.push_back({rule_.last_of(device), own_.of(j)});
    else
      arrive(place_.line(Payload::part, Direction::receive, device, j, piece), buffers.others[q],
             rule_.last_of(device));
  }
  // In index order, into one of the first two.
  const int sum = sum_buffer(j, piece);
  for (std::size_t k = 1; k < terms.size(); ++k) {
    const int added = terms[k].buffer == sum ? terms[0].buffer : terms[k].buffer;
    builder_.add(time, phase, accumulate(terms[k].micro_batch, j, sum, added, piece));
  }
  if (slot + 1 < place_.slots())
    add_sum_out(pass, piece, Payload::gradient, slot + 1);
  else if (owner_[j] == slot)
    totals_[{j, piece}] = sum;
  else
    add_sum_out(pass, piece, Payload::total, owner_[j]);
}

void SlotSums::add_sum_out(const Pass& pass, int piece, Payload payload, int slot) {
  const int j = pass.stage;
  MessageEnd out = place_.line(payload, Direction::send, place_.twin(slot), j, piece);
  out.micro_batch = place_.last_of_slot(place_.slot());
  out.buffer = sum_buffer(j, piece);
  builder_.add(times_.sums[j], Phase::reduce, out.start());
  const std::int64_t reuse =
      keeps_in_own() ? reuse_of_own(j)
                     : buffers_[piece / place_.replicas()].others[first_other()].reuse_after(
                           j, rule_.period());
  builder_.add(pass.backward_time + reuse, Phase::before_post, out.wait());
}

/// Whether sums grow where backward leaves gradients: what comes first must be among the first
/// two terms of the sum, and of the first replica of a later slot nothing else stays long enough.
bool SlotSums::keeps_in_own() const {
  return place_.replicas() == 1 || (!fast_ && place_.replica() == 0 && place_.slot() > 0);
}

int SlotSums::sum_buffer(int stage, int piece) const {
  return keeps_in_own() ? own_.of(stage)
                        : buffers_[piece / place_.replicas()].others[first_other()].of(stage);
}

void SlotSums::add_totals(int stage, std::int64_t time) {
  if (place_.slot() + 1 == place_.slots()) return;  // sums are made here
  place_.for_each_own(stage, [&](int piece) {
    const auto buffer = static_cast<int>(counts_.gradients.size());
    totals_[{stage, piece}] = buffer;
    counts_.gradients.push_back({.stages = {stage}, .shard = place_.replica()});
    MessageEnd in = place_.line(Payload::total, Direction::receive, place_.twin(place_.slots() - 1),
                                stage, piece);
    in.micro_batch = rule_.micro_batches() - 1;
    in.buffer = buffer;
    builder_.add(std::max(rule_.offset(place_.device()), time - rule_.period()), Phase::post,
                 in.start());
    builder_.add(time, Phase::update, in.wait());
  });
}

void SlotSums::add_norms_of(const std::vector<int>& stages, std::int64_t time) {
  std::vector<MessageEnd> messages;
  for (const int j : stages) {
    const auto asks = [&](int replica) {
      return needs_norms(spec_) || place_.has_piece(j, replica);
    };
    place_.for_each_piece(j, [&](int piece) {
      if (spec_.pieces[j][piece].norms == 0 || !asks(place_.replica())) return;
      const bool mine = place_.is_mine(piece);
      if (mine) builder_.add(time, Phase::update, measure(j, totals_.at({j, piece}), piece));
      place_.for_each_other([&](int q) {
        if (mine ? !asks(q) : q != place_.replica_of(piece)) return;
        messages.push_back(place_.line(Payload::norms, mine ? Direction::send : Direction::receive,
                                       place_.device_of(place_.slot(), q), j, piece));
      });
    });
  }
  for (const MessageEnd& message : messages) builder_.add(time, Phase::update, message.start());
  for (const MessageEnd& message : messages) builder_.add(time, Phase::update, message.wait());
}

void SlotSums::add_update(int stage, int piece, std::int64_t time) {
  builder_.add(time, Phase::update, update(stage, totals_.at({stage, piece}), piece));
}

bool is_fast(const ScheduleSpec& spec, const SlotPlace& place) {
  return spec.parallel.reduction == Reduction::fast && place.replicas() > 1;
}

std::vector<std::vector<int>> groups_of_slots(const Rule& rule, const ScheduleSpec& spec) {
  std::vector<std::vector<int>> groups;
  if (spec.parallel.reduction != Reduction::fast) return groups;
  groups.resize(slots_of(rule));
  const auto replicas = rule.workers() / std::ssize(groups);
  for (int device = rule.workers() - 1; device >= 0; --device)
    groups[device / replicas].push_back(device);
  return groups;
}

}  // namespace carousel::placements
