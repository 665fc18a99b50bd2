// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// A loss that is no longer finite: all devices of all placements in one process stop after the same
// step. Ranks are compared in ranks_test.cpp.

#include "tests/core/train/matrix.hpp"

namespace carousel::test {
namespace {

class Divergence : public ::testing::TestWithParam<int> {
 protected:
  const RandomDataset file_;
  const Dataset dataset_{file_.path()};
  const ExecutionSpace exec_;
};

TEST_P(Divergence, StopsAllDevicesAfterTheSameStep) {
  std::vector<SmallDeck> decks = decks_for(GetParam());
  std::ranges::copy(pass_decks_for(GetParam()), std::back_inserter(decks));
  for (SmallDeck deck : decks) {
    SCOPED_TRACE(name_of(deck));
    deck.train.optimizer.learning_rate = 1e6;
    deck.train.optimizer.clip_norm = deck.train.optimizer.clip_stage_norm = 0;
    SmallRun single(exec_, dataset_, deck);
    SmallRun replicated(exec_, dataset_, placed(deck, Placement::replicated));
    const TrainingResult expected = single.trainer().run();
    const TrainingResult result = replicated.trainer().run();
    EXPECT_GE(expected.diverged_at, 0);
    EXPECT_EQ(result.diverged_at, expected.diverged_at);
    EXPECT_EQ(result.steps, expected.steps);
    EXPECT_LE(expected.steps, expected.diverged_at + decision_lag);
    for (int d = 0; d < replicated.schedule().devices(); ++d) {
      const Issuer& issuer = replicated.trainer().device(d).issuer();
      EXPECT_EQ(issuer.diverged_at(), expected.diverged_at) << "device " << d;
      EXPECT_EQ(issuer.segment().last, expected.steps) << "device " << d;
      EXPECT_EQ(replicated.trainer().device(d).activity().steps(), expected.steps);
    }
    expect_same_receipts(replicated, single);
  }
}

TEST_P(Divergence, WhoeverWatchesKnowsTheStepsDoneBetweenSegments) {
  for (SmallDeck deck : decks_for(GetParam())) {
    SCOPED_TRACE(name_of(deck));
    deck.checkpoint.every_steps = 5;
    SmallRun run(exec_, dataset_, placed(deck, Placement::replicated));
    for (bool more = true; more;) {
      more = run.trainer().advance();
      for (int d = 0; d < run.schedule().devices(); ++d)
        EXPECT_EQ(run.trainer().device(d).activity().steps(), run.trainer().steps());
    }
  }
}

TEST_P(Divergence, WhoeverWatchesCountsNoStepThatIsNotDoneAndMissesFewThatAre) {
  for (const SmallDeck& deck : decks_for(GetParam())) {
    for (const SmallDeck& other : exact_placements(deck)) {
      SCOPED_TRACE(name_of(other));
      SmallRun run(exec_, dataset_, other);
      std::vector<std::int64_t> counted;  // by device 0, as each step is told
      run.after_step = [&](const StepRecord& step) {
        counted.push_back(run.trainer().device(0).activity().steps());
        for (int d = 0; d < run.schedule().devices(); ++d) {
          EXPECT_LE(run.trainer().device(d).activity().steps(), step.step + 2);
          EXPECT_GE(run.trainer().device(d).activity().steps(), step.step - 2);
        }
      };
      run.trainer().run();
      // Steps may be told together; all that are counted are told, and the newest was.
      for (const std::int64_t steps : counted) {
        ASSERT_TRUE(steps >= 1 && steps <= std::ssize(counted));
        EXPECT_EQ(counted[static_cast<std::size_t>(steps) - 1], steps);
      }
      for (int d = 0; d < run.schedule().devices(); ++d)
        EXPECT_EQ(run.trainer().device(d).activity().steps(), run.trainer().steps());
    }
  }
}

TEST_P(Divergence, IsNotEvaluated) {
  for (SmallDeck deck : decks_for(GetParam())) {
    deck.train.optimizer.learning_rate = 1e6;
    deck.train.optimizer.clip_norm = deck.train.optimizer.clip_stage_norm = 0;
    SmallRun run(exec_, dataset_, deck);
    const TrainingResult result = run.trainer().run();
    for (const EvaluationRecord& evaluation : run.story().evaluations)
      EXPECT_LT(evaluation.step, result.steps);
  }
}

INSTANTIATE_TEST_SUITE_P(N, Divergence, ::testing::Values(1, 2, 3, 4, 6, 8));

}  // namespace
}  // namespace carousel::test
