// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// What a profiler sees of whole runs: nothing is allocated inside training steps, every kernel and
// View is named, every kernel runs on the execution space that the trainer was given.

#include <gmock/gmock.h>

#include <set>

#include "tests/core/train/matrix.hpp"
#include "tests/layers/heap_counter.hpp"

namespace carousel::test {
namespace {

struct Launch {
  std::string label;
  std::uint32_t device;
};

// What the callbacks saw; they have no argument that could carry it.
std::vector<Launch> launches;
std::vector<std::string> allocations;

void on_launch(const char* label, std::uint32_t device, std::uint64_t* /*id*/) {
  launches.push_back({label, device});
}
void on_allocation(Kokkos::Tools::SpaceHandle /*space*/, const char* label, const void* /*data*/,
                   std::uint64_t /*bytes*/) {
  allocations.emplace_back(label);
}

void watch_launches(bool on) {
  namespace tools = Kokkos::Tools::Experimental;
  launches.clear();
  tools::set_begin_parallel_for_callback(on ? on_launch : nullptr);
  tools::set_begin_parallel_reduce_callback(on ? on_launch : nullptr);
  tools::set_begin_parallel_scan_callback(on ? on_launch : nullptr);
}

void watch_allocations(bool on) {
  allocations.clear();
  Kokkos::Tools::Experimental::set_allocate_data_callback(on ? on_allocation : nullptr);
}

class Allocations : public ::testing::TestWithParam<int> {
 protected:
  ~Allocations() override {
    watch_launches(false);
    watch_allocations(false);
  }

  static std::vector<SmallDeck> decks() {
    std::vector<SmallDeck> all;
    for (const SmallDeck& deck : decks_for(GetParam())) {
      all.push_back(deck);
      all.push_back(placed(deck, Placement::replicated));
      if (deck.parallel.rule != RuleKind::dp) continue;
      all.push_back(deck);
      all.back().parallel.order = Order::accumulate;
      all.push_back(placed(deck, Placement::replicated, Reduction::fast));
    }
    // Matrices of more than one tile.
    for (SmallDeck& deck : all) deck.widths = {64, 130, 70, 20, 10};
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
    bool first = true;
    run.after_step = [&](const StepRecord&) {
      if (std::exchange(first, false)) watch_allocations(true);
    };
    (void)run.trainer().run();
    EXPECT_EQ(allocations, std::vector<std::string>());
    watch_allocations(false);
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
    run.after_step = [&](const StepRecord& step) {
      if (before >= 0 && step.step > 1) {
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
    watch_allocations(true);
    watch_launches(true);
    SmallRun run(exec_, dataset_, deck);
    (void)run.trainer().run();
    (void)run.trainer().snapshot();
    EXPECT_GE(launches.size(), 100U);
    // Zeros of a View come from a kernel that Kokkos names after it.
    std::set<std::string> labels(allocations.begin(), allocations.end());
    for (const Launch& launch : launches) labels.insert(launch.label);
    EXPECT_THAT(labels, ::testing::Each(::testing::MatchesRegex(
                            "(Kokkos::View::initialization \\[)?carousel::.*")));
    watch_launches(false);
    watch_allocations(false);
  }
}

TEST_P(Allocations, EveryKernelRunsOnTheGivenSpace) {
  const ExecutionSpace exec = Kokkos::Experimental::partition_space(ExecutionSpace(), 1)[0];
  const std::uint32_t id = Kokkos::Tools::Experimental::device_id(exec);
  for (const SmallDeck& deck : decks()) {
    SCOPED_TRACE(name_of(deck));
    watch_launches(true);
    SmallRun run(exec, dataset_, deck);
    (void)run.trainer().run();
    (void)run.trainer().snapshot();
    for (const Launch& launch : launches) EXPECT_EQ(launch.device, id) << launch.label;
    watch_launches(false);
  }
}

INSTANTIATE_TEST_SUITE_P(N, Allocations, ::testing::Values(1, 4, 6));

}  // namespace
}  // namespace carousel::test
