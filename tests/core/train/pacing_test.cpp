// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Offsets between the devices of a ring: what tokens guarantee on any clock. How close a real run
// comes is measured by tests/bench/offsets.py.

#include <map>
#include <string_view>

#include "tests/core/train/matrix.hpp"

namespace carousel::test {
namespace {

/// One forward or backward as it ran; the clock counts questions, so no two times are equal.
struct Span {
  double begin;
  double end;
};
/// [device][step] forwards and backwards in the order in which they ran.
using Computations = std::map<int, std::map<std::int64_t, std::vector<Span>>>;

Computations run_and_record(const Dataset& dataset, SmallDeck deck) {
  deck.profile.steps = "::1";
  SmallRun run(ExecutionSpace(), dataset, deck);
  Computations result;
  run.after_segment = [&](int device, const Recorder& recorder) {
    for (const ActionRecord& action : recorder.actions()) {
      const std::string_view kind = action.kind;
      if (kind == "forward" || kind == "backward")
        result[device][action.step].push_back({action.begin, action.end});
    }
  };
  (void)run.trainer().run();
  return result;
}

class Pacing : public ::testing::TestWithParam<int> {
 protected:
  const RandomDataset file_;
  const Dataset dataset_{file_.path()};
};

TEST_P(Pacing, NoDeviceBeginsAStepBeforeItsNeighbourIsFarEnoughAhead) {
  for (const SmallDeck& deck : decks_for(GetParam())) {
    if (deck.parallel.rule == RuleKind::dp) continue;
    SCOPED_TRACE(name_of(deck));
    const Rule rule(deck.parallel.rule, deck.parallel.micro_batches, deck.parallel.stages,
                    deck.parallel.slack);
    Computations all = run_and_record(dataset_, placed(deck, Placement::replicated));
    for (int i = 1; i < rule.micro_batches(); ++i) {
      const std::int64_t ahead = rule.offset(i) - rule.offset(i - 1);
      for (std::int64_t t = 0; t < deck.train.steps; ++t) {
        const std::vector<Span>& before = all[i - 1][t];
        ASSERT_EQ(before.size(), 2U * deck.parallel.stages);
        const double begin = all[i][t].at(0).begin;
        if (ahead > 0) {
          EXPECT_GT(begin, before[ahead - 1].end) << "device " << i << " step " << t;
        }
      }
    }
  }
}

TEST_P(Pacing, DevicesOfOneProcessKeepTheOffsetsOfTheRule) {
  for (const SmallDeck& deck : decks_for(GetParam())) {
    // Devices of one slot cannot begin at the same time when they take turns.
    if (deck.parallel.rule == RuleKind::dp || deck.parallel.stages < GetParam()) continue;
    SCOPED_TRACE(name_of(deck));
    const Rule rule(deck.parallel.rule, deck.parallel.micro_batches, deck.parallel.stages,
                    deck.parallel.slack);
    Computations all = run_and_record(dataset_, placed(deck, Placement::replicated));
    for (int i = 1; i < rule.micro_batches(); ++i) {
      for (std::int64_t t = 0; t < deck.train.steps; ++t) {
        // What device 0 has computed since it began the step is the time on the rule's clock.
        const double from = all[0][t].at(0).begin;
        const double to = all[i][t].at(0).begin;
        std::int64_t offset = 0;
        for (std::int64_t u = t; u < deck.train.steps; ++u)
          for (const Span& span : all[0][u]) offset += span.begin >= from && span.end <= to ? 1 : 0;
        // At the end of a segment device 0 has nothing more to compute.
        const std::int64_t most = 2 * deck.parallel.stages;
        EXPECT_LE(std::abs(std::min(offset, most) - std::min(rule.offset(i), most)), 1)
            << "device " << i << " step " << t << ": " << offset;
      }
    }
  }
}

// Device 0 learns of the last steps of a segment one right after the other.
TEST_P(Pacing, SpeedsAreThoseOfStepsNotOfTheirReports) {
  for (const SmallDeck& deck : decks_for(GetParam())) {
    for (const SmallDeck& other : exact_placements(deck)) {
      SCOPED_TRACE(name_of(other));
      SmallRun run(ExecutionSpace(), dataset_, other);
      (void)run.trainer().run();
      std::vector<double> speeds;
      for (const StepRecord& step : run.story().steps) speeds.push_back(step.images_per_second);
      std::ranges::sort(speeds);
      EXPECT_LE(speeds.back(), 4 * speeds[speeds.size() / 2]);
    }
  }
}

TEST_P(Pacing, EvaluationsTellHowFarTheyAre) {
  for (const SmallDeck& deck : decks_for(GetParam())) {
    for (const SmallDeck& other : exact_placements(deck)) {
      SCOPED_TRACE(name_of(other));
      SmallRun run(ExecutionSpace(), dataset_, other);
      std::vector<EvaluationProgress> told;
      run.after_part = [&](const EvaluationProgress& progress) { told.push_back(progress); };
      const std::int64_t samples = dataset_.test().samples();
      std::int64_t evaluations = 0;
      for (bool more = true; more;) {
        more = run.trainer().advance();
        if (!run.trainer().evaluate_when_due()) continue;
        ++evaluations;
        // A device with one batch of one stage has nothing to tell between begin and end.
        const bool alone = other.parallel.placement == Placement::single;
        ASSERT_GE(told.size(), alone ? 3U : 2U);
        EXPECT_EQ(told.front().done, 0);
        for (std::size_t k = 1; k < told.size(); ++k) {
          EXPECT_GE(told[k].done, told[k - 1].done);
          EXPECT_EQ(told[k].done == samples, k + 1 == told.size());
          EXPECT_EQ(told[k].step, run.trainer().steps());
          EXPECT_EQ(told[k].samples, samples);
        }
        told.clear();
      }
      EXPECT_GT(evaluations, 0);
      EXPECT_TRUE(told.empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(N, Pacing, ::testing::Values(2, 3, 4, 6, 8));

}  // namespace
}  // namespace carousel::test
