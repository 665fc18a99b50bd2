// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Threads that read the batches one device will load, in the order it will load them, into a ring
// of host buffers ahead of use. They decide no order and touch no device memory.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/data/sampler.hpp"
#include "core/data/source.hpp"

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

/// A batch in host memory; empty is what is not read.
struct Batch {
  BatchRequest request;
  std::span<const std::byte> inputs;   // [count, SourceSpec::input]
  std::span<const ShownPart> parts;    // [count], of inputs
  std::span<const std::byte> targets;  // [count, SourceSpec::target]
  std::span<const int> samples;        // [count], their numbers in the data set
};

[[nodiscard]] BatchRequest training_request(const TrainingOrder& order, std::int64_t step,
                                            int micro_batch);

/// All batches of a pass over `samples`, `batch_size` at a time; the last one may be short.
[[nodiscard]] std::vector<BatchRequest> evaluation_requests(std::int64_t samples, int batch_size,
                                                            std::int64_t step);

/// What a prefetcher reads; the source outlives it.
struct PrefetcherSpec {
  const Source& source;
  Reads reads = {};        // of nothing, one thread chooses samples
  std::uint64_t seed = 1;  // of their order
  int largest_batch = 1;
  int buffers = staged_batches;
  int workers = 1;
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();  // of the ring
};

/// Host bytes of a prefetcher: staging buffers, permutations, readers.
struct StagingBytes {
  std::int64_t samples = 0;  // numbers of samples and their order, wherever batches are loaded
  std::int64_t inputs = 0;   // more where inputs are read, with their parts and readers
  std::int64_t targets = 0;  // more where targets are read
};

/// One consumer thread calls the public functions.
class Prefetcher {
 public:
  /// Allocates the buffers and starts the threads.
  explicit Prefetcher(const PrefetcherSpec& spec);
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  ~Prefetcher();

  [[nodiscard]] const Source& source() const { return source_; }
  /// Host bytes held.
  [[nodiscard]] std::int64_t bytes() const;
  /// The same, before anything is allocated, of a source of so many samples to train with.
  [[nodiscard]] static StagingBytes planned_bytes(const SourceSpec& source, std::int64_t samples,
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
  void read(SourceReader& reader, const Entry& entry, int sample);
  void note(std::size_t batch, int sample, std::exception_ptr error);

  const Source& source_;
  Reads reads_;
  std::size_t input_bytes_;   // of a sample; 0 where none are read
  std::size_t target_bytes_;  // likewise
  Sampler sampler_;
  int largest_batch_;
  std::vector<std::unique_ptr<SourceReader>> readers_;  // of each thread that reads
  std::pmr::vector<std::byte> inputs_;                  // [buffers, largest batch, input]
  std::pmr::vector<ShownPart> parts_;                   // [buffers, largest batch]
  std::pmr::vector<std::byte> targets_;                 // [buffers, largest batch, target]
  std::pmr::vector<int> samples_;                       // [buffers, largest batch]

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
