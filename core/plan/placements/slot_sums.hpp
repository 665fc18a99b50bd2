// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gradients where stages travel in pieces: how a device adds up those of its shard, which micro-
// batch by micro-batch become the total that it updates. Used by placements alone.

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/plan/placements/layout.hpp"
#include "core/plan/placements/parts.hpp"

namespace carousel::placements {

/// Slots that a training step goes through: where micro-batches run together, one.
[[nodiscard]] int slots_of(const Rule& rule);
/// The ring that all replicas are copies of: a single device in every slot.
[[nodiscard]] Rule ring_of(const Rule& rule);

/// A device among the R of its slot, and its pieces among those of a stage. Slot s has devices R s
/// to R s + R - 1, each with the worker of its number; replica r has the pieces of shard r.
class SlotPlace {
 public:
  SlotPlace(const Rule& rule, const ScheduleSpec& spec, int device);

  [[nodiscard]] int slots() const { return slots_; }
  [[nodiscard]] int replicas() const { return replicas_; }
  [[nodiscard]] int device() const { return device_; }
  [[nodiscard]] int slot() const { return device_ / replicas_; }
  [[nodiscard]] int replica() const { return device_ % replicas_; }
  [[nodiscard]] int device_of(int slot, int replica) const { return slot * replicas_ + replica; }
  /// The last micro-batch of a slot, by which the sum of its gradients is named.
  [[nodiscard]] int last_of_slot(int slot) const {
    return rule_.last_of(device_of(slot, replicas_ - 1));
  }
  /// The device of the same shard in another slot.
  [[nodiscard]] int twin(int slot) const { return device_of(slot, replica()); }

  [[nodiscard]] int replica_of(int piece) const { return piece % replicas_; }
  [[nodiscard]] bool is_mine(int piece) const { return replica_of(piece) == replica(); }
  [[nodiscard]] bool has_piece(int stage, int replica) const;
  /// Calls visit with all pieces that have bytes.
  template <class Visit>
  void for_each_piece(int stage, const Visit& visit) const {
    for (int p = 0; p < std::ssize(spec_.pieces[stage]); ++p) {
      if (spec_.pieces[stage][p].gradients > 0) visit(p);
    }
  }
  /// Calls visit with those of this device.
  template <class Visit>
  void for_each_own(int stage, const Visit& visit) const {
    for_each_piece(stage, [&](int piece) {
      if (is_mine(piece)) visit(piece);
    });
  }
  /// Calls visit with the first piece of every chunk.
  template <class Visit>
  void for_each_chunk(int stage, const Visit& visit) const {
    for (int p = 0; p < std::ssize(spec_.pieces[stage]); p += replicas_) visit(p);
  }
  /// Calls visit with the replicas of the other devices of the slot.
  template <class Visit>
  void for_each_other(const Visit& visit) const {
    for (int q = 0; q < replicas_; ++q) {
      if (q != replica()) visit(q);
    }
  }

  /// A piece on its way.
  [[nodiscard]] MessageEnd line(Payload payload, Direction direction, int peer, int stage,
                                int piece) const;
  /// All pieces of a chunk, gathered in the slot.
  [[nodiscard]] CollectiveCall gather(Payload payload, int stage, int piece,
                                      std::int64_t version) const;
  /// The same, summed.
  [[nodiscard]] CollectiveCall scatter(int stage, int piece, int source, int sum) const;

 private:
  const Rule& rule_;
  const ScheduleSpec& spec_;
  int slots_;
  int replicas_;
  int device_;
};

/// When a device sums, in time steps of its first training step.
struct SumTimes {
  std::vector<std::int64_t> sums;  // [S] of the gradients of its slot, behind their backward
  std::int64_t delay = 1;          // time steps of a slot of several devices behind that
  std::int64_t kept = 3;           // until its sums have left
  bool keeps_all = false;          // those of all stages, until they are all there
  bool keeps_totals = false;       // or, of those, the sums alone
};

/// Inside a slot everybody sends everybody else his pieces of a gradient (a reduce-scatter: R - 1
/// messages, which are added in index order behind the partial sum that arrived; with
/// Reduction::fast a collective); the sum goes on to the next slot, and from the last one to that
/// of the owner, where devices have the total of their pieces.
class SlotSums {
 public:
  /// Appends gradient buffers. `owner` [S] is the slot that updates a stage.
  SlotSums(const Rule& rule, const ScheduleSpec& spec, const SlotPlace& place,
           std::vector<int> owner, SumTimes times, ProgramBuilder& builder, BufferCounts& counts);

  /// The buffers of the gradient of this device.
  [[nodiscard]] WorkerSum own(int stage) const;
  /// Pieces of others, of the gradient of this device, which `pass` completes.
  void add_parts_out(const Pass& pass);
  /// The sums through this slot of the own pieces of a stage.
  void add_sums(const Pass& pass, Phase phase);
  /// On the owner, the sums over all micro-batches, which come from the last slot.
  void add_totals(int stage, std::int64_t time);
  /// What updates of these stages need to know of all their pieces: everybody measures his own, and
  /// tells the others of the slot who update any.
  void add_norms_of(const std::vector<int>& stages, std::int64_t time);
  /// Reads the total.
  void add_update(int stage, int piece, std::int64_t time);

 private:
  /// Buffers for one chunk of every stage that has so many, which take these stages in turn.
  struct ChunkBuffers {
    AlternatingBuffers arriving;             // from the slot before
    std::vector<AlternatingBuffers> others;  // [replica] what they add; of the own one unused
  };
  /// A gradient, or a sum of some, that one of a slot is added to.
  struct Addend {
    int micro_batch = 0;  // the newest in it
    int buffer = 0;
  };

  void make_buffers();
  void add_sum(const Pass& pass, int piece, Phase phase);
  void add_sum_out(const Pass& pass, int piece, Payload payload, int slot);
  /// The first of the slot whose gradients come from another device.
  [[nodiscard]] int first_other() const { return place_.replica() == 0 ? 1 : 0; }
  [[nodiscard]] bool keeps_in_own() const;
  /// Time steps from the last backward to the next one that overwrites its gradient.
  [[nodiscard]] std::int64_t reuse_of_own(int stage) const;
  [[nodiscard]] int sum_buffer(int stage, int piece) const;

  const Rule& rule_;
  const ScheduleSpec& spec_;
  const SlotPlace& place_;
  std::vector<int> owner_;
  SumTimes times_;
  ProgramBuilder& builder_;
  BufferCounts& counts_;
  bool fast_;  // collectives sum and gather inside a slot
  AlternatingBuffers own_;
  int pass_buffer_ = -1;
  int first_before_ = -1;                      // [S] buffers of WorkerSum::before; -1: none
  std::vector<ChunkBuffers> buffers_;          // [chunk]
  std::map<std::pair<int, int>, int> totals_;  // [stage, piece] buffer of what an update reads
};

/// Whether collectives sum and gather inside a slot.
[[nodiscard]] bool is_fast(const ScheduleSpec& spec, const SlotPlace& place);
/// Devices of the collectives: those of every slot, in the order in which their pieces lie in a
/// stage. None where none are used.
[[nodiscard]] std::vector<std::vector<int>> groups_of_slots(const Rule& rule,
                                                            const ScheduleSpec& spec);

}  // namespace carousel::placements
