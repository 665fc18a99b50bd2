// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What several placements have in common: passes of a micro-batch, messages seen from one end,
// partial sums of gradients that hop from micro-batch to micro-batch. Used by placements alone.

#include <cstdint>
#include <vector>

#include "core/plan/placements/kinds.hpp"
#include "core/plan/placements/layout.hpp"

namespace carousel::placements {

/// A message of training step 0, seen from one end.
struct MessageEnd {
  Payload payload = Payload::none;
  Direction direction = Direction::none;
  int peer = -1;  // program
  int stage = -1;
  int piece = -1;
  int micro_batch = -1;
  std::int64_t version = 0;
  std::int64_t bytes = 0;
  int buffer = -1;

  [[nodiscard]] Action start() const;
  [[nodiscard]] Action wait() const;
};

/// A collective of training step 0 about one stage; see ActionKind for `root`.
struct CollectiveCall {
  ActionKind kind = ActionKind::all_reduce;
  Payload payload = Payload::total;
  int group = 0;
  int root = -1;  // program
  int stage = -1;
  int piece = -1;        // the first one of a chunk
  int micro_batch = -1;  // the last one of a partial sum
  std::int64_t version = 0;
  std::int64_t bytes = 0;
  int buffer = -1;
  int source = -1;  // gradient buffer that a reduce_scatter reads

  [[nodiscard]] Action start() const;
  [[nodiscard]] Action wait() const;
};

/// One micro-batch in one stage.
struct Pass {
  int micro_batch = 0;
  int stage = 0;
  std::int64_t forward_time = 0;
  std::int64_t backward_time = 0;
  int turn = 0;
};

/// At the times of the rule.
[[nodiscard]] Pass pass_of(const Rule& rule, int i, int j);
/// Of the last micro-batch of a worker, whose backward completes the gradient of the worker.
[[nodiscard]] Pass last_pass_of(const Rule& rule, int worker, int j);

void add_load(ProgramBuilder& builder, const Pass& pass);
void add_forward(ProgramBuilder& builder, const Rule& rule, const Pass& pass);
/// The gradient goes to `buffer`.
void add_backward(ProgramBuilder& builder, const Rule& rule, const Pass& pass, int buffer);
void add_release(ProgramBuilder& builder, const Pass& pass);

/// Who runs the stage before or behind, for the same micro-batch.
struct Neighbour {
  int program = -1;  // none
  int turn = 0;
};

/// Activations and their gradients across the cuts before and behind a stage whose neighbours are
/// other devices. What one device makes in a time step the next one uses in the following.
void add_boundaries(ProgramBuilder& builder, const ScheduleSpec& spec, const Pass& pass,
                    Neighbour before, Neighbour behind);

/// The norm of the total in `source`. Of the stage or, as those below, of one piece of it.
[[nodiscard]] Action measure(int stage, int source, int piece = -1);
[[nodiscard]] Action update(int stage, int source, int piece = -1);
/// buffer += source, which completes the sum through `micro_batch`.
[[nodiscard]] Action accumulate(int micro_batch, int stage, int buffer, int source, int piece = -1);
/// Gradient buffers of a stage on the device of a worker. The first pass fills `sum`; those behind
/// it fill `pass`, which is added to it. Where there is one, `before` takes the place of `sum`
/// until the last pass, which fills `sum` itself: so that has a whole training step to go where it
/// must.
struct WorkerSum {
  int sum = 0;
  int pass = -1;
  int before = -1;
};
/// One backward of a worker, and the sum of those so far.
void add_summed_backward(ProgramBuilder& builder, const Rule& rule, const Pass& pass,
                         const WorkerSum& buffers);
/// The same where all workers of a stage meet on one device: worker 0 fills `total`, to which the
/// sums of the others are added.
void add_total_backward(ProgramBuilder& builder, const Rule& rule, const Pass& pass, int total,
                        const WorkerSum& buffers);
/// All passes of a worker at the times of the rule, `sum_of(j)` saying where gradients go.
template <class SumOf>
void add_passes(ProgramBuilder& builder, const Rule& rule, int worker, const SumOf& sum_of) {
  for (int i = rule.first_of(worker); i <= rule.last_of(worker); ++i) {
    add_load(builder, {.micro_batch = i, .forward_time = rule.forward_time(i, 0, 0)});
    for (int j = rule.stages() - 1; j >= 0; --j) {
      const Pass pass = pass_of(rule, i, j);
      add_forward(builder, rule, pass);
      add_summed_backward(builder, rule, pass, sum_of(j));
      add_release(builder, pass);
    }
  }
}
/// Appends the buffers for one gradient of any stage in which passes behind the first one leave
/// theirs, and returns its number; -1 where there are none.
[[nodiscard]] int append_pass_buffer(const Rule& rule, std::vector<GradientBuffer>& gradients);

/// When a device may begin to receive theta_{t+1}, since the version that its buffer had was read
/// for the last time, in time steps of step t: before its first pass, or behind a backward.
struct FreeParameters {
  std::int64_t time = 0;
  bool behind_pass = false;

  [[nodiscard]] Phase post() const { return behind_pass ? Phase::late_post : Phase::post; }
  /// Of the wait until what the buffer had is sent.
  [[nodiscard]] Phase sent() const { return behind_pass ? Phase::late_wait : Phase::before_post; }
};
[[nodiscard]] FreeParameters free_parameters(const Rule& rule, int worker, int stage);

/// A few buffers take the stages of a backward pass in turn, so that some may still be on their way
/// while the next is filled. Two are enough between neighbours two time steps apart; gradients of a
/// neighbour further ahead (N < S, or several passes) need as many as there are time steps between
/// the two.
class AlternatingBuffers {
 public:
  AlternatingBuffers(int stages, int first_buffer, std::int64_t time_steps = 0);

  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] int of(int stage) const { return first_ + stage % count_; }
  /// Whether nobody used the buffer before `stage` in this step.
  [[nodiscard]] bool first_in_step(int stage) const { return stage + count_ >= stages_; }
  /// Backward time, relative to that of `stage`, of the next stage in the same buffer; between
  /// those of one stage are `again` time steps.
  [[nodiscard]] std::int64_t reuse_after(int stage, std::int64_t again) const;
  void append_to(std::vector<GradientBuffer>& gradients, int shard = -1) const;

 private:
  int stages_;
  int first_;
  int count_;
};

/// Partial sums of a stage that hop from the program of worker w, first_program + w, to the next,
/// through gradient buffer `own` of each.
struct Chain {
  int first_program = 0;
  int own = 0;
};

/// Workers first .. last whose gradients are one term of the sum: a single one, or with
/// Reduction::fast those of a slot, which a collective adds up on the device of the last one. That
/// has the next time step to do so, unless it completes a total that must not wait.
struct Term {
  int first = 0;
  int last = 0;
  std::int64_t delay = 0;  // time steps between its backward and the sum of the stage so far

  [[nodiscard]] bool joint() const { return last > first; }
};
[[nodiscard]] Term term_of(const Rule& rule, const ScheduleSpec& spec, int worker);

/// Sums what the workers of a joint term have in `buffer` of their devices, behind their last
/// passes, on that of the last one, which is of program `root`.
void add_joint_sum(ProgramBuilder& builder, const Rule& rule, const ScheduleSpec& spec,
                   const Pass& pass, const Term& term, int group, int root, int buffer);
/// Devices of the collectives, where worker w has device w: those of a slot, or for dp all.
[[nodiscard]] std::vector<std::vector<int>> groups_of(const Rule& rule);

/// The time step in which the total of training step 0 can be used.
[[nodiscard]] std::int64_t total_time(const Rule& rule, const ScheduleSpec& spec, int stage);

/// Whether updates wait for the norms of all stages.
[[nodiscard]] bool needs_norms(const ScheduleSpec& spec);
/// From `begin` to `end` the devices of a group, each of which has measured its stages, make the
/// norms of all stages known to each other; where they are needed.
void add_norms(ProgramBuilder& builder, const ScheduleSpec& spec, int group, std::int64_t begin,
               std::int64_t end);

/// Waits for the sum of all terms before and adds it to this one.
void add_arrival(ProgramBuilder& builder, const Rule& rule, const ScheduleSpec& spec,
                 const Term& term, int stage, Chain chain, const AlternatingBuffers& arriving);

/// dp on the device of a worker: the sum so far goes to the next, the total around to all.
void add_dp_chain(ProgramBuilder& builder, const Rule& rule, const ScheduleSpec& spec, int worker,
                  int stage, Chain chain, const AlternatingBuffers& arriving);

/// Partial sums leave device w for w + 1, or the last one of the next slot where terms are joint,
/// as soon as they are complete, and the sum over all workers leaves W - 1 for the owner of its
/// stage. Adds the passes of worker `device` to its device and all this, appends the gradient
/// buffers, and returns those that have the gradient of the worker: one for every stage where it
/// has several passes, or where updates wait for norms and device W - 1 keeps the total.
[[nodiscard]] AlternatingBuffers add_ring_passes(ProgramBuilder& builder, const Rule& rule,
                                                 const ScheduleSpec& spec,
                                                 const std::vector<int>& owner, int device,
                                                 std::vector<GradientBuffer>& gradients);

/// The sum of one stage over all micro-batches on its way from or to `peer`.
[[nodiscard]] MessageEnd total_line(const Rule& rule, const ScheduleSpec& spec, Direction direction,
                                    int peer, int stage, int buffer);

/// The token that lets worker w, on device w, begin once w - `apart` is far enough ahead. One per
/// step and not only one per segment: an offset once lost to a hiccup would never come back by
/// itself.
void add_tokens(ProgramBuilder& builder, const Rule& rule, int device, int apart = 1);

/// The worker that first reads the newest parameters of a stage or, where slack leaves none, that
/// would without slack, so that owners are many.
[[nodiscard]] int first_reader(const Rule& rule, int stage);

/// Counts of a device that runs these stages and keeps their parameters.
[[nodiscard]] BufferCounts counts_of(const Rule& rule, int first_stage, int last_stage);

}  // namespace carousel::placements
