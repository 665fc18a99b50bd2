// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "core/plan/placements/hand_on.hpp"
#include "core/plan/placements/slot_sums.hpp"
#include "core/plan/placements/slots.hpp"

namespace carousel::placements {
namespace {

/// Stages that pass by whole: one is in use, one is gathered, and one is on its way to here.
constexpr int passing_buffers = 3;

/// When anything about the pieces of a stage happens. Under cyclic rules a piece is in a slot a
/// time step before the pass that reads the stage, has come in the one before that, and is gathered
/// in between. dp gathers two passes ahead, and sums behind two more passes.
class PieceTimes {
 public:
  PieceTimes(const Rule& rule, const ScheduleSpec& spec, const std::vector<int>& owner)
      : ring_(ring_of(rule)),
        owner_(owner),
        together_(rule.together()),
        waits_(spec.parallel.updates == Updates::together || needs_norms(spec)),
        replicas_(rule.micro_batches() / slots_of(rule)),
        cycle_(2LL * rule.stages()) {}

  /// Whether updates of dp wait for the sums of all stages.
  [[nodiscard]] bool waits() const { return together_ && waits_; }
  /// Of a slot.
  [[nodiscard]] std::int64_t sum(int slot, int stage) const {
    const std::int64_t backward = ring_.backward_time(slot, stage, 0);
    if (together_) return std::min(backward + 2, cycle_);
    return backward + (slot + 1 < ring_.micro_batches() ? slot_delay() : total_delay(stage));
  }
  [[nodiscard]] std::int64_t update(int stage) const {
    const int last = ring_.micro_batches() - 1;
    if (together_) return waits_ ? cycle_ : sum(last, stage);
    return sum(last, stage) + 1;
  }
  /// The pass of a slot that reads a copy.
  [[nodiscard]] std::int64_t use(Payload copy, int slot, int stage) const {
    return copy == Payload::forward_copy ? ring_.forward_time(slot, stage, 0)
                                         : ring_.backward_time(slot, stage, 0);
  }
  /// When its pieces are gathered in the slot.
  [[nodiscard]] std::int64_t gather(Payload copy, int slot, int stage) const {
    const std::int64_t use = this->use(copy, slot, stage);
    if (together_) return std::max<std::int64_t>(0, use - 2);
    const std::int64_t begin = use - slot_delay();
    return owner_[stage] == slot ? std::max(begin, made(slot, stage)) : begin;
  }
  /// When they leave for the slot: the way takes two time steps or, if they were made just then,
  /// one.
  [[nodiscard]] std::int64_t leave(Payload copy, int slot, int stage) const {
    return std::max(gather(copy, slot, stage) - 2, made(slot, stage));
  }

 private:
  [[nodiscard]] int slot_delay() const { return replicas_ > 1 ? 1 : 0; }
  /// The same for the last slot, where what is made of the total can wait.
  [[nodiscard]] int total_delay(int stage) const {
    if (replicas_ == 1) return 0;
    const int last = ring_.micro_batches() - 1;
    const std::int64_t latest = ring_.backward_time(last, stage, 0) + 2;
    for (int slot = 0; slot <= last; ++slot) {
      const int way = slot == owner_[stage] ? 1 : 2;
      if (latest > ring_.first_use(slot, stage, 0) - way) return 0;
    }
    return 1;
  }
  /// When what a slot reads in its first training step was updated.
  [[nodiscard]] std::int64_t made(int slot, int stage) const {
    return update(stage) - (ring_.fresh(slot, stage) ? 1 : 2) * cycle_;
  }

  Rule ring_;
  const std::vector<int>& owner_;
  bool together_;
  bool waits_;
  int replicas_;
  std::int64_t cycle_;
};

/// A device that keeps its pieces of the stages of its slot.
class KeepingDevice {
 public:
  KeepingDevice(const Rule& rule, const ScheduleSpec& spec, const std::vector<int>& owner,
                int device)
      : rule_(rule),
        ring_(ring_of(rule)),
        owner_(owner),
        times_(rule, spec, owner),
        place_(rule, spec, device),
        slot_(place_.slot()),
        fast_(is_fast(spec, place_)),
        builder_(2LL * rule.stages()),
        counts_(counts_of(rule, 0, -1)),
        sums_(rule, spec, place_, owner, sum_times(), builder_, counts_) {
    counts_.last_stage = rule.stages() - 1;
    counts_.travelling = passing_buffers;
    counts_.shard = place_.replica();
    for (int j = 0; j < rule.stages(); ++j) {
      counts_.optimizer[j] = keeps(j) && place_.has_piece(j, place_.replica());
      if (counts_.optimizer[j]) counts_.kept.push_back(j);
    }
  }

  Program program() {
    const int device = place_.device();
    if (!rule_.together()) add_tokens(builder_, rule_, device, place_.replicas());
    add_load(builder_, {.micro_batch = device, .forward_time = rule_.offset(device)});
    for (int j = rule_.stages() - 1; j >= 0; --j) {
      const Pass pass = pass_of(rule_, device, j);
      add_forward(builder_, rule_, pass);
      add_backward(builder_, rule_, pass, sums_.own(j).sum);
      sums_.add_parts_out(pass);
      sums_.add_sums(pass, rule_.together() ? Phase::update : Phase::reduce);
      add_release(builder_, pass);
    }
    for (int j = 0; j < rule_.stages(); ++j) {
      add_copies(Payload::forward_copy, j);
      add_copies(Payload::backward_copy, j);
    }
    add_updates();
    return {.first_device = device, .actions = builder_.fold(), .buffers = std::move(counts_)};
  }

 private:
  [[nodiscard]] bool keeps(int stage) const { return owner_[stage] == slot_; }
  [[nodiscard]] SumTimes sum_times() const {
    SumTimes times{.sums = {}, .keeps_totals = times_.waits()};
    for (int j = 0; j < rule_.stages(); ++j) times.sums.push_back(times_.sum(slot_, j));
    return times;
  }

  /// The slot from which a slot gets the copy of this stage, of the version that it reads. One sets
  /// out from the owner for slot 0, and for the first that reads the newer version; what comes to
  /// the owner starts there anew.
  [[nodiscard]] int source_of(int slot, int stage) const {
    const bool starts = slot == 0 || ring_.fresh(slot, stage) != ring_.fresh(slot - 1, stage);
    return starts ? owner_[stage] : slot - 1;
  }

  /// What `reader` reads, on its way from a device to another.
  [[nodiscard]] MessageEnd line(Payload copy, Direction direction, int peer, int reader, int stage,
                                int piece) const {
    MessageEnd end = place_.line(copy, direction, peer, stage, piece);
    end.micro_batch = reader;
    end.version = ring_.fresh(rule_.together() ? 0 : reader / place_.replicas(), stage) ? 0 : -1;
    return end;
  }

  /// All about one copy of one stage: pieces of the own shard come from where they are kept, go on
  /// to the others of the slot and to the next one; from whom come the pieces of other shards.
  void add_copies(Payload copy, int stage) {
    const int self = place_.device();
    const std::int64_t use = times_.use(copy, slot_, stage);
    const std::int64_t here = times_.gather(copy, slot_, stage);
    const Phase phase = rule_.together() ? Phase::post : Phase::arrive;
    // One time step before it leaves, or as soon as the buffer is free.
    const auto receive = [&](int peer, int piece, std::int64_t begin, std::int64_t end) {
      const MessageEnd in = line(copy, Direction::receive, peer, self, stage, piece);
      if (rule_.together())
        builder_.add(begin, Phase::post, in.start());
      else
        builder_.add(std::max(begin - 1, use - passing_buffers), Phase::late_post, in.start());
      builder_.add(end, Phase::arrive, in.wait());
    };
    place_.for_each_own(stage, [&](int piece) {
      if (!keeps(stage)) {
        receive(place_.twin(source_of(slot_, stage)), piece, here - 2, here);
      } else {
        Action own = line(copy, Direction::none, -1, self, stage, piece).wait();
        own.kind = ActionKind::copy;
        own.micro_batch = -1;
        own.bytes = 0;
        builder_.add(here, phase, own);
      }
      for (int reader = 0; reader < place_.slots(); ++reader) {
        if (reader == owner_[stage] || source_of(reader, stage) != slot_) continue;
        const int peer = place_.twin(reader);
        const MessageEnd out = line(copy, Direction::send, peer, peer, stage, piece);
        const std::int64_t time = times_.leave(copy, reader, stage);
        builder_.add(time, Phase::arrive, out.start());
        builder_.add(keeps(stage) ? time + 1 : use, Phase::late_wait, out.wait());
      }
      if (fast_) return;
      place_.for_each_other([&](int q) {
        const int peer = place_.device_of(slot_, q);
        const MessageEnd out = line(copy, Direction::send, peer, peer, stage, piece);
        builder_.add(here, phase, out.start());
        builder_.add(use, Phase::late_wait, out.wait());
      });
    });
    if (fast_)
      return place_.for_each_chunk(stage, [&](int piece) {
        const CollectiveCall gather =
            place_.gather(copy, stage, piece, ring_.fresh(slot_, stage) ? 0 : -1);
        builder_.add(here, phase, gather.start());
        builder_.add(use, Phase::arrive, gather.wait());
      });
    place_.for_each_piece(stage, [&](int piece) {
      if (!place_.is_mine(piece))
        receive(place_.device_of(slot_, place_.replica_of(piece)), piece, here, use);
    });
  }

  void add_updates() {
    std::vector<int> kept;
    for (int j = 0; j < rule_.stages(); ++j) {
      if (keeps(j)) kept.push_back(j);
    }
    for (const int j : kept) {
      if (!rule_.together()) sums_.add_totals(j, times_.update(j));
      if (!times_.waits()) sums_.add_norms_of({j}, times_.update(j));
    }
    if (times_.waits()) sums_.add_norms_of(kept, 2LL * rule_.stages());
    for (const int j : kept)
      place_.for_each_own(j, [&](int piece) { sums_.add_update(j, piece, times_.update(j)); });
  }

  const Rule& rule_;
  Rule ring_;
  const std::vector<int>& owner_;  // [S] slot
  PieceTimes times_;
  SlotPlace place_;
  int slot_;
  bool fast_;
  ProgramBuilder builder_;
  BufferCounts counts_;
  SlotSums sums_;
};

}  // namespace

Layout lay_out_sharded_slots(const Rule& rule, const ScheduleSpec& spec) {
  Layout layout{.period_time = 2LL * rule.stages(), .groups = groups_of_slots(rule, spec)};
  // Copies set out where fresh ones are read first without slack, whatever the slack.
  const Rule tight(rule.kind(), slots_of(rule), rule.stages(), 0);
  std::vector<int> owner;
  for (int j = 0; j < rule.stages(); ++j) {
    owner.push_back(rule.together() ? 0 : first_reader(tight, j));
    layout.owner.push_back(owner.back() * rule.micro_batches() / slots_of(rule));
  }
  for (int device = 0; device < rule.micro_batches(); ++device)
    layout.programs.push_back(KeepingDevice(rule, spec, owner, device).program());
  return layout;
}

}  // namespace carousel::placements
