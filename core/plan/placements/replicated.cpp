// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/plan/placements/hand_on.hpp"
#include "core/plan/placements/parts.hpp"
#include "core/plan/placements/slots.hpp"

namespace carousel::placements {
namespace {

/// Parameters of one stage on their way around the ring, seen from one device.
void add_hand_on(ProgramBuilder& builder, const Rule& rule, const ScheduleSpec& spec,
                 const HandOn& ring, int owner, int device, int stage) {
  const int devices = rule.micro_batches();
  if (devices == 1) return;
  const std::int64_t cycle = 2LL * rule.stages();
  const int next = (device + 1) % devices;
  const int before = (device + devices - 1) % devices;
  const std::int64_t bytes = spec.parameter_bytes[stage];
  const MessageEnd in{.payload = Payload::parameters,
                      .direction = Direction::receive,
                      .peer = before,
                      .stage = stage,
                      .version = 1,
                      .bytes = bytes};
  MessageEnd out = in;
  out.direction = Direction::send;
  out.peer = next;
  const std::int64_t here = ring.time_at(device);

  // The buffer of version t+1 is free once version t-1 was read for the last time.
  const bool fresh = rule.fresh(device, stage);
  const std::int64_t free = fresh ? rule.offset(device) : rule.backward_time(device, stage, 0);
  if (device != owner) {
    builder.add(free, fresh ? Phase::post : Phase::late_post, in.start());
    builder.add(here, Phase::receive_parameters, in.wait());
  }
  if (next == owner) return;
  // With slack there is time to spare: who reads them now hands them on behind its forward, if that
  // is a time step early, and leaves the link before it to the last gradient of the backward.
  const bool reads = here == rule.forward_time(device, stage, fresh ? 1 : 2);
  const bool spare = rule.slack() > 0 && ring.time_at(next) >= here + 2;
  const Phase arrived = device == owner ? Phase::update : Phase::receive_parameters;
  builder.add(here, reads && spare ? Phase::leave : arrived, out.start());
  // Two steps later the same buffer is written again.
  if (device == owner)
    builder.add(here + 2 * cycle, Phase::before_update, out.wait());
  else
    builder.add(free + 2 * cycle, fresh ? Phase::before_post : Phase::late_wait, out.wait());
}

Program cyclic(const Rule& rule, const ScheduleSpec& spec, const std::vector<int>& owner,
               const std::vector<HandOn>& rings, int device) {
  const int last = rule.micro_batches() - 1;
  const int stages = rule.stages();
  ProgramBuilder builder(2LL * stages);
  Program result{.first_device = device, .buffers = counts_of(rule, 0, stages - 1)};
  std::vector<GradientBuffer>& gradients = result.buffers.gradients;

  add_tokens(builder, rule, device);
  const AlternatingBuffers own = add_ring_passes(builder, rule, spec, owner, device, gradients);
  for (int j = stages - 1; j >= 0; --j) {
    const HandOn& ring = rings[j];
    result.buffers.optimizer[j] = owner[j] == device;
    if (owner[j] == device) {
      const std::int64_t now = ring.time_at(device);
      int source = own.of(j);
      if (device != last) {
        source = static_cast<int>(gradients.size());
        gradients.push_back({{j}});
        const MessageEnd in = total_line(rule, spec, Direction::receive, last, j, source);
        builder.add(std::max<std::int64_t>(rule.offset(device), now - 2 * stages), Phase::post,
                    in.start());
        builder.add(now, Phase::update, in.wait());
      }
      builder.add(now, Phase::update, update(j, source));
    }
    add_hand_on(builder, rule, spec, ring, owner[j], device, j);
  }
  result.actions = builder.fold();
  return result;
}

/// The collectives of dp that begin while the stages before theirs still have their backward to
/// run: the buckets of Li et al. 2020 (doi 10.14778/3415478.3415530), or where a single device
/// updates each stage the ZeRO-1 of Rajbhandari et al. 2020 (doi 10.1109/SC41405.2020.00024).
std::vector<CollectiveCall> sums_by_stage(const ScheduleSpec& spec, const std::vector<int>& owner) {
  const Reduction reduction = spec.parallel.reduction;
  const bool owned = reduction == Reduction::owner;
  std::vector<CollectiveCall> sums;
  if (spec.parallel.micro_batches == 1 || !(owned || reduction == Reduction::overlapped))
    return sums;
  for (int j = 0; j < spec.parallel.stages; ++j) {
    sums.push_back({.kind = owned ? ActionKind::reduce : ActionKind::all_reduce,
                    .root = owned ? owner[j] : -1,
                    .stage = j,
                    .bytes = spec.message_bytes[j],
                    .buffer = j});
  }
  return sums;
}

/// Updates, and what they wait for, behind the backward of all stages. With Reduction::owner each
/// stage is updated by one device, which brings it to the others while the stages before it begin
/// the next step.
void add_dp_updates(ProgramBuilder& builder, const ScheduleSpec& spec,
                    const std::vector<CollectiveCall>& sums, const std::vector<bool>& updates) {
  const int stages = spec.parallel.stages;
  const std::int64_t cycle = 2LL * stages;
  const auto wait_for_sum = [&](int j) {
    if (!sums.empty()) builder.add(cycle, Phase::update, sums[j].wait());
  };
  const bool owned = spec.parallel.reduction == Reduction::owner && !sums.empty();
  // Sums are complete from behind; what others wait for is read from the front.
  const auto stage = [&](int k) { return owned ? k : stages - 1 - k; };
  for (int k = 0; needs_norms(spec) && k < stages; ++k) {
    wait_for_sum(stage(k));
    if (updates[stage(k)]) builder.add(cycle, Phase::update, measure(stage(k), stage(k)));
  }
  if (owned) add_norms(builder, spec, 0, cycle, cycle);
  for (int k = 0; k < stages; ++k) {
    const int j = stage(k);
    if (!needs_norms(spec)) wait_for_sum(j);
    if (updates[j]) builder.add(cycle, Phase::update, update(j, j));
    if (!owned) continue;
    const CollectiveCall copy{.kind = ActionKind::broadcast,
                              .payload = Payload::parameters,
                              .root = sums[j].root,
                              .stage = j,
                              .version = 1,
                              .bytes = spec.parameter_bytes[j]};
    builder.add(cycle, Phase::update, copy.start());
    builder.add(cycle + j, Phase::arrive, copy.wait());
  }
}

Program dp(const Rule& rule, const ScheduleSpec& spec, const std::vector<int>& owner, int device) {
  const int devices = rule.micro_batches();
  const int stages = rule.stages();
  const std::int64_t cycle = 2LL * stages;
  const Reduction reduction = spec.parallel.reduction;
  const bool chain = reduction == Reduction::ordered && devices > 1;
  ProgramBuilder builder(cycle);
  Program result{.first_device = device, .buffers = counts_of(rule, 0, stages - 1)};
  std::vector<GradientBuffer>& gradients = result.buffers.gradients;
  for (int j = 0; j < stages; ++j) gradients.push_back({{j}});
  const AlternatingBuffers arriving(stages, stages);
  if (chain && device > 0) arriving.append_to(gradients);

  const std::vector<CollectiveCall> sums = sums_by_stage(spec, owner);
  for (const CollectiveCall& sum : sums)
    result.buffers.optimizer[sum.stage] = sum.root < 0 || sum.root == device;
  add_load(builder, {.micro_batch = device});
  for (int j = stages - 1; j >= 0; --j) {
    const Pass pass = pass_of(rule, device, j);
    add_forward(builder, rule, pass);
    add_backward(builder, rule, pass, j);
    if (chain) add_dp_chain(builder, rule, spec, device, j, {.own = j}, arriving);
    if (!sums.empty()) builder.add(pass.backward_time, Phase::leave, sums[j].start());
    add_release(builder, pass);
  }
  if (reduction == Reduction::fast && devices > 1) {
    CollectiveCall sum;
    for (std::int64_t bytes : spec.message_bytes) sum.bytes += bytes;
    builder.add(cycle - 1, Phase::late_post, sum.start());
    builder.add(cycle, Phase::update, sum.wait());
  }
  add_dp_updates(builder, spec, sums, result.buffers.optimizer);
  result.actions = builder.fold();
  return result;
}

/// Micro-batch i on device i. Cyclic rules: partial sums go from i to i + 1, totals from N - 1 to
/// the stage's owner, new parameters from the owner around the ring. dp: every device updates;
/// partial sums from i to i + 1 and totals around to all, or one all-reduce at the end.
Layout lay_out(const Rule& rule, const ScheduleSpec& spec) {
  if (!spec.pieces.empty()) return lay_out_slots(rule, spec);
  Layout layout{.period_time = 2LL * rule.stages()};
  std::vector<HandOn> rings;
  for (int j = 0; j < rule.stages(); ++j) {
    layout.owner.push_back(first_fresh(rule, j));
    if (rule.cyclic()) rings.emplace_back(rule, j, layout.owner[j], total_time(rule, spec, j), 0);
  }
  layout.groups = groups_of(rule);
  for (int device = 0; device < rule.micro_batches(); ++device) {
    layout.programs.push_back(rule.cyclic() ? cyclic(rule, spec, layout.owner, rings, device)
                                            : dp(rule, spec, layout.owner, device));
  }
  return layout;
}

}  // namespace

PlacementKind replicated() {
  return {.placement = Placement::replicated,
          .name = "replicated",
          .doc = "a device for each micro-batch.",
          .help =
              "N: a device for every micro-batch. dp: an all-reduce, or a chain of partial sums. "
              "Cyclic: gradients and parameters go round a ring; every stage has one owner, which "
              "alone holds optimizer state.",
          .formulas = {.devices = {"N", "N"},
                       .busy = {"1", "1"},
                       .largest_activations = {"A", "A"},
                       .held_activations = {"N A", "sum R (S - j) a_j"},
                       .parameter_copies = {"N", "2 N"},
                       .optimizer_state = {"N P", "P"},
                       .sent = {"2 (N - 1) P", "(2 N - 1) P - L"},
                       .longest = {"2 (N - 1)", "0 or 1 for N = S"}},
          .devices = [](const ParallelConfig& parallel) { return parallel.micro_batches; },
          .layout = lay_out,
          .traits = {.cuts_stages = true,
                     .sums_late = true,
                     .paced = true,
                     .totals_may_wait = true,
                     .dp_reductions = {Reduction::ordered, Reduction::fast, Reduction::overlapped,
                                       Reduction::owner},
                     .cyclic_reductions = {Reduction::ordered, Reduction::fast},
                     .sums_all_stages = true}};
}

}  // namespace carousel::placements
