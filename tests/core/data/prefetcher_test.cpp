// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Prefetch threads: right batches in the requested order, of any source and of any part of it,
// stops and errors at any moment, with any number of threads.

#include "core/data/prefetcher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/data/image_source.hpp"
#include "tests/core/data/pattern_source.hpp"
#include "tests/core/data/small_dataset.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

using testing::failure;
using ::testing::HasSubstr;
using testing::PatternSource;
using testing::SmallDataset;
using testing::TemporaryFolder;

class PrefetcherTest : public ::testing::Test {
 protected:
  PrefetcherTest() { SmallDataset().write(path_); }

  /// Checks a batch byte by byte against the formula of SmallDataset.
  static void expect_batch(const Batch& batch, std::span<const int> indices) {
    ASSERT_EQ(batch.targets.size(), indices.size() * sizeof(int));
    EXPECT_TRUE(std::ranges::equal(batch.samples, indices));
    ASSERT_EQ(batch.inputs.size(), indices.size() * 24);
    ASSERT_EQ(batch.parts.size(), indices.size());
    for (std::size_t k = 0; k < indices.size(); ++k) {
      std::int32_t label = -1;
      std::memcpy(&label, &batch.targets[k * sizeof label], sizeof label);
      EXPECT_EQ(label, indices[k] % 3);
      EXPECT_EQ(batch.parts[k].top, 0);
      for (std::size_t x = 0; x < 24; ++x)
        ASSERT_EQ(static_cast<int>(batch.inputs[k * 24 + x]), indices[k] + static_cast<int>(x));
    }
  }

  static PrefetcherSpec spec(const Source& source, int largest_batch, int buffers,
                             int workers = 1) {
    return {.source = source,
            .seed = 9,
            .largest_batch = largest_batch,
            .buffers = buffers,
            .workers = workers};
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "a.h5";
  const AugmentConfig plain_;
};

TEST_F(PrefetcherTest, TrainingFollowsThePermutationOverEpochs) {
  const Dataset dataset(path_);
  const ImageSource source(dataset, plain_, 9);
  const TrainingOrder order{.samples = 50, .micro_batches = 3, .micro_batch_size = 4};
  // As cyclic rules load on one device: the last micro-batch lags one step behind.
  std::vector<BatchRequest> requests;
  for (std::int64_t t = 0; t < 12; ++t) {
    requests.push_back(training_request(order, t, 0));
    requests.push_back(training_request(order, t, 1));
    if (t > 0) requests.push_back(training_request(order, t - 1, 2));
  }
  for (const auto& [buffers, workers] : {std::pair(1, 1), {2, 1}, {5, 1}, {1, 3}, {2, 5}, {5, 2}}) {
    Prefetcher prefetcher(spec(source, 4, buffers, workers));
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
  const ImageSource source(dataset, plain_, 9);
  const std::vector<BatchRequest> requests = evaluation_requests(7, 3, 40);
  ASSERT_EQ(requests.size(), 3U);
  Prefetcher prefetcher(spec(source, 4, 2, 2));
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
  const ImageSource source(dataset, plain_, 9);
  const std::vector<BatchRequest> requests = evaluation_requests(7, 1, 0);
  Prefetcher prefetcher(spec(source, 1, 3, 2));
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
  const ImageSource source(dataset, plain_, 9);
  const TrainingOrder order{.samples = 50, .micro_batches = 1, .micro_batch_size = 5};
  Prefetcher prefetcher(spec(source, 5, 3, 2));
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
  const ImageSource source(dataset, plain_, 9);
  const std::vector<BatchRequest> requests = evaluation_requests(7, 1, 0);
  for (int k = 0; k < 50; ++k) {
    Prefetcher prefetcher(spec(source, 1, 2, 2));
    prefetcher.start(requests);
  }
}

TEST_F(PrefetcherTest, ErrorsArriveWhereTheBatchIsAcquired) {
  const Dataset dataset(path_);
  const ImageSource source(dataset, plain_, 9);
  std::filesystem::resize_file(path_, 2500);  // behind the back of the open data set
  const std::vector<BatchRequest> requests = evaluation_requests(7, 1, 0);
  Prefetcher prefetcher(spec(source, 1, 2, 2));
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
  const ImageSource source(dataset, plain_, 9);
  const std::vector<BatchRequest> requests = evaluation_requests(7, 3, 0);
  Prefetcher prefetcher(spec(source, 4, 2, 2));
  EXPECT_THROW((void)prefetcher.acquire(0, 0), Error);
  prefetcher.start(requests);
  EXPECT_THROW(prefetcher.release(), Error);
  EXPECT_THROW((void)prefetcher.acquire(0, 1), Error);
  (void)prefetcher.acquire(0, 0);
  (void)prefetcher.acquire(0, 1);
  EXPECT_THROW((void)prefetcher.acquire(0, 2), Error) << "there are two buffers";
}

/// Checks a pass against the formula of PatternSource; nothing lies where nothing is read.
void expect_pattern(Prefetcher& prefetcher, const std::vector<BatchRequest>& requests,
                    const Reads& reads) {
  const SourceSpec& source = prefetcher.source().spec();
  Sampler sampler(9, prefetcher.source().samples(Pass::training));
  prefetcher.start(requests);
  for (const BatchRequest& request : requests) {
    const Batch& batch = prefetcher.acquire(request.step, request.micro_batch);
    std::vector<std::byte> inputs;
    std::vector<std::byte> targets;
    ASSERT_EQ(batch.samples.size(), static_cast<std::size_t>(request.count));
    ASSERT_EQ(batch.parts.size(), reads.inputs ? batch.samples.size() : 0);
    for (std::size_t k = 0; k < batch.samples.size(); ++k) {
      const auto position = static_cast<std::size_t>(request.first) + k;
      const int index = request.pass == Pass::training
                            ? sampler.permutation(request.epoch)[position]
                            : static_cast<int>(position);
      EXPECT_EQ(batch.samples[k], index);
      const auto add = [](std::vector<std::byte>& to, const std::vector<std::byte>& more) {
        to.insert(to.end(), more.begin(), more.end());
      };
      if (reads.inputs) {
        add(inputs, PatternSource::input(source.input, request.epoch, index));
        EXPECT_EQ(batch.parts[k].top, index);
        EXPECT_EQ(batch.parts[k].left, request.epoch);
      }
      if (reads.targets)
        add(targets, PatternSource::target(source.target, request.pass, request.epoch, index));
    }
    EXPECT_TRUE(std::ranges::equal(batch.inputs, inputs));
    EXPECT_TRUE(std::ranges::equal(batch.targets, targets));
    prefetcher.release();
  }
  prefetcher.stop();
}

constexpr Reads all_reads[] = {{true, true}, {true, false}, {false, true}, {false, false}};

TEST(PrefetcherOfAnySource, ReadsWhatIsAskedForAndNothingElse) {
  // Targets of several numbers, some larger than inputs; no tensor is an image or a label.
  for (const auto& [input, target] :
       {std::pair(TensorSpec{NumberType::uint8, {2, 3, 1}},
                  TensorSpec{NumberType::int32, {5, 1, 2}}),
        {TensorSpec{NumberType::int32, {3, 1, 1}}, TensorSpec{NumberType::uint8, {7, 1, 1}}}}) {
    const PatternSource source(input, target);
    const TrainingOrder order{.samples = 40, .micro_batches = 2, .micro_batch_size = 4};
    std::vector<BatchRequest> training;
    for (std::int64_t t = 0; t < 10; ++t)
      for (int i = 0; i < 2; ++i) training.push_back(training_request(order, t, i));
    for (const Reads& reads : all_reads) {
      for (const int workers : {1, 3}) {
        SCOPED_TRACE(
            fmt::format("inputs {}, targets {}, {} workers", reads.inputs, reads.targets, workers));
        const int before = source.readers();
        Prefetcher prefetcher({.source = source,
                               .reads = reads,
                               .seed = 9,
                               .largest_batch = 4,
                               .buffers = 2,
                               .workers = workers});
        EXPECT_EQ(source.readers() - before, reads.any() ? workers : 0);
        expect_pattern(prefetcher, training, reads);
        expect_pattern(prefetcher, evaluation_requests(7, 3, 40), reads);
        // Requests may end anywhere, and batches be held.
        prefetcher.start(training);
        (void)prefetcher.acquire(0, 0);
        prefetcher.stop();
        expect_pattern(prefetcher, training, reads);
      }
    }
  }
}

TEST(PrefetcherOfAnySource, HoldsWhatWasPlannedForWhatItReads) {
  const PatternSource source({NumberType::uint8, {2, 3, 1}}, {NumberType::int32, {5, 1, 2}});
  const StagingBytes planned = Prefetcher::planned_bytes(source.spec(), 40, 4, 2, 3);
  EXPECT_EQ(planned.samples, 2 * 4 * 4 + 2 * 40 * 4);  // and the order of two epochs
  EXPECT_EQ(planned.inputs, 2 * 4 * (6 + 3 * 4) + 3 * 11);
  EXPECT_EQ(planned.targets, 2 * 4 * 10 * 4);
  for (const Reads& reads : all_reads) {
    const Prefetcher prefetcher(
        {.source = source, .reads = reads, .largest_batch = 4, .buffers = 2, .workers = 3});
    EXPECT_EQ(prefetcher.bytes(), planned.samples + (reads.inputs ? planned.inputs : 0) +
                                      (reads.targets ? planned.targets : 0));
  }
}

// As any other error, where nobody reads; a hang otherwise.
TEST(PrefetcherOfAnySource, TellsOfRequestsBeyondItsSamplesWhereNothingIsRead) {
  const PatternSource source({NumberType::uint8, {1, 1, 1}}, label_spec);
  const std::vector<BatchRequest> requests = evaluation_requests(9, 4, 0);  // there are 7 samples
  Prefetcher prefetcher({.source = source, .reads = {false, false}, .largest_batch = 4});
  prefetcher.start(requests);
  EXPECT_EQ(prefetcher.acquire(0, 0).samples.back(), 3);
  EXPECT_THROW((void)prefetcher.acquire(0, 1), Error);
}

}  // namespace
}  // namespace carousel
