// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whole runs with one device per rank: the decks whose plan has as many devices as this world has
// ranks, and the messages that a plan says.

#include "core/plan/account.hpp"
#include "core/plan/evaluation.hpp"
#include "tests/comm/message_counter.hpp"
#include "tests/core/train/matrix.hpp"
#include "tests/mpi_session.hpp"

namespace carousel::test {

class Ranks : public ::testing::Test {
 protected:
  /// Decks whose plan has as many devices as this world has ranks.
  static std::vector<SmallDeck> decks(const std::function<std::vector<SmallDeck>(const SmallDeck&)>&
                                          placements = exact_placements) {
    std::vector<SmallDeck> result;
    for (const int n : {1, 2, 3, 4, 6, 8}) {
      for (const SmallDeck& deck : all_decks_for(n)) {
        for (const SmallDeck& other : placements(deck)) {
          const ParallelConfig& p = other.parallel;
          // Many pipelines have as many devices; a few stand for all.
          const bool few = p.placement != Placement::pipeline || full_matrix() || n == p.stages ||
                           n == 2 * p.stages || (n == 3 && p.stages != 1);
          if (few && p.placement != Placement::single && devices_of(p) == session().size())
            result.push_back(other);
        }
      }
    }
    return result;
  }

  const RandomDataset file_;
  const Dataset dataset_{file_.path()};
  const ExecutionSpace exec_;
  const Process process_{
      .device = session().rank(), .connect = [](const Schedule& schedule, Clock clock) {
        return session().transport(session().groups(schedule.groups()),
                                   schedule.buffers(session().rank()).requests, std::move(clock));
      }};
};

/// Adds the sends and posts of a list of actions, as MPI would see them.
inline void add_planned(MessageCounts& counts, const std::vector<Action>& actions) {
  for (const Action& action : actions) {
    if (action.kind == ActionKind::send) counts.sent[action.peer].add(action.bytes);
    if (action.kind == ActionKind::post) counts.posted[action.peer].add(action.bytes);
    if (action.kind == ActionKind::all_reduce) counts.all_reduces.add(action.bytes);
    if (action.kind == ActionKind::reduce_scatter) counts.reduce_scatters.add(action.bytes);
    if (action.kind == ActionKind::all_gather) counts.all_gathers.add(action.bytes);
    if (action.kind == ActionKind::reduce) counts.reduces.add(action.bytes);
    if (action.kind == ActionKind::broadcast) counts.broadcasts.add(action.bytes);
  }
}

/// All messages of the segments of a run on this rank.
[[nodiscard]] inline MessageCounts planned_training(const SmallRun& run) {
  MessageCounts counts;
  for (const Segment& segment : run.story().segments)
    add_planned(counts, run.schedule().actions(session().rank(), segment));
  return counts;
}

/// Calls visit with the list of this rank for every segment of a run, and for what happens behind
/// it.
template <class Visit>
void for_each_list(const SmallRun& run, const Visit& visit) {
  for (const Segment& segment : run.story().segments) {
    visit(run.schedule().actions(session().rank(), segment));
    visit(closing_actions(run.schedule(), segment.last)[session().rank()]);
    if (!run.trainer().agenda().evaluates_after(segment.last)) continue;
    visit(evaluation_actions(run.schedule(), run.memory().evaluation_batches, segment.last,
                             run.memory().report_bytes())[session().rank()]);
  }
}

/// All of them.
[[nodiscard]] inline MessageCounts planned_run(const SmallRun& run) {
  MessageCounts counts;
  for_each_list(run, [&](const std::vector<Action>& actions) { add_planned(counts, actions); });
  return counts;
}

}  // namespace carousel::test
