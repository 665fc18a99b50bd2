// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/plan/placements/hand_on.hpp"
#include "core/plan/placements/parts.hpp"
#include "core/plan/placements/slots.hpp"

namespace carousel::placements {
namespace {

/// Parameters of one stage, or what is read in their place, on their way from device to device,
/// seen from one of them, which reads them for the first time at `use`.
void add_hand_on(ProgramBuilder& builder, const Rule& rule, const ScheduleSpec& spec,
                 const HandOn& way, Payload payload, std::int64_t use, int device, int stage) {
  const int next = way.next(device);
  const int before = way.before(device);
  const bool owner = before < 0;
  const std::int64_t bytes = spec.parameter_bytes[stage];
  const MessageEnd in{.payload = payload,
                      .direction = Direction::receive,
                      .peer = before,
                      .stage = stage,
                      .version = 1,
                      .bytes = bytes};
  MessageEnd out = in;
  out.direction = Direction::send;
  out.peer = next;
  const std::int64_t here = way.time_at(device);

  const FreeParameters free = free_parameters(rule, device, stage);
  if (!owner) {
    builder.add(free.time, free.post(), in.start());
    builder.add(here, Phase::receive_parameters, in.wait());
  }
  if (next < 0) return;
  // With slack there is time to spare: who reads them now hands them on behind its forward, if that
  // is a time step early, and leaves the link before it to the last gradient of the backward.
  const bool reads = here == use;
  const bool spare = rule.slack() > 0 && way.time_at(next) >= here + 2;
  const Phase arrived = owner ? Phase::update : Phase::receive_parameters;
  builder.add(here, reads && spare ? Phase::leave : arrived, out.start());
  // Two steps later the same buffer is written again.
  if (owner)
    builder.add(here + 2 * rule.period(), Phase::before_update, out.wait());
  else
    builder.add(free.time + 2 * rule.period(), free.sent(), out.wait());
}

Program cyclic(const Rule& rule, const ScheduleSpec& spec, const std::vector<int>& owner,
               const std::vector<HandOn>& ways, int device) {
  const int last = rule.workers() - 1;
  const int stages = rule.stages();
  ProgramBuilder builder(rule.period());
  Program result{.first_device = device, .buffers = counts_of(rule, 0, stages - 1)};
  std::vector<GradientBuffer>& gradients = result.buffers.gradients;

  // What is predicted goes apart where others read theta.
  const bool parts = spec.parallel.predict > 0 && !rule.always_stale();
  add_tokens(builder, rule, device);
  const AlternatingBuffers own = add_ring_passes(builder, rule, spec, owner, device, gradients);
  for (int j = stages - 1; j >= 0; --j) {
    const HandOn& way = ways[j];
    result.buffers.optimizer[j] = owner[j] == device;
    if (owner[j] == device) {
      const std::int64_t now = way.time_at(device);
      int source = own.of(j);
      if (device != last) {
        source = static_cast<int>(gradients.size());
        gradients.push_back({{j}});
        const MessageEnd in = total_line(rule, spec, Direction::receive, last, j, source);
        builder.add(std::max(rule.offset(device), now - rule.period()), Phase::post, in.start());
        builder.add(now, Phase::update, in.wait());
      }
      builder.add(now, Phase::update, update(j, source));
    }
    const std::int64_t use = rule.first_use(device, j, 0);
    if (!parts) {
      add_hand_on(builder, rule, spec, way, Payload::parameters, use, device, j);
      continue;
    }
    add_hand_on(builder, rule, spec, way.of_new(rule, j), Payload::parameters, use, device, j);
    add_hand_on(builder, rule, spec, way.of_old(rule, j), Payload::predicted,
                rule.first_old_use(device, j, 0), device, j);
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
  if (spec.parallel.workers() == 1 || !(owned || reduction == Reduction::overlapped)) return sums;
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
void add_dp_updates(ProgramBuilder& builder, const Rule& rule, const ScheduleSpec& spec,
                    const std::vector<CollectiveCall>& sums, const std::vector<bool>& updates) {
  const int stages = rule.stages();
  const std::int64_t cycle = rule.period();
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
  const int devices = rule.workers();
  const int stages = rule.stages();
  const std::int64_t cycle = rule.period();
  const Reduction reduction = spec.parallel.reduction;
  const bool chain = reduction == Reduction::ordered && devices > 1;
  ProgramBuilder builder(cycle);
  Program result{.first_device = device, .buffers = counts_of(rule, 0, stages - 1)};
  std::vector<GradientBuffer>& gradients = result.buffers.gradients;
  for (int j = 0; j < stages; ++j) gradients.push_back({{j}});
  const int pass_buffer = append_pass_buffer(rule, gradients);
  const AlternatingBuffers arriving(stages, static_cast<int>(gradients.size()));
  if (chain && device > 0) arriving.append_to(gradients);

  const std::vector<CollectiveCall> sums = sums_by_stage(spec, owner);
  for (const CollectiveCall& sum : sums)
    result.buffers.optimizer[sum.stage] = sum.root < 0 || sum.root == device;
  add_passes(builder, rule, device,
             [&](int j) { return WorkerSum{.sum = j, .pass = pass_buffer}; });
  for (int j = stages - 1; j >= 0; --j) {
    if (chain) add_dp_chain(builder, rule, spec, device, j, {.own = j}, arriving);
    if (!sums.empty()) builder.add(rule.gradient_time(device, j, 0), Phase::leave, sums[j].start());
  }
  if (reduction == Reduction::fast && devices > 1) {
    CollectiveCall sum;
    for (std::int64_t bytes : spec.message_bytes) sum.bytes += bytes;
    builder.add(cycle - 1, Phase::late_post, sum.start());
    builder.add(cycle, Phase::update, sum.wait());
  }
  add_dp_updates(builder, rule, spec, sums, result.buffers.optimizer);
  result.actions = builder.fold();
  return result;
}

/// Worker w on device w. Cyclic rules: partial sums go from w to w + 1, totals from W - 1 to the
/// stage's owner, new parameters from the owner to all in the order in which they read them. dp:
/// every device updates; partial sums from w to w + 1 and totals around to all, or one all-reduce
/// at the end.
Layout lay_out(const Rule& rule, const ScheduleSpec& spec) {
  if (!spec.pieces.empty()) return lay_out_slots(rule, spec);
  Layout layout{.period_time = rule.period()};
  std::vector<HandOn> ways;
  for (int j = 0; j < rule.stages(); ++j) {
    layout.owner.push_back(first_reader(rule, j));
    if (rule.cyclic()) ways.emplace_back(rule, j, layout.owner[j], total_time(rule, spec, j), 0);
  }
  layout.groups = groups_of(rule);
  for (int device = 0; device < rule.workers(); ++device) {
    layout.programs.push_back(rule.cyclic() ? cyclic(rule, spec, layout.owner, ways, device)
                                            : dp(rule, spec, layout.owner, device));
  }
  return layout;
}

}  // namespace

PlacementKind replicated() {
  return {.placement = Placement::replicated,
          .name = "replicated",
          .doc = "a device for each worker, that is for each micro-batch where passes is 1.",
          .help =
              "N / k: a device for every worker. dp: an all-reduce, or a chain of partial sums. "
              "Cyclic: gradients and parameters go from device to device; every stage has one "
              "owner, which alone holds optimizer state.",
          .formulas = {.devices = {"N", "N"},
                       .busy = {"1", "1"},
                       .largest_activations = {"A", "A"},
                       .held_activations = {"N A", "sum R (S - j) a_j"},
                       .parameter_copies = {"N", "2 N"},
                       .optimizer_state = {"N P", "P"},
                       .sent = {"2 (N - 1) P", "(2 N - 1) P - L"},
                       .longest = {"2 (N - 1)", "0 or 1 for N = S"}},
          .devices = [](const ParallelConfig& parallel) { return parallel.workers(); },
          .layout = lay_out,
          .traits = {.has_passes = true,
                     .cuts_stages = true,
                     .sums_late = true,
                     .paced = true,
                     .totals_may_wait = true,
                     .dp_reductions = {Reduction::ordered, Reduction::fast, Reduction::overlapped,
                                       Reduction::owner},
                     .cyclic_reductions = {Reduction::ordered, Reduction::fast},
                     .sums_all_stages = true}};
}

}  // namespace carousel::placements
