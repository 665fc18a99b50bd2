// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The table of all placements: what is compared, what it looks like, and that the formulas of each
// placement give the numbers beside them, for stages of different sizes.

#include "core/draw/comparison.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

#include "core/base/align.hpp"
#include "core/base/real.hpp"
#include "core/plan/placements/kinds.hpp"
#include "tests/core/plan/schedules.hpp"

namespace carousel {
namespace {

using testing::describe;
using testing::parallel;

// No two of these are alike, and neither grows with the stage alone.
std::int64_t activations_of(int stage) {
  return tensor_alignment * (5 + 3 * (stage % 3) + stage);
}
std::int64_t parameters_of(int stage) {
  return tensor_alignment * (7 + 5 * (stage % 2) + 2 * stage);
}
std::int64_t cut_behind(int stage) {
  return tensor_alignment * (1 + stage);
}

Schedule schedule_of(const ParallelConfig& config) {
  ScheduleSpec spec{config};
  for (int j = 0; j < config.stages; ++j) {
    spec.message_bytes.push_back(parameters_of(j));
    spec.activation_bytes.push_back(cut_behind(j));
    spec.d_activation_bytes.push_back(2 * cut_behind(j));
  }
  return Schedule(spec);
}

Estimate estimate_of(const ParallelConfig& config) {
  std::vector<StageMemory> stages(config.stages);
  for (int j = 0; j < config.stages; ++j) {
    stages[j].frame_bytes = activations_of(j);
    stages[j].leaving_offset = activations_of(j) - cut_behind(j);
    stages[j].stored_bytes = parameters_of(j);
    stages[j].parameter_size = parameters_of(j) / std::int64_t{sizeof(real)};
    stages[j].message_size = stages[j].parameter_size;
  }
  stages = cut_stages(config, stages);
  const Schedule schedule =
      config.shards ? Schedule(schedule_spec(config, stages)) : schedule_of(config);
  const MemorySpec memory{.input = {1, 1, 1}, .optimizer = {.kind = Sgd{.momentum = 0.9}}};
  return estimate(schedule, plan_memory(memory, stages, schedule), {});
}

/// What a formula says for a plan. Products have no sign, and `sum` and `max` run over the stages j
/// and reach to the end of their product: "2 R sum (S-j) p_j/P".
class Formula {
 public:
  Formula(std::string_view text, const ParallelConfig& parallel)
      : text_(text), n_(parallel.micro_batches), s_(parallel.stages) {
    const Schedule schedule = schedule_of(parallel);
    const BufferCounts& last = schedule.buffers(schedule.devices() - 1);
    for (int j = 0; j < s_; ++j) {
      if (last.optimizer[j]) letters_["L"] += static_cast<double>(parameters_of(j));
      letters_["A"] += static_cast<double>(activations_of(j));
      letters_["P"] += static_cast<double>(parameters_of(j));
      if (j + 1 < s_) letters_["C"] += 3 * static_cast<double>(cut_behind(j));
    }
    letters_["N"] = n_;
    letters_["S"] = s_;
    letters_["R"] = static_cast<double>(n_) / s_;
  }

  double value() {
    const double result = sum();
    EXPECT_EQ(at_, text_.size()) << text_;
    return result;
  }

 private:
  double sum() {
    double result = product();
    while (true) {
      if (takes("+"))
        result += product();
      else if (takes("-"))
        result -= product();
      else
        return result;
    }
  }

  double product() {
    double result = factor();
    while (true) {
      skip();
      if (takes("/"))
        result /= factor();
      else if (at_ < text_.size() &&
               std::string_view("+-,)").find(text_[at_]) == std::string_view::npos)
        result *= factor();
      else
        return result;
    }
  }

  double factor() {
    if (takes("sum ")) return over_stages([](double sum, double next) { return sum + next; });
    if (takes("max ")) return over_stages([](double a, double b) { return std::max(a, b); });
    if (takes("min(")) {
      const double first = sum();
      EXPECT_TRUE(takes(",")) << text_;
      const double second = sum();
      EXPECT_TRUE(takes(")")) << text_;
      return std::min(first, second);
    }
    if (takes("(")) {
      const double inside = sum();
      EXPECT_TRUE(takes(")")) << text_;
      return inside;
    }
    if (takes("a_j")) return static_cast<double>(activations_of(j_));
    if (takes("p_j")) return static_cast<double>(parameters_of(j_));
    if (takes("j")) return j_;
    if (std::isdigit(text_.at(at_)) != 0) return text_[at_++] - '0';
    return letters_[std::string(1, text_[at_++])];
  }

  template <class Fold>
  double over_stages(const Fold& fold) {
    const std::size_t begin = at_;
    double result = 0;
    for (j_ = 0; j_ < s_; ++j_) {
      at_ = begin;
      result = fold(result, product());
    }
    return result;
  }

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool takes(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  std::string_view text_;
  int n_;
  int s_;
  std::map<std::string, double> letters_;
  std::size_t at_ = 0;
  int j_ = 0;
};

double number_of(const Estimate& e, Category category) {
  return static_cast<double>(e.all[static_cast<std::size_t>(category)]);
}

TEST(Comparison, PrintsFormulasThatGiveItsNumbers) {
  int evaluated = 0;
  for (int stages = 2; stages <= 5; ++stages) {
    for (int replicas = 1; replicas <= 3; ++replicas) {
      const int n = stages * replicas;
      for (const ParallelConfig& config :
           alternatives(parallel(RuleKind::cdp_v2, Placement::single, n, stages))) {
        SCOPED_TRACE(describe(config));
        const Estimate e = estimate_of(config);
        const PlacementFormulas& all = kind_of(config.placement).formulas;
        const auto text = [&](Formulas PlacementFormulas::*quantity) {
          const Formulas& formulas = all.*quantity;
          return std::string_view(config.rule == RuleKind::dp ? formulas.dp : formulas.cyclic);
        };
        const auto expect = [&](Formulas PlacementFormulas::*quantity, double number) {
          EXPECT_NEAR(Formula(text(quantity), config).value(), number, 1e-9 * number)
              << text(quantity);
          ++evaluated;
        };
        expect(&PlacementFormulas::devices, e.devices);
        expect(&PlacementFormulas::busy, e.busy);
        const auto activations = static_cast<std::size_t>(Category::activations);
        expect(&PlacementFormulas::largest_activations,
               static_cast<double>(e.largest[activations]));
        expect(&PlacementFormulas::held_activations, static_cast<double>(e.held));
        const double model = Formula("P", config).value();
        expect(&PlacementFormulas::parameter_copies,
               (number_of(e, Category::parameters) + number_of(e, Category::previous_parameters)) /
                   model);
        expect(&PlacementFormulas::optimizer_state, number_of(e, Category::optimizer));
        // "sums, totals, N C" is too long for a formula.
        if (text(&PlacementFormulas::sent).find(',') == std::string_view::npos)
          expect(&PlacementFormulas::sent, static_cast<double>(e.sent.bytes));
        // The last one is a bound; that of cyclic rules is for N = S.
        const std::string_view longest = text(&PlacementFormulas::longest);
        if (longest == "0 or 1 for N = S")
          EXPECT_LE(e.longest, n == stages ? 1 : n);
        else
          EXPECT_LE(e.longest, Formula(longest, config).value());
      }
    }
  }
  EXPECT_GT(evaluated, 700);
}

TEST(Comparison, HasDpBesideACyclicRuleForEveryPlacement) {
  EXPECT_EQ(alternatives(parallel(RuleKind::dp, Placement::single, 4, 4)).size(),
            2 * placement_kinds().size());
  EXPECT_EQ(alternatives(parallel(RuleKind::cdp_v1, Placement::single, 3, 2)).size(),
            2 * placement_kinds().size() - placements_with(&PlacementTraits::whole_slots).size());
  for (const ParallelConfig& config :
       alternatives(parallel(RuleKind::cdp_v1, Placement::single, 4, 2)))
    EXPECT_TRUE(config.rule == RuleKind::dp || config.rule == RuleKind::cdp_v1);
}

TEST(Comparison, CutsStagesWhereItsPlanDoes) {
  for (const Sums sums : {Sums::ring, Sums::late}) {
    for (const int n : {3, 4}) {
      ParallelConfig own = parallel(RuleKind::cdp_v1, Placement::replicated, n, 2);
      own.shards = true;
      own.chunks = 4;
      own.sums = sums;
      const std::vector<ParallelConfig> all = alternatives(own);
      std::vector<Estimate> estimates;
      int own_plans = 0;
      for (const ParallelConfig& config : all) {
        SCOPED_TRACE(describe(config));
        const bool cuts = traits_of(config.placement).cuts_stages;
        EXPECT_EQ(config.shards, cuts);
        EXPECT_EQ(config.chunks, cuts ? 4 : 1);
        const bool late = config.rule == RuleKind::cdp_v1 && config.sums == Sums::late;
        EXPECT_EQ(late, config.rule == RuleKind::cdp_v1 && sums == Sums::late &&
                            traits_of(config.placement).sums_late);
        EXPECT_TRUE(late || config.rule == RuleKind::dp || !config.shards || n % 2 == 0);
        own_plans += config.rule == own.rule && config.placement == own.placement ? 1 : 0;
        estimates.push_back(estimate_of(config));
      }
      EXPECT_EQ(own_plans, sums == Sums::late || n % 2 == 0 ? 1 : 0);
      EXPECT_NE(compare(estimates, {}).find("in shards"), std::string::npos);
    }
  }
}

TEST(Comparison, IsPrintedWithin80Columns) {
  for (const int n : {3, 4}) {
    std::vector<Estimate> estimates;
    for (const ParallelConfig& config :
         alternatives(parallel(RuleKind::cdp_v2, Placement::single, n, 2)))
      estimates.push_back(estimate_of(config));
    const std::string text =
        compare(estimates, {123456789012, 123456789012, 123456789012, estimates}) +
        tabulate("value", std::vector<LabelledEstimate>{{"12", estimates[0]}});
    EXPECT_EQ(text.find("needs N = R S") != std::string::npos, n == 3);
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      EXPECT_LE(text.find('\n', at) - at, 80U) << text.substr(at, 100);
  }
}

}  // namespace
}  // namespace carousel
