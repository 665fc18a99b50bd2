// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// What a profiler would see of the engine's kernels: labels, the execution space they run on, and
// that nothing is allocated once every kernel has run. Uses the callbacks of Kokkos Tools.

#include "core/base/add.hpp"
#include "core/train/kernels.hpp"
#include "core/train/update.hpp"
#include "tests/layers/heap_counter.hpp"
#include "tests/layers/kokkos_watch.hpp"
#include "tests/layers/network.hpp"
#include "tests/layers/residual_blocks.hpp"

namespace carousel {
namespace {

using test::KokkosWatch;
using test::Launch;

class KokkosTools : public testing::Test {
 protected:
  static constexpr int n = 16;

  KokkosTools()
      : model_(test::residual_blocks()),
        network_(model_, n),
        sum_("carousel::test::sum", model_.parameter_size()),
        momentum_("carousel::test::momentum", model_.parameter_size()),
        next_("carousel::test::next", model_.parameter_size()),
        digest_("carousel::test::digest", 1) {
    network_.set_batch(test::random_numbers(n * model_.input.size(), "images"),
                       test::random_labels(n, model_.target.classes));
  }

  /// All that the engine enqueues for one training step of one micro-batch.
  void train(const ExecutionSpace& exec) {
    network_.forward(exec);
    network_.backward(exec);
    add(exec, sum_, network_.gradient());
    update(exec, {{.kind = Sgd{.momentum = 0.9}}, 0.1, 1}, network_.memory(),
           {.size = network_.memory().parameter_size,
            .theta = network_.parameters().data(),
            .gradient_sum = sum_.data(),
            .states = momentum_.data(),
            .next = next_.data(),
            .digest = digest_.data()});
    update_statistics(exec, network_.memory().statistics,
                      {.running = network_.buffers().data(),
                       .batch_sums = network_.statistics().data(),
                       .next = network_.buffers().data(),
                       .digest = digest_.data()});
  }
  /// And for one of evaluation.
  void evaluate(const ExecutionSpace& exec) { network_.forward(exec, false); }

  Model model_;
  test::Network network_;
  test::Device<real> sum_, momentum_, next_;
  test::Device<std::uint64_t> digest_;
};

TEST_F(KokkosTools, EveryKernelNamesItsRoom) {
  const KokkosWatch watch(KokkosWatch::launch);
  train(ExecutionSpace());
  evaluate(ExecutionSpace());
  EXPECT_GE(watch.launches().size(), 50U);
  for (const Launch& launch : watch.launches()) {
    EXPECT_TRUE(launch.label.starts_with("carousel::base::") ||
                launch.label.starts_with("carousel::layers::") ||
                launch.label.starts_with("carousel::train::"))
        << launch.label;
  }
}

TEST_F(KokkosTools, EveryKernelRunsOnTheGivenSpace) {
  const ExecutionSpace exec = Kokkos::Experimental::partition_space(ExecutionSpace(), 1)[0];
  const KokkosWatch watch(KokkosWatch::launch);
  train(exec);
  evaluate(exec);
  exec.fence("carousel::test::done");
  EXPECT_GE(watch.launches().size(), 50U);
  for (const Launch& launch : watch.launches())
    EXPECT_EQ(launch.device, Kokkos::Tools::Experimental::device_id(exec)) << launch.label;
}

TEST_F(KokkosTools, NothingIsAllocatedOrFenced) {
  const ExecutionSpace exec;
  train(exec);  // scratch memory of Kokkos and text of labels come into being here
  {
    const test::HeapCounter heap;
    train(exec);
    evaluate(exec);
    EXPECT_EQ(heap.allocations(), 0);
  }
  // By itself: what Kokkos tells a watcher takes memory.
  const KokkosWatch watch(KokkosWatch::allocation + KokkosWatch::fence);
  train(exec);
  evaluate(exec);
  EXPECT_EQ(watch.allocations(), std::vector<test::Allocation>());
  EXPECT_EQ(watch.fences(), std::vector<std::string>());
}

}  // namespace
}  // namespace carousel
