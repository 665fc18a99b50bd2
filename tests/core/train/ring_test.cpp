// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The ring over MPI, one device per rank: the bits of one process, the messages of the plan and no
// others, optimizer state once, no allocation.

#include "core/plan/evaluation.hpp"
#include "tests/comm/message_counter.hpp"
#include "tests/core/train/matrix.hpp"
#include "tests/layers/device.hpp"
#include "tests/layers/kokkos_watch.hpp"
#include "tests/mpi_session.hpp"

namespace carousel::test {
namespace {

class Ring : public ::testing::Test {
 protected:
  /// Decks of this world: the ring has one micro-batch per rank.
  static std::vector<SmallDeck> decks() {
    std::vector<SmallDeck> result;
    for (const SmallDeck& deck : all_decks_for(session().size()))
      result.push_back(placed(deck, Placement::replicated));
    return result;
  }

  const RandomDataset file_;
  const Dataset dataset_{file_.path()};
  const ExecutionSpace exec_;
  const Process process_{.device = session().rank(),
                         .connect = [](int requests, std::size_t bytes, Clock clock) {
                           return session().transport(requests, bytes, std::move(clock));
                         }};
};

/// Adds the sends and posts of a list of actions, as MPI would see them.
void add_planned(MessageCounts& counts, const std::vector<Action>& actions) {
  for (const Action& action : actions) {
    if (action.kind == ActionKind::send) counts.sent[action.peer].add(action.bytes);
    if (action.kind == ActionKind::post) counts.posted[action.peer].add(action.bytes);
    if (action.kind == ActionKind::all_reduce) ++counts.sums;
  }
}

/// All messages of the segments of a run on this rank.
MessageCounts planned_training(const SmallRun& run) {
  MessageCounts counts;
  for (const Segment& segment : run.story().segments)
    add_planned(counts, run.schedule().actions(session().rank(), segment));
  return counts;
}

/// The same with the evaluations after whole epochs and at the end.
MessageCounts planned_run(const SmallRun& run) {
  MessageCounts counts = planned_training(run);
  for (const Segment& segment : run.story().segments)
    add_planned(counts, evaluation_actions(run.schedule(), run.memory().evaluation_batches,
                                           segment.last, metrics_bytes)[session().rank()]);
  return counts;
}

Counted sum(const std::map<int, Counted>& by_peer) {
  Counted all;
  for (const auto& [peer, counted] : by_peer) {
    all.messages += counted.messages;
    all.bytes += counted.bytes;
  }
  return all;
}

TEST_F(Ring, GivesTheBitsOfOneProcess) {
  int compared = 0;
  for (const SmallDeck& deck : decks()) {
    SCOPED_TRACE(name_of(deck));
    SmallRun ring(exec_, dataset_, deck, &process_);
    SmallRun local(exec_, dataset_, deck);
    EXPECT_EQ(ring.trainer().run().steps, deck.train.steps);
    (void)local.trainer().run();
    const Snapshot snapshot = ring.trainer().snapshot();
    const Snapshot expected = local.trainer().snapshot();
    EXPECT_EQ(ring.story().receipts[session().rank()], local.story().receipts[session().rank()]);
    if (session().rank() != 0) continue;
    expect_same(snapshot, expected);
    expect_same(ring.story(), local.story());
    ++compared;
  }
  if (session().rank() == 0)
    fmt::print("matrix: {} runs over MPI, N = {}\n", compared, session().size());
}

TEST_F(Ring, SendsExactlyThePlansMessages) {
  for (const SmallDeck& deck : decks()) {
    SCOPED_TRACE(name_of(deck));
    SmallRun run(exec_, dataset_, deck, &process_);
    start_counting();
    (void)run.trainer().run();
    const MessageCounts& actual = counted();
    const MessageCounts expected = planned_run(run);
    EXPECT_EQ(actual.sent, expected.sent);
    EXPECT_EQ(actual.posted, expected.posted);
    EXPECT_EQ(actual.sums, 0);
    EXPECT_EQ(actual.others, 0);
    EXPECT_EQ(actual.sent.empty(), session().size() == 1);
    const Counted training = sum(planned_training(run).sent);
    EXPECT_EQ(run.trainer().measured(session().rank()).messages_sent, training.messages);
    EXPECT_EQ(run.trainer().measured(session().rank()).bytes_sent, training.bytes);
  }
}

TEST_F(Ring, SendsTheSameInEverySteadyStep) {
  for (SmallDeck deck : decks()) {
    SCOPED_TRACE(name_of(deck));
    // One segment each, so that only the number of steps differs.
    deck.train.micro_batch_size = 1;
    std::vector<Counted> sent;
    for (const std::int64_t steps : {4, 11}) {
      deck.train.steps = steps;
      SmallRun run(exec_, dataset_, deck, &process_);
      start_counting();
      (void)run.trainer().run();
      sent.push_back(sum(counted().sent));
    }
    const SmallRun run(exec_, dataset_, deck, &process_);
    const Traffic traffic_per_step = traffic(run.schedule(), session().rank());
    EXPECT_EQ(sent[1].messages - sent[0].messages, 7 * traffic_per_step.messages);
    EXPECT_EQ(sent[1].bytes - sent[0].bytes, 7 * traffic_per_step.bytes);
  }
}

TEST_F(Ring, CollectsStateByThePlan) {
  for (const SmallDeck& deck : decks()) {
    SCOPED_TRACE(name_of(deck));
    SmallRun run(exec_, dataset_, deck, &process_);
    (void)run.trainer().run();
    std::vector<std::int64_t> bytes;
    for (const StageMemory& stage : run.memory().stages)
      bytes.push_back(stage.parameter_size * std::int64_t{sizeof(real)});
    MessageCounts expected;
    add_planned(expected,
                collection_actions(run.schedule(), bytes, deck.train.steps)[session().rank()]);
    start_counting();
    (void)run.trainer().snapshot();
    EXPECT_EQ(counted().sent, expected.sent);
    EXPECT_EQ(counted().posted, expected.posted);
    EXPECT_EQ(counted().others, 0);
  }
}

TEST_F(Ring, SumsOncePerStepWhenFast) {
  int compared = 0;
  for (const SmallDeck& exact : decks()) {
    if (exact.parallel.rule != RuleKind::dp) continue;
    SCOPED_TRACE(name_of(exact));
    const SmallDeck deck = comparable(exact);
    SmallRun local(exec_, dataset_, deck);
    (void)local.trainer().run();
    const Snapshot expected = local.trainer().snapshot();
    SmallRun run(exec_, dataset_, placed(deck, Placement::replicated, Reduction::fast), &process_);
    start_counting();
    (void)run.trainer().run();
    EXPECT_EQ(counted().sums, session().size() > 1 ? deck.train.steps : 0);
    EXPECT_EQ(counted().sums, planned_run(run).sums);
    EXPECT_EQ(counted().sent, planned_run(run).sent);
    EXPECT_EQ(counted().others, 0);
    const Snapshot snapshot = run.trainer().snapshot();
    for (std::size_t k = 0; k < snapshot.parameters.size(); ++k)
      EXPECT_LE(relative_difference(snapshot.parameters[k].values, expected.parameters[k].values),
                50 * rounding);
    ++compared;
  }
  if (session().rank() == 0)
    fmt::print("matrix: {} runs over MPI with fast sums, N = {}\n", compared, session().size());
}

TEST_F(Ring, KeepsOptimizerStateOncePerStage) {
  for (const SmallDeck& deck : decks()) {
    if (deck.parallel.rule == RuleKind::dp) continue;
    SCOPED_TRACE(name_of(deck));
    SmallRun run(exec_, dataset_, deck, &process_);
    const DeviceMemory& memory = run.trainer().device(session().rank()).memory();
    const auto optimizer = static_cast<std::size_t>(Category::optimizer);
    std::int64_t here = 0;
    for (int j = 0; j < deck.parallel.stages; ++j) {
      const bool owns = run.schedule().owner(j) == session().rank();
      EXPECT_EQ(memory.optimizer(j) != nullptr, owns) << "stage " << j;
      if (owns) here += align_up(run.memory().stages[j].parameter_size * sizeof(real));
    }
    EXPECT_EQ(memory.in_use()[optimizer], here);
    EXPECT_EQ(static_cast<std::int64_t>(memory.arena(Category::optimizer).size()), here);
  }
}

TEST_F(Ring, UsesTheMemoryOfThePlan) {
  for (const SmallDeck& deck : decks()) {
    SCOPED_TRACE(name_of(deck));
    SmallRun run(exec_, dataset_, deck, &process_);
    (void)run.trainer().run();
    const int rank = session().rank();
    EXPECT_EQ(run.trainer().measured(rank).peak_bytes, run.memory().devices[rank].peak);
  }
}

TEST_F(Ring, AllocatesNothingThroughKokkos) {
  for (const SmallDeck& deck : decks()) {
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

TEST_F(Ring, DivergesEverywhereAfterTheSameStep) {
  for (SmallDeck deck : decks()) {
    if (deck.model.name != "mlp") continue;  // batch norm knows no scale, and so goes on
    SCOPED_TRACE(name_of(deck));
    deck.train.optimizer.learning_rate = 1e6;
    SmallRun local(exec_, dataset_, deck);
    SmallRun ring(exec_, dataset_, deck, &process_);
    const TrainingResult expected = local.trainer().run();
    const TrainingResult result = ring.trainer().run();
    EXPECT_GE(result.diverged_at, 0);
    EXPECT_EQ(result.diverged_at, expected.diverged_at);
    EXPECT_EQ(result.steps, expected.steps);
    EXPECT_EQ(ring.story().receipts[session().rank()], local.story().receipts[session().rank()]);
  }
}

}  // namespace
}  // namespace carousel::test
