// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/prefetcher.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"

namespace carousel {
namespace {

/// The bytes of samples first .. first + count - 1 of a ring, `bytes` each.
std::span<std::byte> slice(std::span<std::byte> ring, std::size_t first, std::size_t count,
                           std::size_t bytes) {
  return ring.subspan(first * bytes, count * bytes);
}

}  // namespace

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
    : source_(spec.source),
      reads_(spec.reads),
      input_bytes_(reads_.inputs ? static_cast<std::size_t>(spec.source.spec().input.bytes()) : 0),
      target_bytes_(reads_.targets ? static_cast<std::size_t>(spec.source.spec().target.bytes())
                                   : 0),
      sampler_(spec.seed, spec.source.samples(Pass::training)),
      largest_batch_(spec.largest_batch),
      inputs_(spec.memory),
      parts_(spec.memory),
      targets_(spec.memory),
      samples_(spec.memory),
      ring_(static_cast<std::size_t>(spec.buffers)) {
  CAROUSEL_CHECK(spec.largest_batch >= 1 && spec.buffers >= 1 && spec.workers >= 1,
                 "{} buffers of {} for {} threads", spec.buffers, spec.largest_batch, spec.workers);
  samples_.resize(ring_.size() * static_cast<std::size_t>(spec.largest_batch));
  inputs_.resize(samples_.size() * input_bytes_);
  targets_.resize(samples_.size() * target_bytes_);
  if (reads_.inputs) parts_.resize(samples_.size());
  const int threads = reads_.any() ? spec.workers : 1;
  for (int k = 0; reads_.any() && k < threads; ++k) readers_.push_back(source_.reader(reads_));
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
      samples_.size() + 2 * static_cast<std::size_t>(source_.samples(Pass::training));
  return static_cast<std::int64_t>(inputs_.size() + parts_.size() * sizeof(ShownPart) +
                                   targets_.size() + indices * sizeof(int)) +
         std::ssize(readers_) * ((reads_.inputs ? source_.spec().reader_bytes : 0) +
                                 (reads_.targets ? source_.spec().target_reader_bytes : 0));
}

StagingBytes Prefetcher::planned_bytes(const SourceSpec& source, std::int64_t samples,
                                       int largest_batch, int buffers, int workers) {
  const std::int64_t staged = static_cast<std::int64_t>(buffers) * largest_batch;
  const std::int64_t input = source.input.bytes() + std::int64_t{sizeof(ShownPart)};
  return {.samples = (staged + 2 * samples) * std::int64_t{sizeof(int)},
          .inputs = staged * input + workers * source.reader_bytes,
          .targets = staged * source.target.bytes() + workers * source.target_reader_bytes};
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
        read(*readers_[worker], entry, sample);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    --busy_;
    if (sample < 0) {
      opening_ = false;
      if (reads_.any())
        given_ = 0;
      else
        ++next_;  // it is whole
      work_.notify_all();
    }
    if (error != nullptr) {
      note(number, sample, std::move(error));
    } else {
      if (sample >= 0) --entry.left;
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
  const std::int64_t all = source_.samples(request.pass);
  const auto count = static_cast<std::size_t>(request.count);
  CAROUSEL_CHECK(request.count >= 1 && request.count <= largest_batch_ && request.first >= 0 &&
                     request.first + request.count <= all,
                 "batch of {} at {} of {} samples", count, request.first, all);
  const std::span<const int> order =
      training ? sampler_.permutation(request.epoch) : std::span<const int>();
  const auto at =
      static_cast<std::size_t>(&entry - ring_.data()) * static_cast<std::size_t>(largest_batch_);
  const std::span samples = std::span(samples_).subspan(at, count);
  for (std::size_t k = 0; k < count; ++k) {
    const auto position = static_cast<std::size_t>(request.first) + k;
    samples[k] = training ? order[position] : static_cast<int>(position);
  }
  entry.batch = {request, slice(inputs_, at, count, input_bytes_),
                 reads_.inputs ? std::span(parts_).subspan(at, count) : std::span<ShownPart>(),
                 slice(targets_, at, count, target_bytes_), samples};
  entry.left = reads_.any() ? request.count : 0;
}

void Prefetcher::read(SourceReader& reader, const Entry& entry, int sample) {
  const BatchRequest& request = entry.batch.request;
  const auto at =
      static_cast<std::size_t>(&entry - ring_.data()) * static_cast<std::size_t>(largest_batch_) +
      static_cast<std::size_t>(sample);
  if (reads_.inputs)
    parts_[at] = reader.read_input(request.pass, request.epoch, samples_[at],
                                   slice(inputs_, at, 1, input_bytes_));
  if (reads_.targets)
    reader.read_target(request.pass, request.epoch, samples_[at],
                       slice(targets_, at, 1, target_bytes_));
}

}  // namespace carousel
