// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/placements/slots.hpp"

#include <algorithm>
#include <utility>

#include "core/plan/placements/hand_on.hpp"
#include "core/plan/placements/slot_sums.hpp"

namespace carousel::placements {
namespace {

/// Time steps in which pieces travel inside a slot: behind a backward to be summed, and to be
/// gathered ahead of a forward. One, for which gradients of a single pass are kept. Those of
/// several are kept longer, and have a third of what lies between the last backward of a step and
/// the first use of what it makes; in another third the total comes to its owner.
std::int64_t inside_time(const Rule& ring) {
  if (ring.passes() == 1) return 1;
  std::int64_t least = ring.period();
  for (int j = 0; j < ring.stages(); ++j) {
    const std::int64_t complete = ring.gradient_time(ring.workers() - 1, j, 0);
    for (int slot = 0; slot < ring.workers(); ++slot)
      least = std::min(least, ring.first_use(slot, j, 0) - complete);
  }
  // The first pass of the next step overwrites a gradient 2 S behind it; it may grow here, too, and
  // then has the other half to leave.
  return std::clamp<std::int64_t>(least / 3, 1, ring.stages());
}

/// Time steps between a backward and the sum of a slot, in which its pieces travel inside the slot.
/// Totals have some to spare only where slack gives it. Sums that go on have half of the time steps
/// that the next slot is behind, and the others to get there.
std::int64_t sum_delay(const Rule& ring, int slot, int replicas) {
  if (replicas == 1) return 0;
  if (slot + 1 == ring.workers()) return ring.slack() > 0 ? inside_time(ring) : 0;
  const std::int64_t behind = ring.offset(slot + 1) - ring.offset(slot);
  return std::max(inside_time(ring), std::min<std::int64_t>(behind / 2, ring.stages()));
}

/// When what dp does for a stage behind a step is due: the first stages are read first.
std::int64_t due_at(const Rule& rule, int stage) {
  return rule.period() + stage / 2;
}

/// When the total of a stage can be used. Without a ring half of the time from a backward to the
/// forward that reads new parameters is for sums: of dp up to the end of the step, and a little
/// more where nobody waits for all; late sums have a step more.
std::int64_t ready_at(const Rule& ring, const ScheduleSpec& spec, int stage, int replicas) {
  const int last = ring.workers() - 1;
  if (!ring.together())
    return ring.gradient_time(last, stage, 0) + sum_delay(ring, last, replicas) + 1;
  const std::int64_t end = ring.period();
  if (ring.cyclic()) return end + end / 2;
  return spec.parallel.updates == Updates::eager && !needs_norms(spec) ? due_at(ring, stage) : end;
}

/// When a device of slot `slot` has new parameters of a stage, in time steps from the start of the
/// step that made them.
class NewParameters {
 public:
  NewParameters(const Rule& rule, const ScheduleSpec& spec, int stage, int replicas)
      : ring_(ring_of(rule)),
        stage_(stage),
        owner_(rule.together() ? 0 : first_reader(ring_, stage)),
        times_(ring_, stage, owner_, ready_at(ring_, spec, stage, replicas),
               replicas > 1 && !rule.together() ? inside_time(ring_) : 0) {}

  /// The slot that makes them.
  [[nodiscard]] int owner() const { return owner_; }
  [[nodiscard]] std::int64_t time_at(int slot) const { return times_.time_at(slot); }
  /// The slots that a slot hands them on to, and gets them from; -1: none.
  [[nodiscard]] int next(int slot) const { return times_.next(slot); }
  [[nodiscard]] int before(int slot) const { return times_.before(slot); }
  [[nodiscard]] std::int64_t first_use(int slot) const { return ring_.first_use(slot, stage_, 0); }

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
        place_(rule, spec, device),
        slot_(place_.slot()),
        fast_(is_fast(spec, place_)),
        builder_(rule.period()),
        counts_(counts_of(rule, 0, stages_ - 1)),
        sums_(rule, spec, place_, owners(), sum_times(), builder_, counts_) {
    counts_.shard = place_.replica();
    for (int j = 0; j < stages_; ++j)
      counts_.optimizer[j] = is_owner(j) && place_.has_piece(j, place_.replica());
  }

  Program program() {
    if (!rule_.together()) add_tokens(builder_, rule_, place_.device(), place_.replicas());
    add_passes(builder_, rule_, place_.device(), [&](int j) { return sums_.own(j); });
    for (int j = stages_ - 1; j >= 0; --j) {
      const Pass pass = last_pass_of(rule_, place_.device(), j);
      sums_.add_parts_out(pass);
      if (!rule_.together()) sums_.add_sums(pass, Phase::reduce);
    }
    if (rule_.together())
      add_joint_updates();
    else
      add_ring_updates();
    return {
        .first_device = place_.device(), .actions = builder_.fold(), .buffers = std::move(counts_)};
  }

 private:
  [[nodiscard]] bool is_owner(int stage) const { return news_[stage].owner() == slot_; }
  [[nodiscard]] std::vector<int> owners() const {
    std::vector<int> slots;
    for (const NewParameters& news : news_) slots.push_back(news.owner());
    return slots;
  }
  [[nodiscard]] SumTimes sum_times() const {
    SumTimes times{.sums = {}, .keeps_all = rule_.together()};
    const Rule ring = ring_of(rule_);
    times.delay = sum_delay(ring, slot_, place_.replicas());
    const bool completes = slot_ + 1 == place_.slots();
    for (int j = 0; j < stages_; ++j) {
      if (rule_.together()) {
        times.sums.push_back(news_[j].time_at(slot_));
        continue;
      }
      times.sums.push_back(rule_.gradient_time(place_.device(), j, 0) + times.delay);
      if (rule_.passes() == 1) continue;
      const std::int64_t next = completes ? news_[j].time_at(news_[j].owner()) - times.sums.back()
                                          : ring.offset(slot_ + 1) - ring.offset(slot_);
      times.kept = std::max(times.kept, times.delay + next);
    }
    return times;
  }

  void add_ring_updates() {
    for (int j = stages_ - 1; j >= 0; --j) {
      const std::int64_t time = news_[j].time_at(slot_);
      if (is_owner(j)) {
        sums_.add_totals(j, time);
        sums_.add_norms_of({j}, time);
      }
      add_new_parameters(j);
    }
  }

  /// Each device has what it updates. Stages that are read first come first; where all wait for all
  /// sums, because they want to or need all norms, those come before any update.
  void add_joint_updates() {
    const bool waits = spec_.parallel.updates == Updates::together || needs_norms(spec_);
    const auto sums = [&](int j) {
      sums_.add_sums(last_pass_of(rule_, place_.device(), j), Phase::update);
    };
    std::vector<int> all;
    for (int j = 0; j < stages_; ++j) all.push_back(j);
    for (int j = 0; waits && j < stages_; ++j) sums(j);
    if (needs_norms(spec_)) sums_.add_norms_of(all, news_.back().time_at(slot_));
    for (int j = 0; j < stages_; ++j) {
      if (!waits) sums(j);
      if (!needs_norms(spec_)) sums_.add_norms_of({j}, news_[j].time_at(slot_));
      add_new_parameters(j);
    }
  }

  /// theta_{t+1} of a stage: pieces of the own shard are made here or received, and go on to the
  /// next slot and to the others of the slot; from whom come the pieces of other shards.
  void add_new_parameters(int stage) {
    const NewParameters& news = news_[stage];
    const bool owner = is_owner(stage);
    const std::int64_t here = news.time_at(slot_);
    // Of what dp has updated all at once, later stages, which have time, would share the links of
    // the first ones.
    const std::int64_t leave = rule_.cyclic() ? here : std::max(here, due_at(rule_, stage));
    const std::int64_t again = rule_.versions() * rule_.period();  // the buffer is written
    const FreeParameters free = free_parameters(rule_, place_.device(), stage);
    const auto line = [&](Direction direction, int peer, int piece) {
      MessageEnd end = place_.line(Payload::parameters, direction, peer, stage, piece);
      end.version = 1;
      return end;
    };
    const auto receive = [&](int peer, int piece, std::int64_t time, Phase phase) {
      const MessageEnd in = line(Direction::receive, peer, piece);
      builder_.add(free.time, free.post(), in.start());
      builder_.add(time, phase, in.wait());
    };
    const auto send = [&](int peer, int piece) {
      const MessageEnd out = line(Direction::send, peer, piece);
      builder_.add(leave, owner ? Phase::update : Phase::receive_parameters, out.start());
      if (owner)
        builder_.add(here + again, Phase::before_update, out.wait());
      else
        builder_.add(free.time + again, free.sent(), out.wait());
    };
    const int next = news.next(slot_);
    place_.for_each_piece(stage, [&](int piece) {
      if (!place_.is_mine(piece)) {
        if (!fast_)
          receive(place_.device_of(slot_, place_.replica_of(piece)), piece, news.first_use(slot_),
                  Phase::arrive);
        return;
      }
      if (owner)
        sums_.add_update(stage, piece, here);
      else
        receive(place_.twin(news.before(slot_)), piece, here, Phase::receive_parameters);
      if (next >= 0) send(place_.twin(next), piece);
      if (!fast_) place_.for_each_other([&](int q) { send(place_.device_of(slot_, q), piece); });
    });
    if (!fast_) return;
    place_.for_each_chunk(stage, [&](int piece) {
      const CollectiveCall gather = place_.gather(Payload::parameters, stage, piece, 1);
      builder_.add(leave, owner ? Phase::update : Phase::receive_parameters, gather.start());
      builder_.add(news.first_use(slot_), Phase::arrive, gather.wait());
    });
  }

  const Rule& rule_;
  const ScheduleSpec& spec_;
  const std::vector<NewParameters>& news_;  // [S]
  int stages_;
  SlotPlace place_;
  int slot_;
  bool fast_;
  ProgramBuilder builder_;
  BufferCounts counts_;
  SlotSums sums_;
};

}  // namespace

Layout lay_out_slots(const Rule& rule, const ScheduleSpec& spec) {
  const int replicas = rule.workers() / slots_of(rule);
  Layout layout{.period_time = rule.period(), .groups = groups_of_slots(rule, spec)};
  std::vector<NewParameters> news;
  for (int j = 0; j < rule.stages(); ++j) {
    news.emplace_back(rule, spec, j, replicas);
    layout.owner.push_back(news.back().owner() * replicas);
  }
  for (int device = 0; device < rule.workers(); ++device)
    layout.programs.push_back(SlotDevice(rule, spec, news, device).program());
  return layout;
}

}  // namespace carousel::placements
