// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/draw/comparison.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "core/base/text.hpp"
#include "core/plan/placements/kinds.hpp"

namespace carousel {
namespace {

constexpr std::size_t index_of(Category category) {
  return static_cast<std::size_t>(category);
}

/// A number that plans are compared by, and the formula that each placement has for it, if any.
struct Quantity {
  const char* name;
  std::function<std::string(const Estimate&)> number;
  Formulas PlacementFormulas::*formulas = nullptr;
  bool same_types = false;  // formulas take parameters for as large as their gradients
};

std::string seconds_of(const std::optional<Exposure>& seconds, double Exposure::*member) {
  return seconds ? fmt::format("{:.4g}", (*seconds).*member) : std::string("-");
}

int passes_of(const Estimate& e) {
  return e.parallel.passes;
}

std::string bytes_of(const CategoryBytes& bytes, Category category) {
  return human_bytes(bytes[index_of(category)]);
}

/// What a quantity of an estimate is of that in fp32.
std::string part_of(const Estimate& e, std::span<const Estimate> estimates,
                    const ComparisonBasis& basis,
                    const std::function<std::int64_t(const Estimate&)>& bytes) {
  const Estimate& full = basis.in_fp32[static_cast<std::size_t>(&e - estimates.data())];
  return bytes(full) == 0 ? "-" : human_part(bytes(e), bytes(full));
}

std::vector<Quantity> quantities(std::span<const Estimate> estimates,
                                 const ComparisonBasis& basis) {
  const bool seconds = estimates.front().seconds.has_value();
  const auto copies = [parameter_bytes = basis.parameter_bytes](const Estimate& e) {
    const std::int64_t bytes =
        e.all[index_of(Category::parameters)] + e.all[index_of(Category::previous_parameters)];
    return fmt::format("{:.2f}", static_cast<double>(bytes) / static_cast<double>(parameter_bytes));
  };
  std::vector<Quantity> all = {
      {"devices", [](const Estimate& e) { return fmt::format("{}", e.devices); },
       &PlacementFormulas::devices},
      {"fraction of time steps in which a device computes",
       [](const Estimate& e) { return fmt::format("{:.3f}", e.busy); }, &PlacementFormulas::busy},
      {"activations on the device that has most",
       [](const Estimate& e) { return bytes_of(e.largest, Category::activations); },
       &PlacementFormulas::largest_activations},
      {"activations in use at once on all devices",
       [](const Estimate& e) { return human_bytes(e.held); }, &PlacementFormulas::held_activations},
      {"copies of all parameters, on all devices", copies, &PlacementFormulas::parameter_copies},
      {"optimizer state on all devices (P without what rides along)",
       [](const Estimate& e) { return bytes_of(e.all, Category::optimizer); },
       &PlacementFormulas::optimizer_state, true},
      {"sent per training step by all devices",
       [](const Estimate& e) { return human_bytes(e.sent.bytes); }, &PlacementFormulas::sent, true},
      {"messages one after the other between two computing time steps, at most",
       [](const Estimate& e) { return fmt::format("{}", e.longest); }, &PlacementFormulas::longest},
      {"bytes on their way in a time step, largest over mean",
       [](const Estimate& e) { return fmt::format("{:.2f}", e.unevenness); }},
  };
  if (!basis.in_fp32.empty()) {
    all.push_back({"sent in bf16, of what fp32 sends", [&](const Estimate& e) {
                     return part_of(e, estimates, basis,
                                    [](const Estimate& one) { return one.sent.bytes; });
                   }});
    all.push_back({"memory of all devices in bf16, of that in fp32", [&](const Estimate& e) {
                     return part_of(e, estimates, basis, &Estimate::total);
                   }});
  }
  if (!seconds) return all;
  all.push_back({"seconds per training step, simulated",
                 [](const Estimate& e) { return seconds_of(e.seconds, &Exposure::step); }});
  all.push_back({"the same on links that cost nothing",
                 [](const Estimate& e) { return seconds_of(e.seconds, &Exposure::ideal_step); }});
  return all;
}

}  // namespace

std::vector<ParallelConfig> alternatives(const ParallelConfig& parallel) {
  std::vector<ParallelConfig> all;
  for (const PlacementKind& kind : placement_kinds()) {
    ParallelConfig asked = kind.traits.cuts_stages ? parallel : parallel.whole();
    if (!kind.traits.has_passes) {
      asked.passes = 1;
      asked.slack = std::min(asked.slack, asked.stages);
    }
    ParallelConfig dp = asked;
    dp.rule = RuleKind::dp;
    dp.placement = kind.placement;
    dp.order = Order::together;
    dp.sums = Sums::ring;
    dp.slack = 0;
    dp.predict = 0;
    dp.reduction = has_fast_sums(dp) ? Reduction::fast : Reduction::ordered;
    all.push_back(dp);
    ParallelConfig cyclic = asked;
    if (parallel.rule == RuleKind::dp) cyclic.rule = RuleKind::cdp_v2;
    cyclic.placement = kind.placement;
    cyclic.order = Order::together;
    cyclic.updates = Updates::eager;
    if (!has_prediction(cyclic)) cyclic.predict = 0;
    if (!kind.traits.sums_late) cyclic.sums = Sums::ring;
    if (parallel.rule == RuleKind::dp || !has_reduction(cyclic, cyclic.reduction))
      cyclic.reduction = Reduction::ordered;
    const bool whole_slots = cyclic.workers() % cyclic.stages == 0;
    const bool rings = cyclic.shards && cyclic.sums == Sums::ring;
    if (whole_slots || !(rings || needs_whole_slots(cyclic.rule, kind.placement)))
      all.push_back(cyclic);
  }
  return all;
}

std::string compare(std::span<const Estimate> estimates, const ComparisonBasis& basis) {
  const auto find = [&](Placement placement, bool cyclic) -> const Estimate* {
    const auto found = std::ranges::find_if(estimates, [&](const Estimate& e) {
      return e.parallel.placement == placement && (e.parallel.rule != RuleKind::dp) == cyclic;
    });
    return found == estimates.end() ? nullptr : &*found;
  };
  const auto cyclic = std::ranges::find_if(
      estimates, [](const Estimate& e) { return e.parallel.rule != RuleKind::dp; });
  const char* rule = cyclic == estimates.end() ? "" : to_string(cyclic->parallel.rule);
  const ParallelConfig& parallel = estimates.front().parallel;
  std::string text =
      fmt::format("N = {} micro-batches, S = {} stages", parallel.micro_batches, parallel.stages);
  if (parallel.micro_batches % parallel.stages == 0)
    text += fmt::format(", R = N / S = {}", parallel.micro_batches / parallel.stages);
  text += fmt::format(
      "\nP = {} of parameters, p_j of stage j{}\n"
      "A = {} of activations of a micro-batch, a_j of stage j, and\n"
      "    a few more where the next stage is on another device\n"
      "C   bytes of a micro-batch that cross all cuts, both ways\n"
      "L   bytes of the stages that the last device updates\n",
      human_bytes(basis.model_bytes),
      basis.in_fp32.empty()
          ? std::string()
          : fmt::format("; {} as kernels read them", human_bytes(basis.parameter_bytes)),
      human_bytes(basis.micro_batch_bytes));
  if (std::ranges::any_of(estimates, [](const Estimate& e) { return e.parallel.shards; }))
    text +=
        "Numbers without a formula are of stages in shards (parallel.shards): of dp in all\n"
        "N, of a ring in R.\n";
  if (std::ranges::any_of(estimates, [](const Estimate& e) { return e.parallel.predict > 0; }))
    text += "Numbers without a formula have what is predicted, too (parallel.predict).\n";
  const int passes = std::ranges::max(estimates, {}, passes_of).parallel.passes;
  if (passes > 1)
    text += fmt::format(
        "Numbers without a formula are of {} workers that take k = {} micro-batches each, one\n"
        "after the other (parallel.passes).\n",
        parallel.micro_batches / passes, passes);
  // Formulas hold if there is something to divide; those of cyclic rules need whole slots.
  const bool parted = parallel.micro_batches > 1 && parallel.stages > 1;
  const bool whole_slots = parallel.micro_batches % parallel.stages == 0;
  const auto row = [&](const Quantity& quantity, const PlacementKind& kind) {
    const Estimate* dp = find(kind.placement, false);
    const Estimate* other = find(kind.placement, true);
    const Formulas formulas =
        quantity.formulas == nullptr ? Formulas{"", ""} : kind.formulas.*quantity.formulas;
    const bool parts = parted && (basis.in_fp32.empty() || !quantity.same_types);
    const auto holds = [&](const Estimate* e) {
      return parts && !e->parallel.shards && e->parallel.passes == 1 && e->parallel.predict == 0;
    };
    text += fmt::format("  {:<11}", kind.name);
    text += fmt::format("{:>13}  {:<18}", dp != nullptr ? quantity.number(*dp) : "-",
                        dp != nullptr && holds(dp) ? formulas.dp : "");
    const char* formula = other == nullptr              ? "needs N = R S"
                          : holds(other) && whole_slots ? formulas.cyclic
                                                        : "";
    text += fmt::format("{:>13}{}{}\n", other != nullptr ? quantity.number(*other) : "-",
                        *formula != '\0' ? "  " : "", formula);
  };
  for (const Quantity& quantity : quantities(estimates, basis)) {
    text += fmt::format("\n{}\n{:>26}{:>33}\n", quantity.name, "dp", rule);
    for (const PlacementKind& kind : placement_kinds()) row(quantity, kind);
  }
  return text;
}

std::string tabulate(const std::string& heading, std::span<const LabelledEstimate> rows) {
  std::string text = fmt::format("{:<14}{:>8}{:>7}{:>13}{:>13}{:>13}{:>12}\n", heading, "devices",
                                 "busy", "largest", "activations", "sent", "seconds");
  for (const LabelledEstimate& row : rows) {
    const Estimate& e = row.estimate;
    text += fmt::format("{:<14}{:>8}{:>7.3f}{:>13}{:>13}{:>13}{:>12}\n", row.label, e.devices,
                        e.busy, human_bytes(e.fullest), human_bytes(e.held),
                        human_bytes(e.sent.bytes), seconds_of(e.seconds, &Exposure::step));
  }
  text +=
      "largest: the device that holds most; activations: in use at once on all devices;\n"
      "sent: per training step; seconds per step need a [machine] table\n";
  return text;
}

}  // namespace carousel
