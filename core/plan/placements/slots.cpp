// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/placements/slots.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/plan/pieces.hpp"
#include "core/plan/placements/hand_on.hpp"
#include "core/plan/placements/parts.hpp"

namespace carousel::placements {
namespace {

/// Slots that a training step goes through: where micro-batches run together, one.
int slots_of(const Rule& rule) {
  return rule.together() ? 1 : rule.stages();
}

/// The ring that all replicas are copies of: a single device in every slot.
Rule ring_of(const Rule& rule) {
  return {rule.kind(), slots_of(rule), rule.stages(), rule.slack(), rule.together()};
}

/// Time steps between a backward and the sum of a slot, in which its pieces travel inside the slot.
/// Totals have one to spare only where slack gives it.
std::int64_t sum_delay(const Rule& ring, int slot, int replicas) {
  const bool completes = slot + 1 == ring.micro_batches();
  return replicas > 1 && (!completes || ring.slack() > 0) ? 1 : 0;
}

/// When the total of a stage can be used. Without a ring half of the time from a backward to the
/// forward that reads new parameters is for sums: of dp up to the end of the step, and a little
/// more where nobody waits for all; late sums have a step more.
std::int64_t ready_at(const Rule& ring, const ScheduleSpec& spec, int stage, int replicas) {
  const int last = ring.micro_batches() - 1;
  if (!ring.together())
    return ring.backward_time(last, stage, 0) + sum_delay(ring, last, replicas) + 1;
  const std::int64_t end = 2LL * ring.stages();
  if (ring.cyclic()) return end + ring.stages();
  return spec.parallel.updates == Updates::eager && !needs_norms(spec) ? end + stage / 2 : end;
}

/// When a device of slot `slot` has new parameters of a stage, in time steps from the start of the
/// step that made them.
class NewParameters {
 public:
  NewParameters(const Rule& rule, const ScheduleSpec& spec, int stage, int replicas)
      : ring_(ring_of(rule)),
        stage_(stage),
        owner_(rule.together() ? 0 : first_fresh(ring_, stage)),
        times_(ring_, stage, owner_, ready_at(ring_, spec, stage, replicas),
               replicas > 1 && !rule.together() ? 1 : 0) {}

  /// The slot that makes them.
  [[nodiscard]] int owner() const { return owner_; }
  [[nodiscard]] std::int64_t time_at(int slot) const { return times_.time_at(slot); }
  [[nodiscard]] std::int64_t first_use(int slot) const {
    return HandOn::first_use(ring_, slot, stage_);
  }

 private:
  Rule ring_;
  int stage_;
  int owner_;
  HandOn times_;
};

/// All about one device.
class SlotDevice {
 public:
  SlotDevice(const Rule& rule, const ScheduleSpec& spec, const std::vector<NewParameters>& news,
             int device)
      : rule_(rule),
        spec_(spec),
        news_(news),
        stages_(rule.stages()),
        slots_(slots_of(rule)),
        replicas_(rule.micro_batches() / slots_),
        device_(device),
        slot_(device / replicas_),
        replica_(device % replicas_),
        fast_(spec.parallel.reduction == Reduction::fast && replicas_ > 1),
        delay_(sum_delay(ring_of(rule), slot_, replicas_)),
        builder_(2LL * stages_),
        own_(stages_, 0, rule.together() ? stages_ : 3),
        counts_(counts_of(rule, 0, stages_ - 1)) {
    make_buffers();
  }

  Program program() {
    if (!rule_.together()) add_tokens(builder_, rule_, device_, replicas_);
    add_load(builder_, {.micro_batch = device_, .forward_time = rule_.offset(device_)});
    for (int j = stages_ - 1; j >= 0; --j) {
      const Pass pass = pass_of(rule_, device_, j);
      add_forward(builder_, rule_, pass);
      add_backward(builder_, rule_, pass, own_.of(j));
      add_parts_out(pass);
      if (!rule_.together()) add_sums(pass, pass.backward_time + delay_, Phase::reduce);
      add_release(builder_, pass);
    }
    if (rule_.together())
      add_joint_updates();
    else
      add_ring_updates();
    return {.first_device = device_, .actions = builder_.fold(), .buffers = std::move(counts_)};
  }

 private:
  /// Buffers for one chunk of every stage, which take its stages in turn.
  struct ChunkBuffers {
    AlternatingBuffers arriving;             // from the slot before
    std::vector<AlternatingBuffers> others;  // [replica] what they add; of the own one unused
  };

  void make_buffers() {
    counts_.shard = replica_;
    own_.append_to(counts_.gradients);
    const auto next = [&](std::int64_t time_steps) {
      const AlternatingBuffers buffers(stages_, static_cast<int>(counts_.gradients.size()),
                                       time_steps);
      buffers.append_to(counts_.gradients, replica_);
      return buffers;
    };
    std::size_t most = 0;
    for (const std::vector<PieceBytes>& pieces : spec_.pieces) most = std::max(most, pieces.size());
    const AlternatingBuffers none(stages_, 0);
    for (std::size_t c = 0; c < most / replicas_; ++c) {
      ChunkBuffers chunk{.arriving = slot_ > 0 ? next(2) : none, .others = {}};
      // The first one keeps the sum until it is sent; without a ring all are added up at the end.
      for (int q = 0; q < replicas_; ++q) {
        const bool sum = q == first_other();
        const std::int64_t time_steps = rule_.together() ? stages_ : sum ? 3 : 2;
        const bool used = q != replica_ && (!fast_ || sum);
        chunk.others.push_back(used ? next(time_steps) : none);
      }
      buffers_.push_back(std::move(chunk));
    }
    for (int j = 0; j < stages_; ++j)
      counts_.optimizer[j] = news_[j].owner() == slot_ && has_piece(j, replica_);
  }

  [[nodiscard]] bool has_piece(int stage, int replica) const {
    bool found = false;
    for_each_piece(stage, [&](int piece) { found = found || replica_of(piece) == replica; });
    return found;
  }
  /// Calls visit with all pieces that have bytes.
  template <class Visit>
  void for_each_piece(int stage, Visit&& visit) const {
    for (int p = 0; p < std::ssize(spec_.pieces[stage]); ++p) {
      if (spec_.pieces[stage][p].gradients > 0) visit(p);
    }
  }
  [[nodiscard]] int replica_of(int piece) const { return piece % replicas_; }
  [[nodiscard]] bool is_mine(int piece) const { return replica_of(piece) == replica_; }
  [[nodiscard]] int device_of(int slot, int replica) const { return slot * replicas_ + replica; }
  /// The first of the slot whose gradients come from another device.
  [[nodiscard]] int first_other() const { return replica_ == 0 ? 1 : 0; }

  [[nodiscard]] MessageEnd line(Payload payload, Direction direction, int peer, int stage,
                                int piece) const {
    const PieceBytes& bytes = spec_.pieces[stage][piece];
    const bool parameters = payload == Payload::parameters;
    return {.payload = payload,
            .direction = direction,
            .peer = peer,
            .stage = stage,
            .piece = piece,
            .version = parameters ? 1 : 0,
            .bytes = parameters ? bytes.parameters : bytes.gradients};
  }

  /// Calls visit with the first piece of every chunk.
  template <class Visit>
  void for_each_chunk(int stage, Visit&& visit) const {
    for (int p = 0; p < std::ssize(spec_.pieces[stage]); p += replicas_) visit(p);
  }

  /// All pieces of a chunk, on their way inside the slot.
  [[nodiscard]] CollectiveCall joint(ActionKind kind, int stage, int piece) const {
    const bool sums = kind == ActionKind::reduce_scatter;
    CollectiveCall call{.kind = kind,
                        .payload = sums ? Payload::part : Payload::parameters,
                        .group = slot_,
                        .stage = stage,
                        .piece = piece,
                        .version = sums ? 0 : 1};
    for (int p = piece; p < piece + replicas_; ++p) {
      const PieceBytes& bytes = spec_.pieces[stage][p];
      call.bytes += sums ? bytes.gradients : bytes.parameters;
    }
    if (!sums) return call;
    call.micro_batch = device_of(slot_, replicas_ - 1);
    call.buffer = sum_buffer(stage, piece);
    call.source = own_.of(stage);
    return call;
  }

  /// The pieces of others, of the gradient of this micro-batch.
  void add_parts_out(const Pass& pass) {
    const int j = pass.stage;
    if (fast_)
      return for_each_chunk(j, [&](int piece) {
        builder_.add(pass.backward_time, Phase::leave,
                     joint(ActionKind::reduce_scatter, j, piece).start());
      });
    for_each_piece(j, [&](int piece) {
      if (is_mine(piece)) return;
      MessageEnd out =
          line(Payload::part, Direction::send, device_of(slot_, replica_of(piece)), j, piece);
      out.micro_batch = device_;
      out.buffer = own_.of(j);
      builder_.add(pass.backward_time, Phase::leave, out.start());
      builder_.add(pass.backward_time + own_.reuse_after(j), Phase::before_post, out.wait());
    });
  }

  /// The sums through this slot of the own pieces of a stage.
  void add_sums(const Pass& pass, std::int64_t time, Phase phase) {
    if (fast_)
      for_each_chunk(pass.stage, [&](int piece) {
        builder_.add(time, phase, joint(ActionKind::reduce_scatter, pass.stage, piece).wait());
      });
    for_each_piece(pass.stage, [&](int piece) {
      if (is_mine(piece)) add_sum(pass, piece, time, phase);
    });
  }

  /// A gradient, or a sum of some, that one of a slot is added to.
  struct Addend {
    int micro_batch = 0;  // the newest in it
    int buffer = 0;
  };

  void add_sum(const Pass& pass, int piece, std::int64_t time, Phase phase) {
    const int j = pass.stage;
    const ChunkBuffers& buffers = buffers_[piece / replicas_];
    std::vector<Addend> terms;
    const auto arrive = [&](MessageEnd in, const AlternatingBuffers& where, int micro_batch) {
      in.micro_batch = micro_batch;
      in.buffer = where.of(j);
      terms.push_back({micro_batch, in.buffer});
      // Sums stay until they have left, or all are added up behind the backward of all stages.
      if (rule_.together() || in.buffer == sum_buffer(j, piece))
        builder_.add(pass.backward_time, Phase::post, in.start());
      else if (where.first_in_step(j))
        builder_.add(rule_.offset(device_) + delay_, Phase::post, in.start());
      else
        builder_.add(time - where.count(), Phase::late_post, in.start());
      builder_.add(time, phase, in.wait());
    };
    if (slot_ > 0)
      arrive(line(Payload::gradient, Direction::receive, device_of(slot_ - 1, replica_), j, piece),
             buffers.arriving, device_of(slot_, 0) - 1);
    if (fast_) terms.push_back({device_of(slot_, replicas_ - 1), sum_buffer(j, piece)});
    for (int q = 0; q < replicas_ && !fast_; ++q) {
      const int micro_batch = device_of(slot_, q);
      if (q == replica_)
        terms.push_back({micro_batch, own_.of(j)});
      else
        arrive(line(Payload::part, Direction::receive, micro_batch, j, piece), buffers.others[q],
               micro_batch);
    }
    // In index order, into one of the first two.
    const int sum = sum_buffer(j, piece);
    for (std::size_t k = 1; k < terms.size(); ++k) {
      const int added = terms[k].buffer == sum ? terms[0].buffer : terms[k].buffer;
      builder_.add(time, phase, accumulate(terms[k].micro_batch, j, sum, added, piece));
    }
    if (slot_ + 1 < slots_)
      add_sum_out(pass, piece, time, Payload::gradient, slot_ + 1);
    else if (news_[j].owner() != slot_)
      add_sum_out(pass, piece, time, Payload::total, news_[j].owner());
  }

  void add_sum_out(const Pass& pass, int piece, std::int64_t time, Payload payload, int slot) {
    const int j = pass.stage;
    MessageEnd out = line(payload, Direction::send, device_of(slot, replica_), j, piece);
    out.micro_batch = device_of(slot_, replicas_ - 1);
    out.buffer = sum_buffer(j, piece);
    builder_.add(time, Phase::reduce, out.start());
    const AlternatingBuffers& buffers =
        keeps_in_own() ? own_ : buffers_[piece / replicas_].others[first_other()];
    builder_.add(pass.backward_time + buffers.reuse_after(j), Phase::before_post, out.wait());
  }

  /// Whether sums grow where backward leaves gradients: what comes first must be among the first
  /// two terms of the sum, and of the first replica of a later slot nothing else stays long enough.
  [[nodiscard]] bool keeps_in_own() const {
    return replicas_ == 1 || (!fast_ && replica_ == 0 && slot_ > 0);
  }
  [[nodiscard]] int sum_buffer(int stage, int piece) const {
    return keeps_in_own() ? own_.of(stage)
                          : buffers_[piece / replicas_].others[first_other()].of(stage);
  }

  void add_ring_updates() {
    for (int j = stages_ - 1; j >= 0; --j) {
      const std::int64_t time = news_[j].time_at(slot_);
      if (news_[j].owner() == slot_) {
        add_totals(j, time);
        add_norms_of({j}, time);
      }
      add_new_parameters(j);
    }
  }

  /// Each device has what it updates. Stages that are read first come first; where all wait for all
  /// sums, because they want to or need all norms, those come before any update.
  void add_joint_updates() {
    const bool waits = spec_.parallel.updates == Updates::together || needs_norms(spec_);
    const auto sums = [&](int j, std::int64_t time) {
      add_sums(pass_of(rule_, device_, j), time, Phase::update);
      for_each_piece(j, [&](int piece) {
        if (is_mine(piece)) totals_[{j, piece}] = sum_buffer(j, piece);
      });
    };
    std::vector<int> all;
    for (int j = 0; j < stages_; ++j) all.push_back(j);
    for (int j = 0; waits && j < stages_; ++j) sums(j, news_[j].time_at(slot_));
    if (needs_norms(spec_)) add_norms_of(all, news_.back().time_at(slot_));
    for (int j = 0; j < stages_; ++j) {
      if (!waits) sums(j, news_[j].time_at(slot_));
      if (!needs_norms(spec_)) add_norms_of({j}, news_[j].time_at(slot_));
      add_new_parameters(j);
    }
  }

  /// theta_{t+1} of a stage: pieces of the own shard are made here or received, and go on to the
  /// next slot and to the others of the slot; from whom come the pieces of other shards.
  void add_new_parameters(int stage) {
    const NewParameters& news = news_[stage];
    const bool owner = news.owner() == slot_;
    const std::int64_t cycle = 2LL * stages_;
    const std::int64_t here = news.time_at(slot_);
    const std::int64_t copies = rule_.versions();
    // The buffer of version t+1 is free once the version before in it was read for the last time.
    const bool fresh = copies > 1 && rule_.fresh(device_, stage);
    const std::int64_t free =
        fresh ? rule_.offset(device_) : rule_.backward_time(device_, stage, 0);
    const Phase free_phase = fresh ? Phase::post : Phase::late_post;
    const Phase sent_phase = fresh ? Phase::before_post : Phase::late_wait;
    const auto receive = [&](int peer, int piece, std::int64_t time, Phase phase) {
      const MessageEnd in = line(Payload::parameters, Direction::receive, peer, stage, piece);
      builder_.add(free, free_phase, in.start());
      builder_.add(time, phase, in.wait());
    };
    const auto send = [&](int peer, int piece) {
      const MessageEnd out = line(Payload::parameters, Direction::send, peer, stage, piece);
      builder_.add(here, owner ? Phase::update : Phase::receive_parameters, out.start());
      // So many steps later the same buffer is written again.
      if (owner)
        builder_.add(here + copies * cycle, Phase::before_update, out.wait());
      else
        builder_.add(free + copies * cycle, sent_phase, out.wait());
    };
    const int next = (slot_ + 1) % slots_;
    const int before = (slot_ + slots_ - 1) % slots_;
    for_each_piece(stage, [&](int piece) {
      if (!is_mine(piece)) {
        if (!fast_)
          receive(device_of(slot_, replica_of(piece)), piece, news.first_use(slot_), Phase::arrive);
        return;
      }
      if (owner)
        builder_.add(here, Phase::update, update(stage, totals_.at({stage, piece}), piece));
      else
        receive(device_of(before, replica_), piece, here, Phase::receive_parameters);
      if (next != news.owner()) send(device_of(next, replica_), piece);
      for (int q = 0; q < replicas_ && !fast_; ++q) {
        if (q != replica_) send(device_of(slot_, q), piece);
      }
    });
    if (!fast_) return;
    for_each_chunk(stage, [&](int piece) {
      const CollectiveCall gather = joint(ActionKind::all_gather, stage, piece);
      builder_.add(here, owner ? Phase::update : Phase::receive_parameters, gather.start());
      builder_.add(news.first_use(slot_), Phase::arrive, gather.wait());
    });
  }

  /// What updates of these stages need to know of all their pieces: everybody measures his own, and
  /// tells the others of the slot who update any.
  void add_norms_of(const std::vector<int>& stages, std::int64_t time) {
    std::vector<MessageEnd> messages;
    for (const int j : stages) {
      const auto asks = [&](int replica) { return needs_norms(spec_) || has_piece(j, replica); };
      for_each_piece(j, [&](int piece) {
        if (spec_.pieces[j][piece].norms == 0 || !asks(replica_)) return;
        const bool mine = is_mine(piece);
        if (mine) builder_.add(time, Phase::update, measure(j, totals_.at({j, piece}), piece));
        for (int q = 0; q < replicas_; ++q) {
          if (q == replica_ || (mine ? !asks(q) : q != replica_of(piece))) continue;
          messages.push_back(line(Payload::norms, mine ? Direction::send : Direction::receive,
                                  device_of(slot_, q), j, piece));
          messages.back().bytes = spec_.pieces[j][piece].norms;
        }
      });
    }
    for (const MessageEnd& message : messages) builder_.add(time, Phase::update, message.start());
    for (const MessageEnd& message : messages) builder_.add(time, Phase::update, message.wait());
  }

  /// The sums over all micro-batches of the own pieces, which come from the last slot.
  void add_totals(int stage, std::int64_t time) {
    for_each_piece(stage, [&](int piece) {
      if (!is_mine(piece)) return;
      int& buffer = totals_[{stage, piece}];
      buffer = sum_buffer(stage, piece);
      if (slot_ + 1 == slots_) return;
      buffer = static_cast<int>(counts_.gradients.size());
      counts_.gradients.push_back({.stages = {stage}, .shard = replica_});
      MessageEnd in =
          line(Payload::total, Direction::receive, device_of(slots_ - 1, replica_), stage, piece);
      in.micro_batch = rule_.micro_batches() - 1;
      in.buffer = buffer;
      builder_.add(std::max<std::int64_t>(rule_.offset(device_), time - 2 * stages_), Phase::post,
                   in.start());
      builder_.add(time, Phase::update, in.wait());
    });
  }

  const Rule& rule_;
  const ScheduleSpec& spec_;
  const std::vector<NewParameters>& news_;  // [S]
  int stages_;
  int slots_;
  int replicas_;
  int device_;
  int slot_;
  int replica_;
  bool fast_;  // collectives sum and gather inside a slot
  std::int64_t delay_;
  ProgramBuilder builder_;
  AlternatingBuffers own_;
  std::vector<ChunkBuffers> buffers_;          // [chunk]
  std::map<std::pair<int, int>, int> totals_;  // [stage, piece] buffer of what an update reads
  BufferCounts counts_;
};

}  // namespace

Layout lay_out_slots(const Rule& rule, const ScheduleSpec& spec) {
  const int replicas = rule.micro_batches() / slots_of(rule);
  Layout layout{.period_time = 2LL * rule.stages()};
  std::vector<NewParameters> news;
  for (int j = 0; j < rule.stages(); ++j) {
    news.emplace_back(rule, spec, j, replicas);
    layout.owner.push_back(news.back().owner() * replicas);
  }
  // In the order in which their pieces lie in a stage.
  const bool fast = spec.parallel.reduction == Reduction::fast;
  layout.groups.resize(fast ? slots_of(rule) : 0);
  for (int device = rule.micro_batches() - 1; fast && device >= 0; --device)
    layout.groups[device / replicas].push_back(device);
  for (int device = 0; device < rule.micro_batches(); ++device)
    layout.programs.push_back(SlotDevice(rule, spec, news, device).program());
  return layout;
}

}  // namespace carousel::placements
