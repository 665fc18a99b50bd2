// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Memory as it was planned, to the byte: what the accountant measured, what Kokkos was asked for,
// and which bytes of the activation arena a run really wrote.

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "tests/core/train/matrix.hpp"
#include "tests/layers/kokkos_watch.hpp"

namespace carousel::test {
namespace {

constexpr auto activations = static_cast<std::size_t>(Category::activations);

class Memory : public ::testing::TestWithParam<int> {
 protected:
  static std::vector<SmallDeck> decks() { return local_decks(GetParam()); }

  const RandomDataset file_;
  const Dataset dataset_{file_.path()};
  const ExecutionSpace exec_;
};

/// What a device should hold at once, straight from the paper; -1 where N != S says something else.
std::int64_t activations_by_rule(const SmallRun& run, int device) {
  const ParallelConfig& parallel = run.deck().parallel;
  const bool dp = parallel.rule == RuleKind::dp;
  const std::int64_t n = parallel.micro_batches;
  std::int64_t one = 0;      // A
  std::int64_t uniform = 0;  // sum (N - j) a_j
  for (int j = 0; j < parallel.stages; ++j) {
    one += run.memory().stages[j].frame_bytes;
    uniform += (n - j) * run.memory().stages[j].frame_bytes;
  }
  const int stage = run.schedule().buffers(device).first_stage;
  const std::int64_t frame = run.memory().devices[device].frame_bytes[stage];
  const std::int64_t behind = parallel.stages - stage;
  switch (parallel.placement) {
    case Placement::replicated:
    case Placement::sharded:
      return one;
    case Placement::model:
      return frame;
    case Placement::pipeline:
      if (!dp && n < parallel.stages) return -1;
      return std::min(n, behind) * frame;
    case Placement::single:
      break;
  }
  if (parallel.passes > 1) return one;  // one after the other
  if (dp) return parallel.order == Order::accumulate ? one : n * one;
  return n == parallel.stages ? uniform : -1;
}

TEST_P(Memory, IsThePlanToTheByteAndHasTheActivationsOfTheRule) {
  for (const SmallDeck& deck : decks()) {
    SCOPED_TRACE(name_of(deck));
    SmallRun run(exec_, dataset_, deck);
    (void)run.trainer().run();
    for (int d = 0; d < run.schedule().devices(); ++d) {
      EXPECT_EQ(run.trainer().measured(d).peak_bytes, run.memory().devices[d].peak)
          << "device " << d;
      const std::int64_t expected = activations_by_rule(run, d);
      if (expected < 0) continue;
      EXPECT_EQ(run.trainer().measured(d).peak_bytes[activations], expected) << "device " << d;
    }
  }
}

// Of the model a device of `sharded` holds what it owns and three buffers that travel: one in use,
// one that arrives, one that leaves.
TEST_P(Memory, HoldsInShardedWhatItOwnsAndThreeStages) {
  for (const SmallDeck& deck : decks()) {
    const ParallelConfig& parallel = deck.parallel;
    if (parallel.placement != Placement::sharded || parallel.rule == RuleKind::dp) continue;
    SCOPED_TRACE(name_of(deck));
    SmallRun run(exec_, dataset_, deck);
    (void)run.trainer().run();
    std::int64_t largest = 0;
    for (int j = 0; j < parallel.stages; ++j)
      largest = std::max(largest, align_up(run.schedule().parameter_bytes(j)));
    for (int d = 0; d < run.schedule().devices(); ++d) {
      SCOPED_TRACE(fmt::format("device {}", d));
      const CategoryBytes peak = run.trainer().measured(d).peak_bytes;
      const auto of = [&](Category category) { return peak[static_cast<std::size_t>(category)]; };
      std::int64_t owned = 0;
      std::int64_t state = 0;
      std::int64_t frozen = 0;  // of all stages, since it runs all
      for (const StageMemory& stage : run.memory().stages) frozen += align_up(stage.frozen_bytes);
      for (int j = 0; j < parallel.stages; ++j) {
        // Of the R devices of slot S-1-j each owns stage j, or its shard of it.
        const Rule& rule = run.schedule().rule();
        if (rule.slot_of(d) != parallel.stages - 1 - j) continue;
        const StageMemory& stage = run.memory().stages[j];
        const int shard = parallel.shards ? d - rule.first_in_slot(d) : -1;
        owned += shard < 0 ? align_up(stage.stored_bytes) : stage.stored_of_shard(shard);
        const std::int64_t full = stage.parameters_of_shard(shard) * std::int64_t{sizeof(real)};
        state += align_up(run.memory().optimizer_states * full);
        state += (parallel.predict > 0 ? 2 : stage.keeps_full ? 1 : 0) * align_up(full);
        if (shard <= 0) state += align_up(stage.frozen_full * std::int64_t{sizeof(real)});
      }
      EXPECT_EQ(of(Category::previous_parameters), owned);
      EXPECT_EQ(of(Category::optimizer), state);
      EXPECT_GE(of(Category::parameters), owned + frozen);
      EXPECT_LE(of(Category::parameters), owned + frozen + 3 * largest);
    }
  }
}

TEST_P(Memory, ComesFromKokkosUnderTheNameOfItsCategory) {
  for (const SmallDeck& deck : some_of(decks())) {
    SCOPED_TRACE(name_of(deck));
    const KokkosWatch watch(KokkosWatch::allocation);
    const SmallRun run(exec_, dataset_, deck);
    std::map<std::string, std::vector<std::int64_t>> allocated;  // by label, device by device
    for (const Allocation& allocation : watch.allocations())
      allocated[allocation.label].push_back(allocation.bytes);
    for (int c = 0; c < category_count; ++c) {
      const auto category = static_cast<Category>(c);
      const auto& found = allocated[std::string("carousel::train::") + to_string(category)];
      ASSERT_EQ(found.size(), run.memory().devices.size());
      for (std::size_t d = 0; d < found.size(); ++d) {
        const DeviceMemoryPlan& plan = run.memory().devices[d];
        // The prefetcher's buffers, at the end of the data, are the host's.
        const std::int64_t planned = category == Category::data ? plan.staging : plan.bytes[c];
        // Of an empty view Kokkos reports the header.
        if (planned == 0) continue;
        EXPECT_EQ(found[d], planned) << to_string(category) << ", device " << d;
      }
    }
  }
}

/// Marks the words of every tensor that lies in a frame, and of what layers save besides.
std::vector<bool> planned_words(const SmallRun& run, int device) {
  const DeviceMemoryPlan& plan = run.memory().devices[device];
  const int last = run.schedule().buffers(device).last_stage;
  const int leaves_from = last + 1 < std::ssize(run.memory().stages) ? last : -1;
  std::vector<bool> words(static_cast<std::size_t>(plan.bytes[activations]) / sizeof(real), false);
  for (std::size_t j = 0; j < plan.frames.size(); ++j) {
    const StageMemory& stage = run.memory().stages[j];
    for (const std::int64_t frame : plan.frames[j]) {
      for (int k = 0; k < stage.layers; ++k) {
        const LayerSpec& layer = run.model().layers[stage.first + k];
        const auto mark = [&](const Place& place, std::int64_t size) {
          if (place.region != Region::frame || place.stage != static_cast<int>(j)) return;
          const auto first = (frame + place.offset) / std::int64_t{sizeof(real)};
          std::fill_n(words.begin() + first, size, true);
        };
        constexpr std::int64_t word = sizeof(real);
        const std::int64_t bytes = run.deck().train.micro_batch_size * layer.output.size() *
                                   size_of(layer.output_format.type);
        mark(stage.places[k].output, (bytes + word - 1) / word);
        if (!layer.saved.empty())
          mark(stage.places[k].saved,
               layer.saved.front().bytes.of(run.deck().train.micro_batch_size) /
                   std::int64_t{sizeof(real)});
      }
      if (static_cast<int>(j) != leaves_from) continue;
      // Behind what was made here lies what passes by, and the rider's words.
      const std::int64_t message = frame + stage.leaving_offset;
      const auto mark = [&](std::int64_t offset, std::int64_t size) {
        std::fill_n(words.begin() + (message + offset) / std::int64_t{sizeof(real)}, size, true);
      };
      const StageMemory& next = run.memory().stages[j + 1];
      for (const CrossingTensor& tensor : next.arriving) {
        if (tensor.made.stage < static_cast<int>(j))
          mark(tensor.offset, tensor.bytes / std::int64_t{sizeof(real)});
      }
      mark(next.input_bytes, 2);
    }
  }
  return words;
}

/// A number as its bits, of which NaN has many.
using Bits = std::conditional_t<sizeof(real) == 4, std::uint32_t, std::uint64_t>;

TEST_P(Memory, WritesEveryFrameAndNothingBeyond) {
  real paint = 0;
  std::memset(&paint, 0xA5, sizeof paint);
  for (const SmallDeck& deck : some_of(decks())) {
    SCOPED_TRACE(name_of(deck));
    SmallRun run(exec_, dataset_, deck);
    std::vector<Vector> arenas;
    for (int d = 0; d < run.schedule().devices(); ++d) {
      const Bytes& arena = run.trainer().device(d).memory().arena(Category::activations);
      arenas.emplace_back(reinterpret_cast<real*>(arena.data()), arena.size() / sizeof(real));
      Kokkos::deep_copy(arenas.back(), paint);
    }
    (void)run.trainer().run();
    for (int d = 0; d < run.schedule().devices(); ++d) {
      const auto after = Kokkos::create_mirror_view_and_copy(HostSpace(), arenas[d]);
      std::vector<bool> written(after.size());
      for (std::size_t k = 0; k < after.size(); ++k)
        written[k] = std::bit_cast<Bits>(after(k)) != std::bit_cast<Bits>(paint);
      EXPECT_TRUE(written == planned_words(run, d)) << "device " << d;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(N, Memory, ::testing::Values(1, 2, 3, 4, 6, 8));

}  // namespace
}  // namespace carousel::test
