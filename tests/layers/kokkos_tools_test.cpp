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

struct Seen {
  std::vector<std::string> labels;
  std::vector<std::uint32_t> devices;
  int allocations = 0;
  int fences = 0;
  int launches = 0;
  bool keep_names = true;
};
Seen seen;  // the callbacks have no argument to carry it

void on_launch(const char* label, std::uint32_t device, std::uint64_t* /*id*/) {
  ++seen.launches;
  if (!seen.keep_names) return;
  seen.labels.emplace_back(label);
  seen.devices.push_back(device);
}
void on_allocation(Kokkos::Tools::SpaceHandle /*space*/, const char* label, const void* /*data*/,
                   std::uint64_t /*bytes*/) {
  ++seen.allocations;
  if (seen.keep_names) seen.labels.emplace_back(label);
}
void on_fence(const char* /*label*/, std::uint32_t /*device*/, std::uint64_t* /*id*/) {
  ++seen.fences;
}

/// Watches while it lives.
class Watch {
 public:
  explicit Watch(bool keep_names) {
    seen = {};
    seen.keep_names = keep_names;
    namespace tools = Kokkos::Tools::Experimental;
    tools::set_begin_parallel_for_callback(on_launch);
    tools::set_begin_parallel_reduce_callback(on_launch);
    tools::set_begin_parallel_scan_callback(on_launch);
    tools::set_allocate_data_callback(on_allocation);
    tools::set_begin_fence_callback(on_fence);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() {
    namespace tools = Kokkos::Tools::Experimental;
    tools::set_begin_parallel_for_callback(nullptr);
    tools::set_begin_parallel_reduce_callback(nullptr);
    tools::set_begin_parallel_scan_callback(nullptr);
    tools::set_allocate_data_callback(nullptr);
    tools::set_begin_fence_callback(nullptr);
  }
};

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

TEST_F(KokkosTools, EveryLabelNamesItsRoom) {
  train(ExecutionSpace());  // Kokkos' own scratch memory grows here
  const Watch watch(true);
  train(ExecutionSpace());
  EXPECT_GE(seen.launches, 10);
  for (const std::string& label : seen.labels)
    EXPECT_TRUE(label.starts_with("carousel::layers::") || label.starts_with("carousel::train::"))
        << label;
}

TEST_F(KokkosTools, EveryKernelRunsOnTheGivenSpace) {
  const ExecutionSpace exec = Kokkos::Experimental::partition_space(ExecutionSpace(), 1)[0];
  const Watch watch(true);
  train(exec);
  exec.fence("carousel::test::done");
  EXPECT_GE(seen.devices.size(), 10u);
  for (std::size_t k = 0; k < seen.devices.size(); ++k)
    EXPECT_EQ(seen.devices[k], Kokkos::Tools::Experimental::device_id(exec));
}

TEST_F(KokkosTools, NothingIsAllocatedOrFenced) {
  const ExecutionSpace exec;
  train(exec);
  const Watch watch(false);
  const test::HeapCounter heap;
  train(exec);
  EXPECT_EQ(heap.allocations(), 0);
  EXPECT_GE(seen.launches, 10);
  EXPECT_EQ(seen.allocations, 0);
  EXPECT_EQ(seen.fences, 0);
}

}  // namespace
}  // namespace carousel
