// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// A training that is paused after any step, and goes on in another process and placement, makes the
// same updates as one that is not. Files are tests/core/state's and tests/app's business.

#include <map>

#include "core/base/random.hpp"
#include "tests/core/train/matrix.hpp"

namespace carousel::test {
namespace {

class Restart : public ::testing::TestWithParam<int> {
 protected:
  static std::vector<SmallDeck> decks() {
    const int n = GetParam();
    std::vector<SmallDeck> all = decks_for(n);
    std::ranges::copy(pass_decks_for(n), std::back_inserter(all));
    for (SmallDeck& deck : all) {
      deck.model.dropout = all.size() % 2 == 0 ? 0.2 : 0.3;
      deck.checkpoint = {};
      deck.augment = {.crop = CropKind::random, .padding = 2, .flip = 0.5};
    }
    for (const SmallDeck& vit : vit_decks_for(n)) {
      all.push_back(vit);
      all.back().model.dropout = 0.1;
      all.back().train.steps = 7;
    }
    const std::vector<SmallDeck> resnets = resnet_decks_for(n);
    for (const SmallDeck& deck : {resnets.back(), listed_decks_for(n).back()}) {
      all.push_back(deck);
      all.back().train.steps = 7;
    }
    return all;
  }

  /// Some number below `count`, another one at each call.
  std::int64_t any(std::int64_t count) {
    const double u = uniform01(random_key(9, "restart"), GetParam(), drawn_++);
    return static_cast<std::int64_t>(u * static_cast<double>(count));
  }

  const RandomDataset file_;
  const Dataset dataset_{file_.path()};
  const ExecutionSpace exec_;
  std::uint64_t drawn_ = 0;
};

TEST_P(Restart, GoesOnAnywhereWithTheSameBits) {
  for (const SmallDeck& deck : decks()) {
    std::vector<SmallDeck> placements = exact_placements(deck);
    placements.push_back(deck);
    SmallRun whole(exec_, dataset_, deck);
    whole.trainer().run();
    const Snapshot wanted = snapshot(whole.trainer());
    for (std::size_t k = 0; k < placements.size(); ++k) {
      SCOPED_TRACE(name_of(placements[k]));
      SmallRun first(exec_, dataset_, placements[k]);
      const std::int64_t patience = (1 + any(30)) * (1 + first.schedule().devices() / 4);
      std::int64_t asked = 0;
      first.wants_pause = [&] { return ++asked == patience; };  // one backward of one device
      bool more = true;
      while (more && asked < patience) {
        more = first.trainer().advance();
        if (asked < patience) first.trainer().evaluate_when_due();
      }
      for (int d = 0; d < first.schedule().devices(); ++d)
        EXPECT_EQ(first.trainer().device(d).issuer().segment().last, first.trainer().steps());
      const Snapshot paused = snapshot(first.trainer());

      const Beginning beginning{.step = paused.step,
                                .place = first.trainer().order().locate(paused.step, 0),
                                .state = source_of(paused)};
      SmallRun second(exec_, dataset_, placements[(k + 1) % placements.size()], nullptr, beginning);
      EXPECT_EQ(second.trainer().steps(), paused.step);
      for (int d = 0; d < second.schedule().devices(); ++d)
        EXPECT_EQ(second.trainer().device(d).activity().steps(), paused.step);
      expect_same(snapshot(second.trainer()), paused);
      if (asked >= patience) second.trainer().evaluate_when_due();
      if (paused.step < deck.train.steps) second.trainer().run();
      expect_same(snapshot(second.trainer()), wanted);

      Story told = first.story();  // by two
      const auto add = [](auto& all, const auto& rest) {
        all.insert(all.end(), rest.begin(), rest.end());
      };
      add(told.steps, second.story().steps);
      add(told.evaluations, second.story().evaluations);
      expect_same(told, whole.story());
    }
  }
}

TEST_P(Restart, PausesWithinTheLagOfADecisionAndGoesOnInTheSameProcess) {
  for (const SmallDeck& deck : decks()) {
    SmallRun whole(exec_, dataset_, deck);
    whole.trainer().run();
    for (const SmallDeck& other : exact_placements(deck)) {
      SCOPED_TRACE(name_of(other));
      SmallRun run(exec_, dataset_, other);
      run.wants_pause = [] { return true; };
      for (bool more = true; more;) {
        const std::int64_t before = run.trainer().steps();
        more = run.trainer().advance();
        EXPECT_GT(run.trainer().steps(), before);
        EXPECT_LE(run.trainer().steps(), before + decision_lag);
      }
      expect_same(snapshot(run.trainer()), snapshot(whole.trainer()));
    }
  }
}

TEST_P(Restart, OtherMicroBatchesUseTheRestOfTheEpoch) {
  SmallDeck deck = decks().front();
  deck.train.micro_batch_size = 3;  // a pause lies within the first epoch
  deck.train.schedule = {};
  deck.train.schedule.kind = CosineRate{};
  deck.train.epochs = 3;
  deck.train.steps = 0;
  SmallRun first(exec_, dataset_, deck);
  first.wants_pause = [] { return true; };
  ASSERT_TRUE(first.trainer().advance());
  const Snapshot paused = snapshot(first.trainer());
  SmallDeck other = deck;
  other.train.micro_batch_size = 2;
  const EpochPosition place = first.trainer().order().locate(paused.step, 0);
  SmallRun second(exec_, dataset_, other, nullptr,
                  {.step = paused.step, .place = place, .state = source_of(paused)});
  second.trainer().run();
  std::int64_t used = place.first;
  for (const StepRecord& step : second.story().steps)
    if (step.epoch == 0) used += 2 * GetParam();
  EXPECT_GT(used, RandomDataset::train_samples - 2 * GetParam());
  EXPECT_LE(used, RandomDataset::train_samples);
  EXPECT_EQ(second.story().steps.front().step, paused.step);
  EXPECT_EQ(second.story().steps.back().epoch, 2);
  // As a run that always had micro-batches of 2 in its last epoch.
  SmallRun always(exec_, dataset_, other);
  always.trainer().run();
  EXPECT_EQ(second.story().steps.back().learning_rate, always.story().steps.back().learning_rate);
}

INSTANTIATE_TEST_SUITE_P(N, Restart, ::testing::Values(1, 2, 4));

}  // namespace
}  // namespace carousel::test
