// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Devices that are queues: whatever is late, the bits are the same; the host is ahead, but not too
// far; and nothing waits inside of a step.

#include <set>

#include "core/plan/account.hpp"
#include "tests/core/train/matrix.hpp"
#include "tests/layers/kokkos_watch.hpp"

namespace carousel::test {
namespace {

class Queues : public ::testing::TestWithParam<int> {
 protected:
  const RandomDataset file_;
  const Dataset dataset_{file_.path()};
  const ExecutionSpace exec_;
};

TEST_P(Queues, GiveTheSameBitsWhateverIsLate) {
  std::vector<SmallDeck> decks;
  for (const SmallDeck& deck : all_decks_for(GetParam())) {
    for (SmallDeck& other : exact_placements(deck)) decks.push_back(std::move(other));
  }
  const std::size_t many = full_matrix() ? 170 : 8;  // six times
  const std::size_t runs = decks.empty() ? 0 : many;
  for (std::size_t k = 0; k < runs; ++k) {
    SmallDeck deck = decks[k * std::max<std::size_t>(1, decks.size() / runs) % decks.size()];
    deck.train.steps = std::min<std::int64_t>(deck.train.steps, 8);
    SmallRun single(exec_, dataset_, placed(deck, Placement::single));
    (void)single.trainer().run();
    deck.rounds = k % 2 == 1 && devices_of(deck.parallel) > 1;
    deck.helping = k % 4 < 2 ? Helping::alone : Helping::helped;
    deck.staged = k % 3 == 0;
    deck.late = static_cast<unsigned>(100 * k);
    SCOPED_TRACE(name_of(deck));
    SmallRun run(exec_, dataset_, deck);
    const HesitantExecutor executor(*deck.late);
    (void)run.trainer().run();
    EXPECT_GT(executor.actions(), 0);
    expect_same(snapshot(run.trainer()), snapshot(single.trainer()));
    expect_same_receipts(run, single);
  }
  fmt::print("matrix: {} late runs in one process, N = {}\n", runs, GetParam());
}

/// Of a device that has several: whichever of those that may runs its next task, the numbers are
/// the same, and so is what a run holds, but for the workspaces.
TEST_P(Queues, GiveTheSameBitsWhereADeviceHasSeveral) {
  int runs = 0;
  for (const SmallDeck& deck : all_decks_for(GetParam())) {
    if (deck.parallel.rule == RuleKind::dp) continue;
    SmallDeck other = placed(deck, Placement::single);
    SmallRun one(exec_, dataset_, other);
    (void)one.trainer().run();
    for (const int queues : std::set{2, 3, GetParam()}) {
      if (queues < 2 || queues > GetParam()) continue;
      other.queues = queues;
      other.profile.steps = "::1";
      SCOPED_TRACE(fmt::format("{}, {} queues", name_of(other), queues));
      SmallRun several(exec_, dataset_, other);
      const KokkosWatch watch(KokkosWatch::fence);
      (void)several.trainer().run();
      EXPECT_EQ(watch.fences(), std::vector<std::string>());
      expect_same(snapshot(several.trainer()), snapshot(one.trainer()));
      expect_same_receipts(several, one);
      EXPECT_EQ(several.trainer().measured(0).peak_bytes, several.memory().devices[0].peak);
      ++runs;
    }
  }
  // More waits than a queue has room for beside its tasks.
  for (const int queues : {4, 16}) {
    SmallDeck deck = deck_of({.rule = RuleKind::cdp_v2, .micro_batches = 16, .stages = 4}, false);
    deck.train = {.micro_batch_size = 1, .steps = 12, .optimizer = {}, .schedule = {}};
    SmallRun one(exec_, dataset_, deck);
    (void)one.trainer().run();
    deck.queues = queues;
    SmallRun several(exec_, dataset_, deck);
    (void)several.trainer().run();
    expect_same(snapshot(several.trainer()), snapshot(one.trainer()));
    std::set<const std::byte*> own;
    for (int k = 0; k < queues; ++k) own.insert(several.trainer().device(0).memory().scratch(k));
    EXPECT_EQ(std::ssize(own), queues) << "each has its own";
  }
  fmt::print("matrix: {} runs of several queues, N = {}\n", runs, GetParam());
}

/// A device that stands at the beginning of a step is handed that and two more, whole, and no
/// action of what follows.
TEST_P(Queues, AreHandedTwoStepsAheadByAHostThatNeverWaits) {
  for (const SmallDeck& deck : decks_for(GetParam())) {
    for (const SmallDeck& other : exact_placements(deck)) {
      SCOPED_TRACE(name_of(other));
      SmallRun run(exec_, dataset_, other);
      for (int d = 0; d < run.schedule().devices(); ++d) {
        Issuer& issuer = run.trainer().device(d).issuer();
        issuer.begin({0, 10});
        issuer.issue();
        issuer.issue();
        EXPECT_EQ(run.trainer().device(d).executor().executed(), 0);
        EXPECT_EQ(issuer.newest_step(), host_lead);
        std::int64_t sends = 0;  // before the first action of the step after
        bool before = true;
        run.schedule().for_each(d, {0, 10}, [&](const Action& action) {
          before = before && action.step <= host_lead;
          sends += before && action.kind == ActionKind::send ? 1 : 0;
        });
        EXPECT_EQ(issuer.sent().messages, sends);
      }
    }
  }
}

TEST_P(Queues, HaveNoFenceInAStep) {
  for (const SmallDeck& deck : all_decks_for(GetParam())) {
    for (const SmallDeck& other : with_rounds(exact_placements(deck))) {
      SCOPED_TRACE(name_of(other));
      SmallRun run(exec_, dataset_, other);
      const KokkosWatch watch(KokkosWatch::fence);
      (void)run.trainer().run();
      EXPECT_EQ(watch.fences(), std::vector<std::string>());
    }
  }
}

/// Waits that only accelerators make: as many, whatever the number of steps.
TEST_P(Queues, WaitForTheDeviceOnlyOutsideOfSteps) {
  for (const SmallDeck& deck : all_decks_for(GetParam())) {
    for (SmallDeck other : with_rounds(exact_placements(deck))) {
      SCOPED_TRACE(name_of(other));
      other.train.micro_batch_size = 1;
      other.checkpoint = {.every = 0};  // one segment
      std::vector<std::int64_t> waits;
      for (const std::int64_t steps : {2, 6}) {
        other.train.steps = steps;
        SmallRun run(exec_, dataset_, other);
        const std::int64_t before = finished;
        (void)run.trainer().run();
        waits.push_back(finished - before);
      }
      EXPECT_EQ(waits[1], waits[0]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(N, Queues, ::testing::Values(1, 2, 3, 4, 6, 8));

}  // namespace
}  // namespace carousel::test
