// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The rows of [parallel], but for those of the transport.

#include "core/deck/kinds.hpp"
#include "core/plan/placements/kinds.hpp"
#include "core/plan/rule.hpp"

namespace carousel {
std::vector<Row<ParallelConfig>> ParallelConfig::rows() {
  // Bounds keep products of two of these, and the number of samples of a step, within 32 bits.
  const Allowed counts = within(1, most_parallel);
  return {
      key("rule", &ParallelConfig::rule, one_of<RuleKind>(),
          "Which parameters a gradient is computed with. dp: those of the current step. cdp-v1: "
          "those of the step before. cdp-v2: the freshest that exist in time.",
          bound(Bond::fixed)),
      key("placement", &ParallelConfig::placement, one_of<Placement>(),
          "Which device runs what." + docs_of(placement_kinds())),
      key("order", &ParallelConfig::order, one_of<Order>(),
          "together: all micro-batches of a step at once. accumulate: one after the other.",
          {.only_with = {{"parallel.rule", {"dp"}},
                         {"parallel.placement", placements_with(&PlacementTraits::has_orders)}}}),
      key("micro_batches", &ParallelConfig::micro_batches, counts,
          "Number of micro-batches in a training step, N.", bound(Bond::numbers)),
      key("passes", &ParallelConfig::passes, counts,
          "Micro-batches that a worker takes one after the other, k. It adds up their gradients "
          "first, and then those of all N / k workers are added up, in every placement: what "
          "travels is that of one micro-batch, for k times as long. Must divide "
          "parallel.micro_batches; workers then take the place of micro-batches in what is said "
          "below.",
          bound(Bond::numbers,
                only_with("parallel.placement", placements_with(&PlacementTraits::has_passes)))),
      key("stages", &ParallelConfig::stages, counts,
          "Number of consecutive stages of the model, S."),
      key("balance", &ParallelConfig::balance, one_of<Balance>(),
          "What the cut makes equal between stages. time needs a [machine] table."),
      key("slack", &ParallelConfig::slack, within(0, most_parallel),
          "Extra time for messages: each unit gives them two more time steps. 0 is the paper's "
          "cdp-v2. At most parallel.stages times parallel.passes.",
          bound(Bond::fixed, only_with("parallel.rule", {"cdp-v2"}))),
      key("predict", &ParallelConfig::predict, within(0, 4),
          "Takes back a part of the delay: who would read theta_{t-1} in step t reads theta_{t-1} "
          "+ predict (theta_{t-1} - theta_{t-2}), so that 1 goes on as the last update went; "
          "carousel help rules says where that pays. Who updates a stage keeps further versions of "
          "it, evaluations may send some to all, and checkpoints hold one more. cdp-v2 has it "
          "where stages go whole and stay.",
          bound(Bond::fixed, only_with("parallel.rule", {"cdp-v1", "cdp-v2"}))),
      key("shards", &ParallelConfig::shards, anything,
          "Cuts every stage into a piece for each device that shares the work, which adds up and "
          "updates it for the others, and alone keeps its optimizer state. dp: all N devices, "
          "which is ZeRO-1 or, where the placement is sharded, FSDP. Cyclic rules: the N / S "
          "devices of a slot, which should be those of a node; between slots, N / S rings of S "
          "devices run side by side instead of one of N, so that N must be a multiple of S.",
          only_with("parallel.placement", placements_with(&PlacementTraits::cuts_stages))),
      key("sums", &ParallelConfig::sums, one_of<Sums>(),
          "How cdp-v1 with shards sums. ring: micro-batches run one after the other, and partial "
          "sums go round. late: they run together as those of dp, whose sums have the whole next "
          "step: the same numbers, for the activations of dp, gradient buffers of two models, and "
          "any N and S.",
          {.only_with = {{"parallel.rule", {"cdp-v1"}},
                         {"parallel.shards", {"true"}},
                         {"parallel.placement", placements_with(&PlacementTraits::sums_late)}}}),
      key("updates", &ParallelConfig::updates, one_of<Updates>(),
          "When stages of dp with shards are updated. eager: each as soon as its gradients are "
          "known, the first one first. together: when those of all are, as DeepSpeed does; so it "
          "is where gradients are clipped by the norm of the model.",
          {.only_with = {{"parallel.rule", {"dp"}}, {"parallel.shards", {"true"}}}}),
      key("chunks", &ParallelConfig::chunks, counts,
          "Cuts large stages, too, so that no message has more than 1 / chunks of all parameters, "
          "and the next device need not wait for the whole of one.",
          only_with("parallel.shards", {"true"})),
      key("reduction", &ParallelConfig::reduction, one_of<Reduction>(),
          "How gradients are summed. ordered: in the order of the micro-batches, with the same "
          "bits everywhere. fast: by collectives of the library (dp, or slots of several "
          "micro-batches). overlapped: by one all-reduce for each stage, beside the backward pass "
          "(dp, replicated). owner: by one reduction to a device that alone updates the stage and "
          "broadcasts it, which is ZeRO-1 (dp, replicated). local: first within each device "
          "(cyclic rules, model)."),
  };
}

}  // namespace carousel
