// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Devices that compute everything once before anything begins: nothing of it is left, and nothing
// comes into being later.

#include <gmock/gmock.h>

#include "tests/core/train/matrix.hpp"
#include "tests/layers/kokkos_watch.hpp"

namespace carousel::test {
namespace {

class Rehearsals : public ::testing::TestWithParam<int> {
 protected:
  /// In every placement; those of one device with several queues, too.
  static std::vector<SmallDeck> decks() {
    std::vector<SmallDeck> all;
    for (const SmallDeck& deck : all_decks_for(GetParam())) {
      all.push_back(deck);
      for (SmallDeck& other : exact_placements(deck)) all.push_back(std::move(other));
      if (deck.parallel.rule == RuleKind::dp || GetParam() == 1) continue;
      all.push_back(deck);
      all.back().queues = 2;
    }
    // Outside of the full matrix every third, of all kinds.
    std::vector<SmallDeck> some;
    for (std::size_t k = 0; k < all.size(); k += full_matrix() ? 1 : 3) some.push_back(all[k]);
    for (SmallDeck& deck : some) {
      deck.profile.steps = "::1";
      deck.train.steps = std::min<std::int64_t>(deck.train.steps, 6);
    }
    return some;
  }
  static SmallDeck rehearsed(SmallDeck deck) {
    deck.rehearses = true;
    return deck;
  }
  static std::vector<std::byte> bytes_of(const ExecutionSpace& exec, const Bytes& arena) {
    std::vector<std::byte> bytes(arena.size());
    copy<HostSpace, MemorySpace>(exec, bytes.data(), arena.data(), bytes.size());
    finish(exec, "carousel::test::bytes");
    return bytes;
  }

  const RandomDataset file_;
  const Dataset dataset_{file_.path()};
  const ExecutionSpace exec_;
};

TEST_P(Rehearsals, LeaveNoTrace) {
  int runs = 0;
  for (const SmallDeck& deck : decks()) {
    SCOPED_TRACE(fmt::format("{}, {} queues", name_of(deck), deck.queues));
    SmallRun plain(exec_, dataset_, deck);
    SmallRun run(exec_, dataset_, rehearsed(deck));
    for (int d = 0; d < run.schedule().devices(); ++d) {
      const auto& device = run.trainer().device(d);
      const auto& fresh = plain.trainer().device(d);
      for (int c = 0; c < category_count; ++c) {
        const auto category = static_cast<Category>(c);
        ASSERT_TRUE(bytes_of(exec_, device.memory().arena(category)) ==
                    bytes_of(exec_, fresh.memory().arena(category)))
            << to_string(category) << " of device " << d;
      }
      EXPECT_EQ(device.memory().in_use(), fresh.memory().in_use());
      EXPECT_EQ(device.executor().executed(), 0);
      EXPECT_EQ(device.executor().data_wait(), 0);
    }
    EXPECT_TRUE(run.story().steps.empty());
    const std::vector<Snapshot> expected = train_and_save(plain.trainer());
    const std::vector<Snapshot> found = train_and_save(run.trainer());
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t k = 0; k < found.size(); ++k) expect_same(found[k], expected[k]);
    expect_same(run.story(), plain.story());
    EXPECT_EQ(run.story().receipts, plain.story().receipts);
    EXPECT_EQ(run.trainer().measured(0).peak_bytes, plain.trainer().measured(0).peak_bytes);
    ++runs;
  }
  fmt::print("matrix: {} rehearsed runs, N = {}\n", runs, GetParam());
}

/// Kokkos makes room for teams when it first needs it, and labels where they are first used.
TEST_P(Rehearsals, LetNothingComeIntoBeingInSteps) {
  for (const SmallDeck& deck : decks()) {
    SCOPED_TRACE(name_of(deck));
    SmallRun run(exec_, dataset_, rehearsed(deck));
    const KokkosWatch watch(KokkosWatch::allocation);
    (void)run.trainer().run();
    EXPECT_EQ(watch.allocations(), std::vector<Allocation>());
  }
}

/// Where something is put in memory at the beginning.
TEST_P(Rehearsals, LeaveNoTraceInWhatGoesOn) {
  SmallDeck deck =
      deck_of({.rule = RuleKind::cdp_v2, .micro_batches = GetParam(), .stages = 2}, true, true);
  deck.checkpoint.every_steps = 2;
  SmallRun whole(exec_, dataset_, deck);
  const std::vector<Snapshot> saved = train_and_save(whole.trainer());
  ASSERT_GT(saved.size(), 1U);
  const Snapshot& middle = saved.front();
  const TrainingOrder& order = whole.trainer().order();
  const Beginning beginning{
      .step = middle.step, .place = order.locate(middle.step, 0), .state = source_of(middle)};
  SmallRun rest(exec_, dataset_, rehearsed(deck), nullptr, beginning);
  expect_same(snapshot(rest.trainer()), middle);
  (void)rest.trainer().run();
  expect_same(snapshot(rest.trainer()), snapshot(whole.trainer()));
}

INSTANTIATE_TEST_SUITE_P(N, Rehearsals, ::testing::Values(1, 2, 4));

}  // namespace
}  // namespace carousel::test
