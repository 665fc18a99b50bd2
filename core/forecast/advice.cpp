// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/forecast/advice.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "core/forecast/forecast.hpp"
#include "core/plan/costs.hpp"
#include "core/plan/placements/kinds.hpp"

namespace carousel {
namespace {

constexpr int most_stages_tried = 16;  // beside those that divide N
constexpr int most_slack_tried = 2;    // S is v1
constexpr int chunks_tried = 16;       // beside whole stages, of those that are cut into shards
constexpr double mebibyte = 1024 * 1024;
constexpr double worthwhile = 1 - 1e-3;  // of the seconds of the best so far
constexpr double noticed = 1;            // percent of a step that a delay should save

/// One way to cut the model, for micro-batches of one size.
struct Cut {
  std::vector<StageMemory> stages;
  std::vector<StageSeconds> seconds;
  double micro_batch_seconds = 0;  // all stages forward and backward
  double accumulate_seconds = 0;   // of one gradient of all stages
  double update_seconds = 0;
  std::int64_t largest_message = 0;
};

/// One plan to look at.
struct Option {
  ParallelConfig parallel;
  int micro_batch_size = 0;
  int devices = 0;
  double bound = 0;  // seconds that a step takes at least
  const Cut* cut = nullptr;
};

ParallelConfig with(ParallelConfig parallel, auto ParallelConfig::*member, auto value) {
  parallel.*member = value;
  return parallel;
}

/// Slack that leaves something to the rule.
int most_slack(const ParallelConfig& parallel) {
  const bool waits = parallel.rule == RuleKind::cdp_v2 && !traits_of(parallel.placement).one_device;
  return waits ? std::min(most_slack_tried, parallel.stages - 1) : 0;
}

/// The same with stages that are cut into shards, where they can be.
std::vector<ParallelConfig> in_shards(const ParallelConfig& parallel) {
  std::vector<ParallelConfig> all;
  const PlacementTraits& traits = traits_of(parallel.placement);
  if (!traits.cuts_stages) return all;
  ParallelConfig shards = with(parallel, &ParallelConfig::shards, true);
  if (!has_prediction(shards)) shards.predict = 0;
  std::vector<ParallelConfig> ways;
  if (parallel.rule == RuleKind::dp || parallel.workers() % parallel.stages == 0)
    ways.push_back(shards);
  if (parallel.rule == RuleKind::cdp_v1 && traits.sums_late)
    ways.push_back(with(shards, &ParallelConfig::sums, Sums::late));
  for (const ParallelConfig& way : ways) {
    // Ordered sums of several devices differ from fast ones by a few latencies, and take a hundred
    // times as long to simulate.
    const bool fast = has_reduction(way, Reduction::fast);
    const ParallelConfig summed =
        with(way, &ParallelConfig::reduction, fast ? Reduction::fast : Reduction::ordered);
    for (const int chunks : {chunks_tried, 1}) {
      const ParallelConfig cut = with(summed, &ParallelConfig::chunks, chunks);
      for (int slack = 0; slack <= most_slack(parallel); ++slack)
        all.push_back(with(cut, &ParallelConfig::slack, slack));
    }
  }
  return all;
}

/// What one rule leaves to choose in one placement.
std::vector<ParallelConfig> variants(const ParallelConfig& parallel) {
  const PlacementTraits& traits = traits_of(parallel.placement);
  std::vector<ParallelConfig> all = {parallel};
  for (const Reduction reduction :
       {Reduction::local, Reduction::fast, Reduction::overlapped, Reduction::owner}) {
    if (has_reduction(parallel, reduction))
      all.push_back(with(parallel, &ParallelConfig::reduction, reduction));
  }
  if (parallel.rule == RuleKind::dp) {
    if (traits.has_orders) all.push_back(with(parallel, &ParallelConfig::order, Order::accumulate));
    // Of equals the library's sums come first.
    if (has_fast_sums(parallel)) std::swap(all[0], all[1]);
    return all;
  }
  const std::size_t reductions = all.size();
  for (int slack = 1; slack <= most_slack(parallel); ++slack) {
    for (std::size_t k = 0; k < reductions; ++k)
      all.push_back(with(all[k], &ParallelConfig::slack, slack));
  }
  return all;
}

class Search {
 public:
  Search(const Model& model, const AdviceQuestion& question)
      : model_(model), question_(question), pieces_(most_stages(model)) {}

  Advice run() {
    for (const RuleKind rule : {RuleKind::dp, RuleKind::cdp_v1, RuleKind::cdp_v2}) {
      if (rule != RuleKind::dp && question_.optimizer.clipping() == Clipping::model) break;
      for (const PlacementKind& kind : placement_kinds()) {
        if (const std::optional<Candidate> best = best_of(rule, kind.placement))
          advice_.best.push_back(*best);
      }
    }
    std::ranges::stable_sort(advice_.best, [](const Candidate& a, const Candidate& b) {
      if (a.fits != b.fits) return a.fits;
      return a.fits ? a.seconds < b.seconds : a.fullest < b.fullest;
    });
    return std::move(advice_);
  }

 private:
  [[nodiscard]] std::vector<int> stages_for(int n) const {
    std::vector<int> result;
    for (int stages = 1; stages <= std::min(pieces_, std::max(n, most_stages_tried)); ++stages) {
      if (stages <= most_stages_tried || n % stages == 0) result.push_back(stages);
    }
    return result;
  }

  /// Cuts of one number of stages that differ; balances often agree.
  const std::map<Balance, Cut>& cuts(int batch, int stages) {
    std::map<Balance, Cut>& found = cuts_[{batch, stages}];
    if (!found.empty()) return found;
    std::set<std::vector<int>> seen;
    for (const Balance balance : {Balance::time, Balance::flops, Balance::activations,
                                  Balance::parameters, Balance::layers}) {
      const ParallelConfig parallel{.balance = balance, .stages = stages};
      const Partition partition = cut_model(model_, parallel, batch, question_.machine);
      if (seen.insert(partition.first).second) found[balance] = cut_of(partition, batch);
    }
    return found;
  }

  [[nodiscard]] Cut cut_of(const Partition& partition, int batch) const {
    const Machine& machine = question_.machine;
    const std::vector<StageCosts> costs = stage_costs(
        model_, partition, batch, static_cast<int>(question_.optimizer.states().size()));
    Cut cut{.stages = plan_stages(model_, partition, batch),
            .seconds = stage_seconds(costs, machine)};
    const ScheduleSpec spec = schedule_spec({}, cut.stages);
    cut.largest_message = *std::ranges::max_element(spec.message_bytes);
    // Sums of whole numbers, which all cuts have in common to the last bit: of plans that are
    // equally fast in principle, the first one is looked at first.
    const std::vector<double> times = layer_times(model_, batch, machine);
    cut.micro_batch_seconds = 1e-12 * std::accumulate(times.begin(), times.end(), 0.0);
    Work accumulate;
    Work update;
    for (const StageCosts& stage : costs) {
      accumulate.bytes += stage.accumulate.bytes;
      update.bytes += stage.update.bytes;
    }
    cut.accumulate_seconds = roofline_seconds(accumulate, machine);
    cut.update_seconds = roofline_seconds(update, machine);
    return cut;
  }

  /// Plans of one rule and placement for one size of micro-batches.
  void add_options(RuleKind rule, Placement placement, int batch, std::vector<Option>& options) {
    const auto n = static_cast<int>(question_.samples / batch);
    const bool cyclic = rule != RuleKind::dp;
    if (cyclic && n < 2) return;
    for (const int stages : stages_for(n)) {
      ParallelConfig parallel{
          .rule = rule, .placement = placement, .micro_batches = n, .stages = stages};
      if (traits_of(placement).has_passes && n % question_.passes == 0)
        parallel.passes = question_.passes;
      if (has_prediction(parallel)) parallel.predict = question_.predict;
      const bool odd = needs_whole_slots(rule, placement) && n % stages != 0;
      const int devices = devices_of(parallel);
      if (odd || devices > question_.machine.devices) continue;
      const int least_stages = cyclic || traits_of(placement).splits_stages ? 2 : 1;
      if (stages < least_stages || (!traits_of(placement).one_device && devices < 2)) continue;
      for (const auto& [balance, cut] : cuts(batch, stages)) {
        if (devices > 1 && cut.largest_message > question_.largest_message) continue;
        std::vector<ParallelConfig> all = variants(parallel);
        if (!question_.optimizer.needs_whole_tensors()) {
          const std::vector<ParallelConfig> cut_ones = in_shards(parallel);
          all.insert(all.end(), cut_ones.begin(), cut_ones.end());
        }
        for (ParallelConfig& variant : all) {
          variant.balance = balance;
          // No device computes what another one computes too.
          const bool adds = !by_collectives(variant.reduction);
          const double work = n * cut.micro_batch_seconds + cut.update_seconds +
                              (adds ? (n - 1) * cut.accumulate_seconds : 0);
          options.push_back({variant, batch, devices, work / devices, &cut});
        }
      }
    }
  }

  std::optional<Candidate> best_of(RuleKind rule, Placement placement) {
    std::vector<Option> options;
    for (const int batch : question_.micro_batches) add_options(rule, placement, batch, options);
    advice_.plans += std::ssize(options);
    std::ranges::stable_sort(options, {}, &Option::bound);
    std::optional<Candidate> best;
    for (const Option& option : options) {
      if (best && best->fits && option.bound >= worthwhile * best->seconds) break;
      const Candidate candidate = judge(option);
      const bool better =
          !best || (candidate.fits != best->fits ? candidate.fits
                    : candidate.fits             ? candidate.seconds < worthwhile * best->seconds
                                                 : candidate.fullest < best->fullest);
      if (better) best = candidate;
    }
    return best;
  }

  Candidate judge(const Option& option) {
    const std::vector<StageMemory> stages = cut_stages(option.parallel, option.cut->stages);
    const Schedule schedule(schedule_spec(option.parallel, stages, question_.optimizer.clipping()));
    const MemoryPlan memory =
        plan_memory(question_.memory(option.micro_batch_size), stages, schedule);
    Candidate result{.parallel = option.parallel,
                     .micro_batch_size = option.micro_batch_size,
                     .devices = option.devices};
    for (const DeviceMemoryPlan& device : memory.devices)
      result.fullest = std::max(result.fullest, device.total());
    const double limit = question_.machine.memory;
    result.fits = limit == 0 || static_cast<double>(result.fullest) <= limit;
    if (!result.fits) return result;
    ++advice_.simulated;
    result.seconds = step_seconds(
        schedule, {question_.machine, action_seconds(option.cut->seconds, schedule.spec().pieces)});
    return result;
  }

  const Model& model_;
  const AdviceQuestion& question_;
  int pieces_;
  std::map<std::pair<int, int>, std::map<Balance, Cut>> cuts_ = {};  // [batch, stages]
  Advice advice_ = {};
};

/// How gradients are summed, in a column of the table.
std::string sums_of(const ParallelConfig& parallel) {
  if (parallel.order == Order::accumulate) return to_string(parallel.order);
  if (!parallel.shards) return to_string(parallel.reduction);
  const bool late = parallel.sums == Sums::late;
  const char* const word = parallel.reduction != Reduction::fast ? "ord." : "fast";
  return fmt::format("{}{}/{}", late ? "late " : "", word, parallel.chunks);
}

/// The fastest plan that fits with a delay, or without one; null where there is none.
const Candidate* fastest(const Advice& advice, bool delayed) {
  const auto found = std::ranges::find_if(advice.best, [&](const Candidate& candidate) {
    return candidate.fits && (candidate.parallel.rule != RuleKind::dp) == delayed;
  });
  return found == advice.best.end() ? nullptr : &*found;
}

/// Percent by which dp takes longer than the fastest plan with a delay.
double percent_longer(const Candidate& dp, const Candidate& cyclic) {
  return 100 * (dp.seconds / cyclic.seconds - 1);
}

/// What a delay is worth here.
std::string verdict(const Advice& advice) {
  const Candidate* const cyclic = fastest(advice, true);
  const Candidate* const dp = fastest(advice, false);
  if (cyclic == nullptr && dp == nullptr) return "";
  if (cyclic == nullptr) return "No cyclic plan fits; dp's does, and has no delay.\n";
  if (dp == nullptr) return "No plan of dp fits; cyclic ones do.\n";
  const auto room = [](const Candidate& candidate) {
    return fmt::format("{} device{} with {:.4g} MiB", candidate.devices,
                       candidate.devices > 1 ? "s" : "",
                       static_cast<double>(candidate.fullest) / mebibyte);
  };
  if (&advice.to_take() == dp)
    return fmt::format(
        "dp is as fast as any cyclic rule and has no delay: {:.3g} s on\n{}, against {:.3g} s on\n"
        "{}. Take it unless these are short.\n",
        dp->seconds, room(*dp), cyclic->seconds, room(*cyclic));
  return fmt::format(
      "Without a delay, the fastest plan (dp, {}) takes {:.1f}% longer, on\n{}, against {}.\n",
      to_string(dp->parallel.placement), percent_longer(*dp, *cyclic), room(*dp), room(*cyclic));
}

}  // namespace

const Candidate& Advice::to_take() const {
  const Candidate* const cyclic = fastest(*this, true);
  const Candidate* const dp = fastest(*this, false);
  const bool alike = cyclic != nullptr && dp != nullptr && percent_longer(*dp, *cyclic) < noticed;
  return alike ? *dp : best.front();
}

Advice advise(const Model& model, const AdviceQuestion& question) {
  return Search(model, question).run();
}

std::string to_string(const Advice& advice, const AdviceQuestion& question) {
  const Machine& machine = question.machine;
  std::string text = fmt::format("{} samples per training step on at most {} device{}",
                                 question.samples, machine.devices, machine.devices > 1 ? "s" : "");
  if (machine.memory > 0) text += fmt::format(" of {:.0f} bytes", machine.memory);
  text += fmt::format("\n{} plans, {} simulated\n\n", advice.plans, advice.simulated);
  constexpr const char* row = "{:<9}{:<11}{:>4}{:>6}{:>3} {:<12}{:<12}{:>4}{:>9} {:>8}\n";
  text += fmt::format(row, "rule", "placement", "N", "batch", "S", "balance", "sums", "dev.", "MiB",
                      "seconds");
  for (const Candidate& c : advice.best) {
    const ParallelConfig& p = c.parallel;
    const std::string rule =
        p.slack > 0 ? fmt::format("{}+{}", to_string(p.rule), p.slack) : to_string(p.rule);
    text += fmt::format(row, rule, to_string(p.placement), p.micro_batches, c.micro_batch_size,
                        p.stages, to_string(p.balance), sums_of(p), c.devices,
                        fmt::format("{:.4g}", static_cast<double>(c.fullest) / mebibyte),
                        c.fits ? fmt::format("{:.3g}", c.seconds) : "no room");
  }
  text +=
      "\nFor every rule and placement: the fastest plan that fits, or else the smallest.\n"
      "cdp-v2+1: with slack 1; batch: samples of a micro-batch; sums: the reduction;\n"
      "fast/16, ord./16: by fast or ordered sums of shards, in 16 chunks; late: beside\n"
      "the next step; accumulate: one micro-batch after the other; dev.: devices; MiB:\n"
      "on the fullest of them; seconds: of a training step, simulated.\n";
  if (question.optimizer.clipping() == Clipping::model)
    text += "Only dp can shorten gradients by the norm of the whole model.\n";
  return text + verdict(advice);
}

}  // namespace carousel
