// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Who predicts reads other parameters than it learns: what it evaluates, keeps and shows are those
// that it learns. The numbers of every step are the oracle's business.

#include "tests/core/train/matrix.hpp"

namespace carousel::test {
namespace {

class Prediction : public ::testing::TestWithParam<int> {
 protected:
  static SmallDeck deck(double predict, DataType type = DataType::full,
                        RuleKind rule = RuleKind::cdp_v1) {
    SmallDeck deck = deck_of(
        {.rule = rule, .micro_batches = GetParam(), .stages = 2, .predict = predict}, false);
    deck.kernels.type = type;
    deck.train.steps = 30;  // several epochs, so that training goes on behind an evaluation
    return deck;
  }
  /// The run that learns nothing more.
  [[nodiscard]] double evaluate_once_more(const SmallRun& run, const Snapshot& last,
                                          double predict) const {
    SmallDeck deck = run.deck();
    deck.parallel.placement = Placement::single;
    deck.parallel.shards = false;
    deck.parallel.sums = Sums::ring;
    deck.parallel.chunks = 1;
    deck.parallel.predict = predict;
    SmallRun again(exec_, dataset_, deck, nullptr, {.step = last.step, .state = source_of(last)});
    EXPECT_TRUE(again.trainer().evaluate_when_due());
    return again.story().evaluations.back().loss;
  }

  /// In every placement.
  void expect_theta_evaluated(const SmallDeck& one) const {
    std::vector<SmallDeck> placements = exact_placements(one);
    placements.push_back(one);
    for (const SmallDeck& placed : placements) {
      SCOPED_TRACE(name_of(placed));
      SmallRun run(exec_, dataset_, placed);
      (void)run.trainer().run();
      const Snapshot last = snapshot(run.trainer());
      ASSERT_GE(run.story().evaluations.size(), 2U);
      // As who has the parameters and predicts nothing.
      EXPECT_EQ(run.story().evaluations.back().loss, evaluate_once_more(run, last, 0));
      EXPECT_EQ(run.story().evaluations.back().loss, evaluate_once_more(run, last, 0.7));
    }
  }

  const RandomDataset file_;
  const Dataset dataset_{file_.path()};
  const ExecutionSpace exec_;
};

TEST_P(Prediction, IsNotWhatIsEvaluated) {
  for (const RuleKind rule : {RuleKind::cdp_v1, RuleKind::cdp_v2}) {
    for (const DataType type : {DataType::full, DataType::bfloat16}) {
      expect_theta_evaluated(deck(0.7, type, rule));
    }
  }
}

/// theta_t + kappa (theta_t - theta_{t-1}), of the version before, from the story of theta.
TEST_P(Prediction, IsWhatTheUpdatesBeforeSay) {
  const SmallDeck one = deck(0.7);
  std::vector<Snapshot> states;  // theta_7, theta_8, theta_9
  for (std::int64_t steps = 7; steps <= 9; ++steps) {
    SmallDeck shorter = one;
    shorter.train.steps = steps;
    shorter.train.schedule.kind = ConstantRate{};
    SmallRun run(exec_, dataset_, shorter);
    (void)run.trainer().run();
    states.push_back(snapshot(run.trainer()));
  }
  expect_same(states[2].previous, states[1].parameters);
  ASSERT_EQ(states[2].predicted.size(), states[2].parameters.size());
  for (std::size_t k = 0; k < states[2].predicted.size(); ++k) {
    const std::vector<real>& theta = states[1].parameters[k].values;
    const std::vector<real>& before = states[0].parameters[k].values;
    for (std::size_t n = 0; n < theta.size(); ++n)
      ASSERT_EQ(states[2].predicted[k].values[n],
                std::fma(static_cast<real>(0.7), theta[n] - before[n], theta[n]));
  }
}

TEST_P(Prediction, OfNothingIsTheRuleItself) {
  SmallRun plain(exec_, dataset_, deck(0));
  (void)plain.trainer().run();
  const Snapshot last = snapshot(plain.trainer());
  EXPECT_TRUE(last.predicted.empty());
  SmallRun predicts(exec_, dataset_, deck(1e-30));
  (void)predicts.trainer().run();
  expect_same(snapshot(predicts.trainer()).parameters, last.parameters);
}

INSTANTIATE_TEST_SUITE_P(N, Prediction, ::testing::Values(2, 4));

}  // namespace
}  // namespace carousel::test
