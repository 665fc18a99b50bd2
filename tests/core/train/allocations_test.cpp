// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// What a profiler sees of whole runs: nothing is allocated inside training steps, every kernel and
// View is named, every kernel runs on the execution space that the trainer was given.

#include <gmock/gmock.h>

#include <optional>
#include <set>

#include "tests/core/train/matrix.hpp"
#include "tests/layers/heap_counter.hpp"
#include "tests/layers/kokkos_watch.hpp"

namespace carousel::test {
namespace {

class Allocations : public ::testing::TestWithParam<int> {
 protected:
  static std::vector<SmallDeck> decks() {
    std::vector<SmallDeck> all = local_decks(GetParam());
    // Matrices of more than one tile.
    for (SmallDeck& deck : all)
      if (deck.model.name == "mlp") deck.model.widths = {64, 130, 70, 20, 10};
    return all;
  }

  const RandomDataset file_;
  const Dataset dataset_{file_.path()};
  const ExecutionSpace exec_;
};

TEST_P(Allocations, KokkosAllocatesNothingInARun) {
  for (const SmallDeck& deck : decks()) {
    SCOPED_TRACE(name_of(deck));
    SmallRun run(exec_, dataset_, deck);
    std::optional<KokkosWatch> watch;
    run.after_step = [&](const StepRecord&) {
      if (!watch) watch.emplace(KokkosWatch::allocation);
    };
    (void)run.trainer().run();
    ASSERT_TRUE(watch);
    EXPECT_EQ(watch->allocations(), std::vector<Allocation>());
  }
}

TEST_P(Allocations, NoActionTakesFromTheHeap) {
  if (!runs_on_host) GTEST_SKIP() << "Kokkos builds a text for every fence of a device";
  for (SmallDeck deck : decks()) {
    deck.profile.steps = "::1";
    SmallRun run(exec_, dataset_, deck);
    // Segments make room for their records before they begin, so that only steps between the first
    // and the last one of a segment count.
    const HeapCounter heap;
    int before = -1;
    int taken = 0;
    int steps = 0;
    // A device without stage 0 hears of the last steps when the segment is over.
    const bool hears = !run.schedule().buffers(0).owns(0);
    run.after_step = [&](const StepRecord& step) {
      const std::int64_t last = run.trainer().device(0).issuer().segment().last;
      if (before >= 0 && step.step > 1 && (!hears || step.step + 2 < last)) {
        taken += heap.allocations() - before;
        ++steps;
      }
      before = heap.allocations();
    };
    run.after_segment = [&](int, const Recorder&) { before = -1; };
    run.reserve_story();
    (void)run.trainer().run();
    heap.pause();
    EXPECT_EQ(taken, 0) << name_of(deck) << ", in " << steps << " steps";
  }
}

// What an observer does with a step, such as writing files, is in no action's way or time.
TEST_P(Allocations, TellsOfStepsBetweenActions) {
  for (SmallDeck deck : decks()) {
    SCOPED_TRACE(name_of(deck));
    deck.profile.steps = "::1";
    SmallRun run(exec_, dataset_, deck);
    std::vector<double> told;
    int inside = 0;
    run.after_step = [&](const StepRecord&) { told.push_back(run.seconds()); };
    run.after_segment = [&](int device, const Recorder& recorder) {
      if (device != 0) return;
      for (const ActionRecord& action : recorder.actions()) {
        if (action.kind == to_string(ActionKind::wait)) continue;
        for (const double seconds : told)
          inside += action.begin < seconds && seconds < action.end ? 1 : 0;
      }
    };
    (void)run.trainer().run();
    EXPECT_EQ(std::ssize(told), deck.train.steps);
    EXPECT_EQ(inside, 0);
  }
}

TEST_P(Allocations, EveryKernelAndViewIsNamedAfterItsRoom) {
  for (const SmallDeck& deck : decks()) {
    SCOPED_TRACE(name_of(deck));
    const KokkosWatch watch(KokkosWatch::allocation + KokkosWatch::launch);
    SmallRun run(exec_, dataset_, deck);
    (void)run.trainer().run();
    (void)snapshot(run.trainer());
    EXPECT_GE(watch.launches().size(), 100U);
    // Zeros of a View come from a kernel that Kokkos names after it.
    std::set<std::string> labels;
    for (const Allocation& allocation : watch.allocations()) labels.insert(allocation.label);
    for (const Launch& launch : watch.launches()) labels.insert(launch.label);
    EXPECT_THAT(labels, ::testing::Each(::testing::MatchesRegex(
                            "(Kokkos::View::initialization \\[)?carousel::.*")));
  }
}

TEST_P(Allocations, EveryKernelRunsOnTheGivenSpace) {
  const ExecutionSpace exec = Kokkos::Experimental::partition_space(ExecutionSpace(), 1)[0];
  const std::uint32_t id = Kokkos::Tools::Experimental::device_id(exec);
  for (const SmallDeck& deck : decks()) {
    SCOPED_TRACE(name_of(deck));
    const KokkosWatch watch(KokkosWatch::launch);
    SmallRun run(exec, dataset_, deck);
    (void)run.trainer().run();
    (void)snapshot(run.trainer());
    for (const Launch& launch : watch.launches()) EXPECT_EQ(launch.device, id) << launch.label;
  }
}

INSTANTIATE_TEST_SUITE_P(N, Allocations, ::testing::Values(1, 4, 6));

}  // namespace
}  // namespace carousel::test
