// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/prefetcher.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"

namespace carousel {
BatchRequest training_request(const TrainingOrder& order, std::int64_t step, int micro_batch) {
  const EpochPosition position = order.locate(step, micro_batch);
  return {.pass = Pass::training,
          .step = step,
          .micro_batch = micro_batch,
          .epoch = position.epoch,
          .first = position.first,
          .count = order.micro_batch_size};
}

std::vector<BatchRequest> evaluation_requests(std::int64_t samples, int batch_size,
                                              std::int64_t step) {
  std::vector<BatchRequest> requests;
  for (std::int64_t first = 0; first < samples; first += batch_size)
    requests.push_back(
        {.pass = Pass::evaluation,
         .step = step,
         .micro_batch = static_cast<int>(requests.size()),
         .first = first,
         .count = static_cast<int>(std::min<std::int64_t>(batch_size, samples - first))});
  return requests;
}

Prefetcher::Prefetcher(const PrefetcherSpec& spec)
    : dataset_(spec.dataset),
      sampler_(spec.seed, spec.dataset.train().samples()),
      input_(spec.images ? input_spec(spec.dataset, spec.augment) : InputSpec()),
      largest_batch_(spec.largest_batch),
      images_(spec.memory),
      parts_(spec.memory),
      labels_(spec.memory),
      samples_(spec.memory),
      ring_(static_cast<std::size_t>(spec.buffers)) {
  CAROUSEL_CHECK(spec.largest_batch >= 1 && spec.buffers >= 1 && spec.workers >= 1,
                 "{} buffers of {} for {} threads", spec.buffers, spec.largest_batch, spec.workers);
  const int threads = spec.images ? spec.workers : 1;
  labels_.resize(ring_.size() * static_cast<std::size_t>(spec.largest_batch));
  samples_.resize(labels_.size());
  if (spec.images) {
    images_.resize(labels_.size() * static_cast<std::size_t>(input_.read.size()));
    parts_.resize(labels_.size());
    for (int k = 0; k < threads; ++k) readers_.emplace_back(spec.dataset, spec.augment, spec.seed);
  }
  for (int k = 0; k < threads; ++k)
    threads_.emplace_back(&Prefetcher::work, this, static_cast<std::size_t>(k));
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::int64_t Prefetcher::bytes() const {
  const std::size_t indices =
      labels_.size() + samples_.size() + 2 * static_cast<std::size_t>(dataset_.train().samples());
  return static_cast<std::int64_t>(images_.size() + parts_.size() * sizeof(ShownPart) +
                                   indices * sizeof(int)) +
         std::ssize(readers_) * input_.reader_bytes;
}

std::int64_t Prefetcher::planned_bytes(const InputSpec& input, std::int64_t samples,
                                       int largest_batch, int buffers, int workers) {
  const std::int64_t staged = static_cast<std::int64_t>(buffers) * largest_batch;
  const bool images = input.read.size() > 0;
  const std::int64_t image = input.read.size() + (images ? std::int64_t{sizeof(ShownPart)} : 0);
  const std::int64_t indices = 2 * staged + 2 * samples;
  return staged * image + indices * std::int64_t{sizeof(int)} + workers * input.reader_bytes;
}

void Prefetcher::start(std::span<const BatchRequest> requests) {
  stop();
  {
    const std::lock_guard lock(mutex_);
    requests_ = requests;
  }
  work_.notify_all();
}

void Prefetcher::stop() {
  std::unique_lock lock(mutex_);
  requests_ = {};
  ready_.wait(lock, [this] { return busy_ == 0; });
  next_ = filled_ = released_ = acquired_ = 0;
  given_ = -1;
  failure_ = {};
}

const Batch& Prefetcher::acquire(std::int64_t step, int micro_batch) {
  std::unique_lock lock(mutex_);
  CAROUSEL_CHECK(acquired_ - released_ < ring_.size(), "all {} batches are acquired", ring_.size());
  CAROUSEL_CHECK(acquired_ < requests_.size(), "batch ({}, {}) was never requested", step,
                 micro_batch);
  ready_.wait(lock, [this] {
    // Until all samples before are read, one of them may fail, too.
    const bool failed = failure_.error != nullptr && failure_.batch == acquired_ && busy_ == 0;
    return acquired_ < filled_ || failed;
  });
  if (acquired_ == filled_) std::rethrow_exception(failure_.error);
  const Batch& batch = ring_[acquired_ % ring_.size()].batch;
  CAROUSEL_CHECK(batch.request.step == step && batch.request.micro_batch == micro_batch,
                 "batch ({}, {}) is acquired, but ({}, {}) was requested", step, micro_batch,
                 batch.request.step, batch.request.micro_batch);
  ++acquired_;
  return batch;
}

void Prefetcher::release() {
  {
    const std::lock_guard lock(mutex_);
    CAROUSEL_CHECK(released_ < acquired_, "a batch is released that was not acquired");
    ++released_;
  }
  work_.notify_all();
}

bool Prefetcher::has_work() const {
  return next_ < requests_.size() && next_ - released_ < ring_.size() && !opening_ &&
         failure_.error == nullptr;
}

void Prefetcher::work(std::size_t worker) {
  SampleReader* const reader = readers_.empty() ? nullptr : &readers_[worker];
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return ending_ || has_work(); });
    if (ending_) return;
    const std::size_t number = next_;
    Entry& entry = ring_[number % ring_.size()];
    const BatchRequest request = requests_[number];
    const int sample = given_;
    opening_ = sample < 0;
    if (!opening_ && ++given_ == request.count) {
      ++next_;
      given_ = -1;
    }
    ++busy_;
    lock.unlock();
    std::exception_ptr error;
    try {
      if (sample < 0)
        open(entry, request);
      else
        read(reader, entry, sample);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    --busy_;
    if (sample < 0) {
      opening_ = false;
      given_ = 0;
      work_.notify_all();
    }
    if (error != nullptr) {
      note(number, sample, std::move(error));
    } else if (sample >= 0) {
      --entry.left;
      while (filled_ < next_ && ring_[filled_ % ring_.size()].left == 0) ++filled_;
    }
    ready_.notify_one();
  }
}

void Prefetcher::note(std::size_t batch, int sample, std::exception_ptr error) {
  if (failure_.error != nullptr &&
      std::pair(failure_.batch, failure_.sample) < std::pair(batch, sample))
    return;
  failure_ = {batch, sample, std::move(error)};
}

/// Chooses the samples of a batch; by one thread at a time, which others wait for.
void Prefetcher::open(Entry& entry, const BatchRequest& request) {
  const bool training = request.pass == Pass::training;
  const Split& split = training ? dataset_.train() : dataset_.test();
  const auto count = static_cast<std::size_t>(request.count);
  CAROUSEL_CHECK(request.count >= 1 && request.count <= largest_batch_ && request.first >= 0 &&
                     request.first + request.count <= split.samples(),
                 "batch of {} at {} of {} samples", count, request.first, split.samples());
  const std::span<const int> order =
      training ? sampler_.permutation(request.epoch) : std::span<const int>();
  const auto at =
      static_cast<std::size_t>(&entry - ring_.data()) * static_cast<std::size_t>(largest_batch_);
  const std::span labels = std::span(labels_).subspan(at, count);
  const std::span samples = std::span(samples_).subspan(at, count);
  for (std::size_t k = 0; k < count; ++k) {
    const auto position = static_cast<std::size_t>(request.first) + k;
    const std::size_t index = training ? static_cast<std::size_t>(order[position]) : position;
    labels[k] = split.labels()[index];
    samples[k] = static_cast<int>(index);
  }
  const auto image = static_cast<std::size_t>(input_.read.size());
  entry.batch = {request, std::span(images_).subspan(at * image, count * image),
                 parts_.empty() ? std::span<ShownPart>() : std::span(parts_).subspan(at, count),
                 labels, samples};
  entry.left = request.count;
}

void Prefetcher::read(SampleReader* reader, const Entry& entry, int sample) {
  if (reader == nullptr) return;
  const BatchRequest& request = entry.batch.request;
  const auto at =
      static_cast<std::size_t>(&entry - ring_.data()) * static_cast<std::size_t>(largest_batch_) +
      static_cast<std::size_t>(sample);
  const auto image = static_cast<std::size_t>(input_.read.size());
  parts_[at] = reader->read(request.pass, request.epoch, samples_[at],
                            std::span(images_).subspan(at * image, image));
}

}  // namespace carousel
