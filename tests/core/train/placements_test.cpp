// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// One trajectory: every placement in one process gives the bits of one device, step by step.

#include "core/base/digest.hpp"
#include "core/deck/kinds.hpp"
#include "core/model/op.hpp"
#include "core/train/rider.hpp"
#include "tests/core/train/matrix.hpp"
#include "tests/layers/device.hpp"

namespace carousel::test {
namespace {

class Placements : public ::testing::TestWithParam<int> {
 protected:
  /// Trains on one device and in all exact placements, to the same bits. Returns the last loss.
  double train_everywhere(const SmallDeck& deck) {
    SmallRun single(exec_, dataset_, deck);
    single.trainer().run();
    for (const SmallDeck& other : exact_placements(deck)) {
      SCOPED_TRACE(name_of(other));
      SmallRun run(exec_, dataset_, other);
      run.trainer().run();
      expect_same(snapshot(run.trainer()), snapshot(single.trainer()));
      expect_same(run.story(), single.story());
      expect_same_receipts(run, single);
    }
    return single.story().steps.back().loss;
  }

  const RandomDataset file_;
  const Dataset dataset_{file_.path()};
  const ExecutionSpace exec_;
};

TEST_P(Placements, GiveTheSameBits) {
  int compared = 0;
  for (const SmallDeck& deck : all_decks_for(GetParam())) {
    SCOPED_TRACE(name_of(deck));
    SmallRun single(exec_, dataset_, deck);
    const std::vector<Snapshot> expected = train_and_save(single.trainer());
    EXPECT_EQ(single.trainer().steps(), deck.train.steps);
    for (const SmallDeck& other : with_rounds(exact_placements(deck))) {
      SCOPED_TRACE(name_of(other));
      SmallRun run(exec_, dataset_, other);
      expect_same(train_and_save(run.trainer()), expected);
      EXPECT_EQ(run.trainer().result().diverged_at, -1);
      expect_same(run.story(), single.story());
      expect_same_receipts(run, single);
      ++compared;
    }
    const SmallDeck shorter = comparable(deck);
    SmallRun exact(exec_, dataset_, shorter);
    (void)exact.trainer().run();
    for (const SmallDeck& other : with_rounds(rounding_placements(shorter))) {
      SCOPED_TRACE(name_of(other));
      SmallRun run(exec_, dataset_, other);
      EXPECT_EQ(run.trainer().run().steps, other.train.steps);
      expect_close(snapshot(run.trainer()).parameters, snapshot(exact.trainer()).parameters);
      ++compared;
    }
  }
  fmt::print("matrix: {} runs on several devices of one process, N = {}\n", compared, GetParam());
}

/// A checkpoint of an earlier step is what a run that ends there leaves, and making it changes
/// nothing of what comes later.
TEST_P(Placements, CheckpointsAreThoseOfShorterRuns) {
  for (SmallDeck deck : {decks_for(GetParam()).back(), resnet_decks_for(GetParam()).back()}) {
    SmallRun whole(exec_, dataset_, deck);
    const std::vector<Snapshot> saved = train_and_save(whole.trainer());
    for (const Snapshot& one : saved) {
      deck.train.steps = one.step;
      deck.checkpoint = {.every = 0};
      SmallRun shorter(exec_, dataset_, deck);
      (void)shorter.trainer().run();
      expect_same(snapshot(shorter.trainer()), one);
    }
  }
}

TEST_P(Placements, DropTheSameFeatures) {
  SmallDeck deck = decks_for(GetParam()).back();
  SmallRun without(exec_, dataset_, deck);
  without.trainer().run();
  deck.model.dropout = 0.3;
  EXPECT_NE(train_everywhere(deck), without.story().steps.back().loss);
}

/// Whoever updates a stage, with whatever the optimizer works with.
TEST_P(Placements, UpdateTheSameByEveryOptimizer) {
  for (const std::string& name : Kinds<Optimizer>::names()) {
    SmallDeck deck = decks_for(GetParam()).back();
    deck.train.optimizer = {.kind = Kinds<Optimizer>::named(name),
                            .learning_rate = 0.01,
                            .weight_decay = 0.05,
                            .decay_norm_and_bias = false,
                            .clip_stage_norm = 0.3};
    SCOPED_TRACE(name);
    (void)train_everywhere(deck);
  }
}

/// Whatever a run is trained for, and reports.
TEST_P(Placements, TrainTheSameForEveryTask) {
  for (const Op& op : all_ops()) {
    if (!op.loss) continue;
    SmallDeck deck = decks_for(GetParam()).back();
    deck.task.loss = op.loss->name;
    for (const Metric& metric : all_metrics())
      if (metric.takes(TargetKind::labels)) deck.task.metrics.emplace_back(metric.name);
    SCOPED_TRACE(deck.task.loss);
    (void)train_everywhere(deck);
  }
}

TEST_P(Placements, ReceiptsAreDigestsOfParametersAndStatistics) {
  const SmallDeck deck = resnet_decks_for(GetParam()).back();
  SmallRun run(exec_, dataset_, deck);
  std::vector<std::uint64_t> digests(deck.parallel.stages);
  run.after_update = [&](const ExecutionSpace& queue, int, std::int64_t, int stage,
                         const real* theta) {
    std::vector<real> host(run.memory().stages[stage].rider_offset());
    copy_to_host(queue, host, theta);
    digests[stage] = digest(std::span<const real>(host));
  };
  (void)run.trainer().run();
  for (int j = 0; j < deck.parallel.stages; ++j)
    EXPECT_EQ(run.story().receipts[0][j].back(), digests[j]);
}

INSTANTIATE_TEST_SUITE_P(N, Placements, ::testing::Values(1, 2, 3, 4, 6, 8));

}  // namespace
}  // namespace carousel::test
