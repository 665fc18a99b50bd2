// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Prefetch threads: right batches in the requested order, stops and errors at any moment, with any
// number of threads.

#include "core/data/prefetcher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/data/small_dataset.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

using testing::failure;
using ::testing::HasSubstr;
using testing::SmallDataset;
using testing::TemporaryFolder;

class PrefetcherTest : public ::testing::Test {
 protected:
  PrefetcherTest() { SmallDataset().write(path_); }

  /// Checks a batch byte by byte against the formula of SmallDataset.
  static void expect_batch(const Batch& batch, std::span<const int> indices) {
    ASSERT_EQ(batch.labels.size(), indices.size());
    EXPECT_TRUE(std::ranges::equal(batch.samples, indices));
    ASSERT_EQ(batch.images.size(), indices.size() * 24);
    ASSERT_EQ(batch.parts.size(), indices.size());
    for (std::size_t k = 0; k < indices.size(); ++k) {
      EXPECT_EQ(batch.labels[k], indices[k] % 3);
      EXPECT_EQ(batch.parts[k].top, 0);
      for (std::size_t x = 0; x < 24; ++x)
        ASSERT_EQ(batch.images[k * 24 + x], indices[k] + static_cast<int>(x));
    }
  }

  static PrefetcherSpec spec(const Dataset& dataset, int largest_batch, int buffers,
                             int workers = 1) {
    static const AugmentConfig plain;
    return {.dataset = dataset,
            .augment = plain,
            .seed = 9,
            .largest_batch = largest_batch,
            .buffers = buffers,
            .workers = workers};
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "a.h5";
};

TEST_F(PrefetcherTest, TrainingFollowsThePermutationOverEpochs) {
  const Dataset dataset(path_);
  const TrainingOrder order{.samples = 50, .micro_batches = 3, .micro_batch_size = 4};
  // As cyclic rules load on one device: the last micro-batch lags one step behind.
  std::vector<BatchRequest> requests;
  for (std::int64_t t = 0; t < 12; ++t) {
    requests.push_back(training_request(order, t, 0));
    requests.push_back(training_request(order, t, 1));
    if (t > 0) requests.push_back(training_request(order, t - 1, 2));
  }
  for (const auto& [buffers, workers] : {std::pair(1, 1), {2, 1}, {5, 1}, {1, 3}, {2, 5}, {5, 2}}) {
    Prefetcher prefetcher(spec(dataset, 4, buffers, workers));
    Sampler sampler(9, 50);
    prefetcher.start(requests);
    for (const BatchRequest& request : requests) {
      const Batch& batch = prefetcher.acquire(request.step, request.micro_batch);
      const auto first = static_cast<std::size_t>(request.first);
      expect_batch(batch, sampler.permutation(request.step / 4).subspan(first, 4));
      prefetcher.release();
    }
  }
}

TEST_F(PrefetcherTest, EvaluationGoesInFileOrderToTheLastShortBatch) {
  const Dataset dataset(path_);
  const std::vector<BatchRequest> requests = evaluation_requests(7, 3, 40);
  ASSERT_EQ(requests.size(), 3U);
  Prefetcher prefetcher(spec(dataset, 4, 2, 2));
  for (int pass = 0; pass < 2; ++pass) {
    prefetcher.start(requests);
    const std::vector<int> indices{0, 1, 2, 3, 4, 5, 6};
    for (int k = 0; k < 3; ++k) {
      const std::size_t first = 3 * static_cast<std::size_t>(k);
      expect_batch(prefetcher.acquire(40, k), std::span(indices).subspan(first, k < 2 ? 3 : 1));
      prefetcher.release();
    }
  }
}

TEST_F(PrefetcherTest, HoldsBatchesThatAnAcceleratorIsStillCopying) {
  const Dataset dataset(path_);
  const std::vector<BatchRequest> requests = evaluation_requests(7, 1, 0);
  Prefetcher prefetcher(spec(dataset, 1, 3, 2));
  prefetcher.start(requests);
  std::vector<const Batch*> held;
  for (int k = 0; k < 7; ++k) {
    if (held.size() == 3) {
      EXPECT_EQ(held.front()->samples.front(), k - 3) << "somebody has filled it again";
      held.erase(held.begin());
      prefetcher.release();
    }
    held.push_back(&prefetcher.acquire(0, k));
    EXPECT_EQ(held.back()->samples.front(), k);
  }
}

TEST_F(PrefetcherTest, StopsAnywhereAndStartsAgain) {
  const Dataset dataset(path_);
  const TrainingOrder order{.samples = 50, .micro_batches = 1, .micro_batch_size = 5};
  Prefetcher prefetcher(spec(dataset, 5, 3, 2));
  for (int taken = 0; taken < 20; ++taken) {
    std::vector<BatchRequest> requests;
    for (std::int64_t t = 0; t < 20; ++t) requests.push_back(training_request(order, t, 0));
    prefetcher.start(requests);
    for (int t = 0; t < taken; ++t) {
      EXPECT_EQ(prefetcher.acquire(t, 0).request.first, t % 10 * 5);
      if (t + 1 < taken || taken % 2 == 0) prefetcher.release();  // or stop while one is held
    }
    prefetcher.stop();  // the requests may go now
  }
}

TEST_F(PrefetcherTest, EndsWithWorkUndone) {
  const Dataset dataset(path_);
  const std::vector<BatchRequest> requests = evaluation_requests(7, 1, 0);
  for (int k = 0; k < 50; ++k) {
    Prefetcher prefetcher(spec(dataset, 1, 2, 2));
    prefetcher.start(requests);
  }
}

TEST_F(PrefetcherTest, ErrorsArriveWhereTheBatchIsAcquired) {
  const Dataset dataset(path_);
  std::filesystem::resize_file(path_, 2500);  // behind the back of the open data set
  const std::vector<BatchRequest> requests = evaluation_requests(7, 1, 0);
  Prefetcher prefetcher(spec(dataset, 1, 2, 2));
  for (int k = 0; k < 2; ++k) {
    prefetcher.start(requests);
    const auto acquire_all = [&] {
      for (int i = 0; i < 7; ++i) {
        (void)prefetcher.acquire(0, i);
        prefetcher.release();
      }
    };
    EXPECT_THAT(failure(ExitCode::input_output, acquire_all), HasSubstr("a.h5: ends at byte"));
  }
}

TEST_F(PrefetcherTest, MisuseIsABugNotAHang) {
  const Dataset dataset(path_);
  const std::vector<BatchRequest> requests = evaluation_requests(7, 3, 0);
  Prefetcher prefetcher(spec(dataset, 4, 2, 2));
  EXPECT_THROW((void)prefetcher.acquire(0, 0), Error);
  prefetcher.start(requests);
  EXPECT_THROW(prefetcher.release(), Error);
  EXPECT_THROW((void)prefetcher.acquire(0, 1), Error);
  (void)prefetcher.acquire(0, 0);
  (void)prefetcher.acquire(0, 1);
  EXPECT_THROW((void)prefetcher.acquire(0, 2), Error) << "there are two buffers";
  EXPECT_GT(prefetcher.bytes(), 2 * 4 * 24);
  EXPECT_EQ(prefetcher.bytes(), Prefetcher::planned_bytes(prefetcher.input(), 50, 4, 2, 2));
}

}  // namespace
}  // namespace carousel
