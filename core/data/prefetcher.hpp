// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Threads that read the batches one device will load, in the order it will load them, into a ring
// of host buffers ahead of use. They decide no order and touch no device memory.

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory_resource>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/data/augment.hpp"
#include "core/data/dataset.hpp"
#include "core/data/sample_reader.hpp"
#include "core/data/sampler.hpp"

namespace carousel {

/// Batches that the threads may be ahead of the executor.
inline constexpr int staged_batches = 3;

/// One batch to load: positions first .. first + count - 1. Of evaluations, micro_batch counts the
/// batches and step names the parameters.
struct BatchRequest {
  Pass pass = Pass::training;
  std::int64_t step = 0;
  int micro_batch = 0;
  std::int64_t epoch = 0;
  std::int64_t first = 0;
  int count = 0;
};

/// A batch in host memory.
struct Batch {
  BatchRequest request;
  std::span<const std::uint8_t> images;  // [count, shape of InputSpec::read]
  std::span<const ShownPart> parts;      // [count], of images
  std::span<const int> labels;           // [count]
  std::span<const int> samples;          // [count], their numbers in the data set
};

[[nodiscard]] BatchRequest training_request(const TrainingOrder& order, std::int64_t step,
                                            int micro_batch);

/// All batches of a pass over `samples`, `batch_size` at a time; the last one may be short.
[[nodiscard]] std::vector<BatchRequest> evaluation_requests(std::int64_t samples, int batch_size,
                                                            std::int64_t step);

/// What a prefetcher reads; data set and configuration outlive it.
struct PrefetcherSpec {
  const Dataset& dataset;
  const AugmentConfig& augment;
  std::uint64_t seed = 1;
  int largest_batch = 1;
  int buffers = staged_batches;
  int workers = 1;
  bool images = true;  // otherwise only labels and numbers of samples are read, by one thread
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();  // of the ring
};

/// One consumer thread calls the public functions.
class Prefetcher {
 public:
  /// Allocates the buffers and starts the threads.
  explicit Prefetcher(const PrefetcherSpec& spec);
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  ~Prefetcher();

  /// Of the images that it reads.
  [[nodiscard]] const InputSpec& input() const { return input_; }
  /// Host bytes held: staging buffers, permutations, readers.
  [[nodiscard]] std::int64_t bytes() const;
  /// The same, before anything is allocated, for `samples` in /train; of InputSpec{} without
  /// images.
  [[nodiscard]] static std::int64_t planned_bytes(const InputSpec& input, std::int64_t samples,
                                                  int largest_batch, int buffers, int workers);

  /// Begins a segment; forgets what was left of the one before. The requests stay borrowed until
  /// the next start() or stop().
  void start(std::span<const BatchRequest> requests);
  /// Ends a segment early or late; returns when the threads touch nothing borrowed any more.
  void stop();

  /// Waits for the next batch, which must be the one named. Throws what reading it threw.
  [[nodiscard]] const Batch& acquire(std::int64_t step, int micro_batch);
  /// Gives the batch that was acquired first back to be filled again.
  void release();

 private:
  /// A place of the ring; batch k of a segment lies in k % buffers.
  struct Entry {
    Batch batch;
    int left = 0;  // samples that are still to be read
  };
  /// Of a batch of the segment.
  struct Failure {
    std::size_t batch = 0;
    int sample = 0;  // of the batch
    std::exception_ptr error;
  };

  void work(std::size_t worker);
  [[nodiscard]] bool has_work() const;
  void open(Entry& entry, const BatchRequest& request);
  void read(SampleReader* reader, const Entry& entry, int sample);
  void note(std::size_t batch, int sample, std::exception_ptr error);

  const Dataset& dataset_;
  Sampler sampler_;
  InputSpec input_;  // nothing without images
  int largest_batch_;
  std::vector<SampleReader> readers_;      // of each thread
  std::pmr::vector<std::uint8_t> images_;  // [buffers, largest batch, shape of input_.read]
  std::pmr::vector<ShownPart> parts_;      // [buffers, largest batch]
  std::pmr::vector<int> labels_;           // [buffers, largest batch]
  std::pmr::vector<int> samples_;          // [buffers, largest batch]

  std::mutex mutex_;               // guards everything below, and who owns a ring entry
  std::condition_variable work_;   // something to read, or to end
  std::condition_variable ready_;  // something was read, or failed
  std::vector<Entry> ring_;
  std::span<const BatchRequest> requests_;
  std::size_t next_ = 0;      // batch of this segment whose samples are given out
  int given_ = -1;            // of its samples; -1: they are not chosen yet
  std::size_t filled_ = 0;    // batches that are whole
  std::size_t released_ = 0;  // of those
  std::size_t acquired_ = 0;  // of those; between released_ and this they are with the consumer
  bool opening_ = false;      // a thread chooses samples, without the lock
  int busy_ = 0;              // threads that work without the lock
  bool ending_ = false;
  Failure failure_;                   // the first one in the order of samples
  std::vector<std::thread> threads_;  // last, so that they find everything else in place
};

}  // namespace carousel
