// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// All placements over MPI, one device per rank: the bits of one process, the messages of the plan
// and no others, optimizer state where it belongs, no allocation.

#include "tests/core/train/ranks.hpp"
#include "tests/core/train/hesitant.hpp"
#include "tests/layers/device.hpp"
#include "tests/layers/kokkos_watch.hpp"

namespace carousel::test {
namespace {

TEST_F(Ranks, GivesTheBitsOfOneProcess) {
  int compared = 0;
  for (SmallDeck deck : with_rounds(decks())) {
    SCOPED_TRACE(name_of(deck));
    SmallRun ring(exec_, dataset_, deck, &process_);
    deck.rounds = false;
    SmallRun local(exec_, dataset_, deck);
    const std::vector<Snapshot> saved = train_and_save(ring.trainer());
    std::vector<Snapshot> expected = train_and_save(local.trainer());
    for (Snapshot& all : expected) all = owned_by(session().rank(), ring, std::move(all));
    EXPECT_EQ(ring.trainer().steps(), deck.train.steps);
    EXPECT_EQ(ring.story().receipts[session().rank()], local.story().receipts[session().rank()]);
    expect_same(saved, expected);
    if (session().rank() != 0) continue;
    expect_same(ring.story(), local.story());
    ++compared;
  }
  if (session().rank() == 0)
    fmt::print("matrix: {} runs over MPI on {} ranks\n", compared, session().size());
}

TEST_F(Ranks, SendsExactlyThePlansMessages) {
  for (const auto& placements : {exact_placements, rounding_placements}) {
    bool rounds = false;  // of every other deck
    for (SmallDeck deck : decks(placements)) {
      deck.rounds = rounds;
      rounds = !rounds;
      SCOPED_TRACE(name_of(deck));
      SmallRun run(exec_, dataset_, deck, &process_);
      start_counting();
      (void)run.trainer().run();
      const MessageCounts& actual = counted();
      EXPECT_EQ(actual, planned_run(run));
      const bool cyclic = deck.parallel.rule != RuleKind::dp;
      if (cyclic && deck.parallel.reduction != Reduction::fast) {
        EXPECT_EQ(actual.all_reduces, Counted{});
        EXPECT_EQ(actual.reduces, Counted{});
        EXPECT_EQ(actual.broadcasts, Counted{});
      }
      const Counted training = sum(planned_training(run).sent);
      EXPECT_EQ(run.trainer().measured(session().rank()).messages_sent, training.messages);
      EXPECT_EQ(run.trainer().measured(session().rank()).bytes_sent, training.bytes);
    }
  }
}

TEST_F(Ranks, SendsTheSameInEverySteadyStep) {
  for (SmallDeck deck : some_of(decks())) {
    SCOPED_TRACE(name_of(deck));
    // One segment each, so that only the number of steps differs.
    deck.train.micro_batch_size = 1;
    deck.checkpoint = {.every = 0};
    std::vector<Counted> sent;
    for (const std::int64_t steps : {4, 10}) {
      deck.train.steps = steps;
      SmallRun run(exec_, dataset_, deck, &process_);
      start_counting();
      (void)run.trainer().run();
      sent.push_back(sum(counted().sent));
    }
    const SmallRun run(exec_, dataset_, deck, &process_);
    const Traffic six_steps = sent_in(run.schedule(), session().rank(), {4, 10});
    EXPECT_EQ(sent[1].messages - sent[0].messages, six_steps.messages);
    EXPECT_EQ(sent[1].bytes - sent[0].bytes, six_steps.bytes);
  }
}

TEST_F(Ranks, ShowsStateWithoutMessages) {
  for (const SmallDeck& deck : some_of(decks())) {
    SCOPED_TRACE(name_of(deck));
    SmallRun run(exec_, dataset_, deck, &process_);
    (void)run.trainer().run();
    start_counting();
    (void)snapshot(run.trainer());
    EXPECT_EQ(counted(), MessageCounts{});
  }
}

TEST_F(Ranks, AgreesToRoundingWhereSumsAreMadeInAnotherOrder) {
  int compared = 0;
  for (const SmallDeck& exact : with_rounds(decks(rounding_placements))) {
    SCOPED_TRACE(name_of(exact));
    const SmallDeck deck = comparable(exact);
    SmallRun local(exec_, dataset_, placed(deck, Placement::single));
    (void)local.trainer().run();
    SmallRun run(exec_, dataset_, deck, &process_);
    const Snapshot expected = owned_by(session().rank(), run, snapshot(local.trainer()));
    (void)run.trainer().run();
    expect_close(snapshot(run.trainer()).parameters, expected.parameters);
    ++compared;
  }
  if (session().rank() == 0)
    fmt::print("matrix: {} runs over MPI with other sums on {} ranks\n", compared,
               session().size());
}

TEST_F(Ranks, KeepsOptimizerStateOncePerStage) {
  for (const SmallDeck& deck : decks()) {
    const bool cyclic = deck.parallel.rule != RuleKind::dp;
    const bool replicated = deck.parallel.placement == Placement::replicated;
    if (!cyclic || !replicated) continue;
    SCOPED_TRACE(name_of(deck));
    SmallRun run(exec_, dataset_, deck, &process_);
    const DeviceMemory& memory = run.trainer().device(session().rank()).memory();
    const auto optimizer = static_cast<std::size_t>(Category::optimizer);
    std::int64_t here = 0;
    for (int j = 0; j < deck.parallel.stages; ++j) {
      const StageMemory& stage = run.memory().stages[j];
      const int shard = run.schedule().buffers(session().rank()).shard;
      const std::int64_t parameters = stage.parameters_of_shard(shard);
      const bool shows = run.schedule().shows(session().rank(), j);
      if (shows && shard <= 0) here += align_up(stage.frozen_full * std::int64_t{sizeof(real)});
      if (shows && parameters == 0) continue;  // all of it is frozen, or of others
      EXPECT_EQ(memory.optimizer(j) != nullptr, shows) << "stage " << j;
      const ParametersRead reads = run.schedule().buffers(session().rank()).reads_of(j);
      const bool predicts =
          reads == ParametersRead::predicted || (reads == ParametersRead::both && stage.keeps_full);
      const int copies = predicts ? 2 : stage.keeps_full ? 1 : 0;
      EXPECT_EQ(memory.full_parameters(j, 0) != nullptr, shows && copies > 0) << "stage " << j;
      if (!shows) continue;
      const std::int64_t full = parameters * std::int64_t{sizeof(real)};
      here += align_up(run.memory().optimizer_states * full);
      here += copies * align_up(full);
    }
    EXPECT_EQ(memory.in_use()[optimizer], here);
    EXPECT_EQ(static_cast<std::int64_t>(memory.arena(Category::optimizer).size()), here);
  }
}

TEST_F(Ranks, UsesTheMemoryOfThePlanAlsoForStaging) {
  for (SmallDeck deck : some_of(decks())) {
    deck.staged = true;
    SCOPED_TRACE(name_of(deck));
    SmallRun run(exec_, dataset_, deck, &process_);
    (void)run.trainer().run();
    const int rank = session().rank();
    const CategoryBytes& planned = run.memory().devices[rank].peak;
    EXPECT_EQ(run.trainer().measured(rank).peak_bytes, planned);
    if (session().size() > 1) {
      EXPECT_GT(planned[static_cast<std::size_t>(Category::communication)], 0);
    }
  }
}

TEST_F(Ranks, AllocatesNothingThroughKokkos) {
  for (const SmallDeck& deck : some_of(decks())) {
    SCOPED_TRACE(name_of(deck));
    // In the second run of a process, all first steps of kernels are over.
    SmallRun first(exec_, dataset_, deck, &process_);
    (void)first.trainer().run();
    SmallRun second(exec_, dataset_, deck, &process_);
    const KokkosWatch watch(KokkosWatch::allocation);
    (void)second.trainer().run();
    EXPECT_EQ(watch.allocations(), std::vector<Allocation>());
  }
}

TEST_F(Ranks, DivergesEverywhereAfterTheSameStep) {
  bool rounds = false;  // of every other deck
  for (SmallDeck deck : some_of(decks())) {
    if (deck.model.name != "mlp") continue;  // batch norm knows no scale, and so goes on
    SCOPED_TRACE(name_of(deck));
    deck.train.optimizer.learning_rate = 1e6;
    deck.train.optimizer.clip_norm = deck.train.optimizer.clip_stage_norm = 0;
    SmallRun local(exec_, dataset_, deck);
    deck.rounds = rounds;
    rounds = !rounds;
    SmallRun ring(exec_, dataset_, deck, &process_);
    const TrainingResult expected = local.trainer().run();
    const TrainingResult result = ring.trainer().run();
    EXPECT_GE(result.diverged_at, 0);
    EXPECT_EQ(result.diverged_at, expected.diverged_at);
    EXPECT_EQ(result.steps, expected.steps);
    EXPECT_EQ(ring.story().receipts[session().rank()], local.story().receipts[session().rank()]);
  }
}

TEST_F(Ranks, GiveTheSameBitsWhateverIsLate) {
  std::vector<SmallDeck> all;
  for (const SmallDeck& deck : decks())
    if (deck.model.name == "mlp") all.push_back(deck);
  const int many = session().size() == 4 ? 1000 : 100;
  const std::size_t wanted = full_matrix() ? many : 30;
  const std::size_t runs = all.empty() ? 0 : wanted;
  std::map<std::size_t, std::vector<std::vector<std::uint64_t>>> expected;  // [deck] receipts
  const int rank = session().rank();
  for (std::size_t k = 0; k < runs; ++k) {
    const std::size_t at = k * std::max<std::size_t>(1, all.size() / runs) % all.size();
    SmallDeck deck = all[at];
    deck.train.steps = 6;
    SCOPED_TRACE(name_of(deck));
    if (!expected.contains(at)) {
      SmallRun run(exec_, dataset_, deck, &process_);
      (void)run.trainer().run();
      expected[at] = run.story().receipts[rank];
    }
    deck.rounds = k % 2 == 1;
    deck.helping = k % 4 < 2 ? Helping::alone : Helping::helped;
    deck.staged = k % 3 == 0;
    deck.late = static_cast<unsigned>(100 * k) + static_cast<unsigned>(rank);
    SmallRun run(exec_, dataset_, deck, &process_);
    const HesitantExecutor executor(*deck.late);
    (void)run.trainer().run();
    EXPECT_GT(executor.actions(), 0);
    EXPECT_EQ(run.story().receipts[rank], expected[at]);
  }
  if (rank == 0) fmt::print("matrix: {} late runs over MPI on {} ranks\n", runs, session().size());
}

}  // namespace
}  // namespace carousel::test
