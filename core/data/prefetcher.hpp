// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A thread that reads and normalises the batches one device will load, in the order it will load
// them, into a ring of host buffers ahead of use. It decides no order and touches no device memory.

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/base/real.hpp"
#include "core/data/dataset.hpp"
#include "core/data/sampler.hpp"

namespace carousel {

/// Batches that the thread may be ahead of the executor.
inline constexpr int staged_batches = 3;

/// Training reads /train in the order of an epoch's permutation, evaluation /test in file order.
enum class Pass : std::uint8_t { training, evaluation };

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

/// A batch in host memory; values are (x / 255 - mean) / std with the channel's mean and std.
struct Batch {
  BatchRequest request;
  std::span<const real> images;  // [count, c, h, w]
  std::span<const int> labels;   // [count]
  std::span<const int> samples;  // [count], their numbers in the data set
};

[[nodiscard]] BatchRequest training_request(const TrainingOrder& order, std::int64_t step,
                                            int micro_batch);

/// All batches of a pass over `samples`, `batch_size` at a time; the last one may be short.
[[nodiscard]] std::vector<BatchRequest> evaluation_requests(std::int64_t samples, int batch_size,
                                                            std::int64_t step);

/// One consumer thread calls the public functions; the dataset outlives the prefetcher.
class Prefetcher {
 public:
  /// Allocates `buffers` batches of up to `largest_batch` samples and starts the thread. Without
  /// images, only labels and numbers of samples are read.
  Prefetcher(const Dataset& dataset, std::uint64_t seed, int largest_batch, int buffers,
             bool images = true);
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  ~Prefetcher();

  /// Host bytes held: staging buffers, permutations, table of normalised values.
  [[nodiscard]] std::int64_t bytes() const;
  /// The same, before anything is allocated, for `samples` of a shape in /train; of no channels
  /// without images.
  [[nodiscard]] static std::int64_t planned_bytes(const SampleShape& shape, std::int64_t samples,
                                                  int largest_batch, int buffers);

  /// Begins a segment; forgets what was left of the one before. The requests stay borrowed until
  /// the next start() or stop().
  void start(std::span<const BatchRequest> requests);
  /// Ends a segment early or late; returns when the thread touches nothing borrowed any more.
  void stop();

  /// Waits for the next batch, which must be the one named. Throws what reading it threw.
  [[nodiscard]] const Batch& acquire(std::int64_t step, int micro_batch);
  /// Gives the acquired batch back to be filled again.
  void release();

 private:
  void run();
  void fill(std::size_t number, const BatchRequest& request);

  const Dataset& dataset_;
  Sampler sampler_;
  int largest_batch_;
  std::vector<real> normalised_;      // [c, 256]
  std::vector<std::uint8_t> sample_;  // [c, h, w], as stored
  std::vector<real> images_;          // [buffers, largest batch, c, h, w]
  std::vector<int> labels_;           // [buffers, largest batch]
  std::vector<int> samples_;          // [buffers, largest batch]
  std::vector<Batch> ring_;           // [buffers]; batch k of a segment lies in k % buffers

  std::mutex mutex_;               // guards everything below, and who owns a ring entry
  std::condition_variable work_;   // something to fill, or to end
  std::condition_variable ready_;  // something was filled, or failed
  std::span<const BatchRequest> requests_;
  std::size_t filled_ = 0;    // batches of this segment
  std::size_t released_ = 0;  // of those
  bool acquired_ = false;     // batch released_ is with the consumer
  bool filling_ = false;      // the thread works without the lock
  bool ending_ = false;
  std::exception_ptr error_;  // of batch filled_
  std::thread thread_;        // last, so that it finds everything else in place
};

}  // namespace carousel
