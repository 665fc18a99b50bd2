// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
// What a profiler would see of the engine's kernels: labels, the execution space they run on, and
// that nothing is allocated once every kernel has run. Uses the callbacks of Kokkos Tools.

#include <string>

#include "core/train/kernels.hpp"
#include "core/train/optimizer.hpp"
#include "tests/layers/chain.hpp"
#include "tests/layers/heap_counter.hpp"

namespace carousel {
namespace {

struct Launch {
  std::string label;
  std::uint32_t device;
};

// What the callbacks saw; they have no argument that could carry it.
std::vector<Launch> launches;
std::vector<std::string> allocations;
std::vector<std::string> fences;

void on_launch(const char* label, std::uint32_t device, std::uint64_t* /*id*/) {
  launches.push_back({label, device});
}
void on_allocation(Kokkos::Tools::SpaceHandle /*space*/, const char* label, const void* /*data*/,
                   std::uint64_t /*bytes*/) {
  allocations.emplace_back(label);
}
void on_fence(const char* label, std::uint32_t /*device*/, std::uint64_t* /*id*/) {
  fences.emplace_back(label);
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

/// Not together with launches: Kokkos itself fences around every launch that is watched.
void watch_fences(bool on) {
  fences.clear();
  Kokkos::Tools::Experimental::set_begin_fence_callback(on ? on_fence : nullptr);
}

class KokkosTools : public testing::Test {
 protected:
  KokkosTools()
      : model_(build_mlp({12, 40, 33, 5}, {3, 2, 2}, 5)),
        chain_(model_, 16),
        sum_("carousel::test::sum", model_.parameter_size()),
        momentum_("carousel::test::momentum", model_.parameter_size()),
        next_("carousel::test::next", model_.parameter_size()),
        digest_("carousel::test::digest", 1),
        metrics_("carousel::test::metrics", 2) {
    chain_.set_batch(test::random_numbers(16 * 12, "images"), test::random_labels(16, 5));
  }

  ~KokkosTools() override {
    watch_launches(false);
    watch_allocations(false);
    watch_fences(false);
  }

  /// All that the engine enqueues for one training step of one micro-batch.
  void train(const ExecutionSpace& exec) {
    chain_.forward(exec, model_.layers.size());
    chain_.backward(exec);
    add(exec, sum_, chain_.gradient());
    add(exec, metrics_.data(), metrics_.data() + 1);
    update(exec, {.learning_rate = 0.1, .momentum = 0.9}, chain_.parameters(), sum_, 1, momentum_,
           next_, digest_.data());
  }

  Model model_;
  test::Chain chain_;
  test::Device<real> sum_, momentum_, next_;
  test::Device<std::uint64_t> digest_;
  test::Device<Metrics> metrics_;
};

TEST_F(KokkosTools, EveryKernelNamesItsRoom) {
  watch_launches(true);
  train(ExecutionSpace());
  EXPECT_GE(launches.size(), 10u);
  for (const Launch& launch : launches) {
    EXPECT_TRUE(launch.label.starts_with("carousel::layers::") ||
                launch.label.starts_with("carousel::train::"))
        << launch.label;
  }
}

TEST_F(KokkosTools, EveryKernelRunsOnTheGivenSpace) {
  const ExecutionSpace exec = Kokkos::Experimental::partition_space(ExecutionSpace(), 1)[0];
  watch_launches(true);
  train(exec);
  exec.fence("carousel::test::done");
  EXPECT_GE(launches.size(), 10u);
  for (const Launch& launch : launches)
    EXPECT_EQ(launch.device, Kokkos::Tools::Experimental::device_id(exec)) << launch.label;
}

TEST_F(KokkosTools, NothingIsAllocatedOrFenced) {
  const ExecutionSpace exec;
  train(exec);  // scratch memory of Kokkos and text of labels come into being here
  watch_allocations(true);
  watch_fences(true);
  const test::HeapCounter heap;
  train(exec);
  EXPECT_EQ(heap.allocations(), 0);
  EXPECT_EQ(allocations, std::vector<std::string>());
  EXPECT_EQ(fences, std::vector<std::string>());
}

}  // namespace
}  // namespace carousel
