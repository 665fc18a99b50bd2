// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Whole runs by the queue of NCCL, one device per rank, with another library in NCCL's place: the
// bits of one process, and the messages of the plan.

#include "comm/nccl_session.hpp"

#include <algorithm>

#include "tests/comm/nccl_double.hpp"
#include "tests/core/train/ranks.hpp"
#include "tests/layers/device.hpp"

namespace carousel::test {
namespace {

class NcclRanks : public Ranks {
 protected:
  /// Closes the communicators of one run before the next one.
  class Run {
   public:
    Run(const ExecutionSpace& exec, const Dataset& dataset, SmallDeck deck,
        const std::vector<int>& nodes = {}) {
      deck.rounds = true;
      process_.queue = [this, &exec, nodes](const Schedule& schedule, Clock clock) {
        session_.emplace(
            session(), exec,
            NcclSession::Spec{schedule.groups(), peers_of(schedule, session().rank()), nodes});
        clear_nccl();
        return session_->queue(schedule.buffers(session().rank()).requests, std::move(clock));
      };
      run_.emplace(exec, dataset, deck, &process_);
    }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    ~Run() {
      run_.reset();
      session_->close();
    }
    SmallRun* operator->() { return &*run_; }
    SmallRun& operator*() { return *run_; }

   private:
    std::optional<NcclSession> session_;
    Process process_ = {.device = session().rank(), .connect = {}, .token_bytes = token_bytes};
    std::optional<SmallRun> run_;
  };

  /// As if two ranks each had a node, by which gathers and fast sums of pieces go in two levels.
  static std::vector<int> pairs() {
    std::vector<int> nodes(session().size());
    for (int r = 0; r < session().size(); ++r) nodes[r] = r / 2;
    return nodes;
  }
};

TEST_F(NcclRanks, GiveTheBitsOfOneProcess) {
  int compared = 0;
  for (const SmallDeck& deck : decks()) {
    SCOPED_TRACE(name_of(deck));
    Run ring(exec_, dataset_, deck, pairs());
    SmallRun local(exec_, dataset_, deck);
    const std::vector<Snapshot> saved = train_and_save(ring->trainer());
    std::vector<Snapshot> expected = train_and_save(local.trainer());
    for (Snapshot& all : expected) all = owned_by(session().rank(), *ring, std::move(all));
    EXPECT_EQ(ring->story().receipts[session().rank()], local.story().receipts[session().rank()]);
    expect_same(saved, expected);
    if (session().rank() != 0) continue;
    expect_same(ring->story(), local.story());
    ++compared;
  }
  if (session().rank() == 0)
    fmt::print("matrix: {} runs by NCCL's queue on {} ranks\n", compared, session().size());
}

TEST_F(NcclRanks, AgreeToRoundingWhereSumsAreMadeInAnotherOrder) {
  int compared = 0;
  for (const SmallDeck& exact : decks(rounding_placements)) {
    SCOPED_TRACE(name_of(exact));
    const SmallDeck deck = comparable(exact);
    SmallRun local(exec_, dataset_, placed(deck, Placement::single));
    (void)local.trainer().run();
    for (const std::vector<int>& nodes : {std::vector<int>(), pairs()}) {
      if (!nodes.empty() && !deck.parallel.shards) continue;
      Run run(exec_, dataset_, deck, nodes);
      const Snapshot expected = owned_by(session().rank(), *run, snapshot(local.trainer()));
      (void)run->trainer().run();
      expect_close(snapshot(run->trainer()).parameters, expected.parameters);
      ++compared;
    }
  }
  if (session().rank() == 0)
    fmt::print("matrix: {} runs by NCCL's queue with other sums on {} ranks\n", compared,
               session().size());
}

/// What travels inside a slot is a collective of the library where all pieces are of one size, else
/// a reduction to, or a broadcast by, whoever has a piece of it.
void by_piece(const SmallRun& run, MessageCounts& counts) {
  counts.reduce_scatters = counts.all_gathers = {};
  const auto add = [&](const Action& action) {
    const bool sums = action.kind == ActionKind::reduce_scatter;
    if (!sums && action.kind != ActionKind::all_gather) return;
    const std::vector<PieceBytes>& pieces = run.schedule().spec().pieces[action.stage];
    std::vector<std::int64_t> parts;
    for (int p = action.piece; p < action.piece + shards_of(run.schedule().parallel()); ++p)
      parts.push_back(sums ? pieces[p].gradients : pieces[p].parameters);
    if (std::ranges::count(parts, parts[0]) == std::ssize(parts))
      return (sums ? counts.reduce_scatters : counts.all_gathers).add(action.bytes);
    for (const std::int64_t bytes : parts) {
      if (bytes > 0) (sums ? counts.reduces : counts.broadcasts).add(bytes);
    }
  };
  for (const Segment& segment : run.story().segments) {
    for (const Action& action : run.schedule().actions(session().rank(), segment)) add(action);
  }
}

/// Messages that carry nothing have a byte: tokens, and results of whoever had nothing to evaluate.
MessageCounts with_a_byte_at_least(const SmallRun& run) {
  MessageCounts counts = planned_run(run);
  for_each_list(run, [&](const std::vector<Action>& actions) {
    for (const Action& action : actions) {
      if (action.bytes > 0) continue;
      if (action.kind == ActionKind::send) ++counts.sent[action.peer].bytes;
      if (action.kind == ActionKind::post) ++counts.posted[action.peer].bytes;
    }
  });
  by_piece(run, counts);
  return counts;
}

TEST_F(NcclRanks, SendExactlyThePlansMessages) {
  for (const auto& placements : {exact_placements, rounding_placements}) {
    for (const SmallDeck& deck : decks(placements)) {
      SCOPED_TRACE(name_of(deck));
      Run run(exec_, dataset_, deck);
      (void)run->trainer().run();
      EXPECT_EQ(nccl_calls().counts, with_a_byte_at_least(*run));
    }
  }
}

TEST_F(NcclRanks, UseTheMemoryOfThePlan) {
  for (const SmallDeck& deck : some_of(decks())) {
    SCOPED_TRACE(name_of(deck));
    Run run(exec_, dataset_, deck);
    (void)run->trainer().run();
    EXPECT_EQ(run->trainer().device(session().rank()).memory().peak(),
              run->memory().devices[session().rank()].peak);
  }
}

TEST_F(NcclRanks, DivergeEverywhereAfterTheSameStep) {
  for (SmallDeck deck : some_of(decks())) {
    SCOPED_TRACE(name_of(deck));
    deck.train.optimizer = {.learning_rate = 1e20};
    deck.train.steps = 40;
    SmallRun local(exec_, dataset_, deck);
    const TrainingResult expected = local.trainer().run();
    Run run(exec_, dataset_, deck);
    const TrainingResult found = run->trainer().run();
    EXPECT_EQ(found.steps, expected.steps);
    EXPECT_EQ(found.diverged_at, expected.diverged_at);
  }
}

}  // namespace
}  // namespace carousel::test
