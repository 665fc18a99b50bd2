// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/prefetcher.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"

namespace carousel {
namespace {

constexpr std::size_t levels = 256;  // of an uint8

/// (x / 255 - mean) / std for every value and channel, rounded once from double.
std::vector<real> normalised_values(const Dataset& dataset) {
  std::vector<real> table;
  for (std::size_t c = 0; c < dataset.mean().size(); ++c) {
    for (std::size_t x = 0; x < levels; ++x)
      table.push_back(
          static_cast<real>((static_cast<double>(x) / 255 - dataset.mean()[c]) / dataset.std()[c]));
  }
  return table;
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

Prefetcher::Prefetcher(const Dataset& dataset, std::uint64_t seed, int largest_batch, int buffers,
                       bool images)
    : dataset_(dataset),
      sampler_(seed, dataset.train().samples()),
      largest_batch_(largest_batch),
      normalised_(images ? normalised_values(dataset) : std::vector<real>()),
      sample_(images ? static_cast<std::size_t>(dataset.shape().size()) : 0),
      ring_(static_cast<std::size_t>(buffers)) {
  CAROUSEL_CHECK(largest_batch >= 1 && buffers >= 1, "{} buffers of {}", buffers, largest_batch);
  labels_.resize(ring_.size() * static_cast<std::size_t>(largest_batch));
  samples_.resize(labels_.size());
  images_.resize(labels_.size() * sample_.size());
  thread_ = std::thread(&Prefetcher::run, this);
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  work_.notify_one();
  thread_.join();
}

std::int64_t Prefetcher::bytes() const {
  const std::size_t numbers = images_.size() + normalised_.size();
  const std::size_t indices =
      labels_.size() + samples_.size() + 2 * static_cast<std::size_t>(dataset_.train().samples());
  return static_cast<std::int64_t>(numbers * sizeof(real) + indices * sizeof(int) + sample_.size());
}

std::int64_t Prefetcher::planned_bytes(const SampleShape& shape, std::int64_t samples,
                                       int largest_batch, int buffers) {
  const std::int64_t staged = static_cast<std::int64_t>(buffers) * largest_batch;
  const std::int64_t sample = shape.size();
  const std::int64_t numbers = staged * sample + 256LL * shape.channels;
  const std::int64_t indices = 2 * staged + 2 * samples;
  return numbers * std::int64_t{sizeof(real)} + indices * std::int64_t{sizeof(int)} + sample;
}

void Prefetcher::start(std::span<const BatchRequest> requests) {
  stop();
  {
    const std::lock_guard lock(mutex_);
    requests_ = requests;
  }
  work_.notify_one();
}

void Prefetcher::stop() {
  std::unique_lock lock(mutex_);
  requests_ = {};
  ready_.wait(lock, [this] { return !filling_; });
  filled_ = released_ = 0;
  acquired_ = false;
  error_ = nullptr;
}

const Batch& Prefetcher::acquire(std::int64_t step, int micro_batch) {
  std::unique_lock lock(mutex_);
  CAROUSEL_CHECK(!acquired_, "a batch is acquired while another is");
  CAROUSEL_CHECK(released_ < requests_.size(), "batch ({}, {}) was never requested", step,
                 micro_batch);
  ready_.wait(lock, [this] { return released_ < filled_ || error_ != nullptr; });
  if (released_ == filled_) std::rethrow_exception(error_);
  const Batch& batch = ring_[released_ % ring_.size()];
  CAROUSEL_CHECK(batch.request.step == step && batch.request.micro_batch == micro_batch,
                 "batch ({}, {}) is acquired, but ({}, {}) was requested", step, micro_batch,
                 batch.request.step, batch.request.micro_batch);
  acquired_ = true;
  return batch;
}

void Prefetcher::release() {
  {
    const std::lock_guard lock(mutex_);
    CAROUSEL_CHECK(acquired_, "a batch is released that was not acquired");
    acquired_ = false;
    ++released_;
  }
  work_.notify_one();
}

void Prefetcher::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] {
      return ending_ || (filled_ < requests_.size() && filled_ - released_ < ring_.size() &&
                         error_ == nullptr);
    });
    if (ending_) return;
    const BatchRequest request = requests_[filled_];
    const std::size_t number = filled_;
    filling_ = true;
    lock.unlock();
    std::exception_ptr error;
    try {
      fill(number, request);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    filling_ = false;
    if (error == nullptr) ++filled_;
    error_ = std::move(error);
    ready_.notify_one();
  }
}

void Prefetcher::fill(std::size_t number, const BatchRequest& request) {
  const bool training = request.pass == Pass::training;
  const Split& split = training ? dataset_.train() : dataset_.test();
  const auto count = static_cast<std::size_t>(request.count);
  CAROUSEL_CHECK(request.count >= 1 && request.count <= largest_batch_ && request.first >= 0 &&
                     request.first + request.count <= split.samples(),
                 "batch of {} at {} of {} samples", count, request.first, split.samples());
  const std::span<const int> order =
      training ? sampler_.permutation(request.epoch) : std::span<const int>();
  const std::size_t entry = number % ring_.size() * static_cast<std::size_t>(largest_batch_);
  real* const images = images_.data() + entry * sample_.size();
  int* const labels = labels_.data() + entry;
  int* const samples = samples_.data() + entry;
  const std::size_t plane = sample_.size() / dataset_.mean().size();  // h * w
  for (std::size_t k = 0; k < count; ++k) {
    const auto position = static_cast<std::size_t>(request.first) + k;
    const std::size_t index = training ? static_cast<std::size_t>(order[position]) : position;
    if (!sample_.empty()) split.read(static_cast<std::int64_t>(index), sample_);
    labels[k] = split.labels()[index];
    samples[k] = static_cast<int>(index);
    real* const image = images + k * sample_.size();
    for (std::size_t x = 0; x < sample_.size(); ++x)
      image[x] = normalised_[x / plane * levels + sample_[x]];
  }
  ring_[number % ring_.size()] = {
      request, {images, count * sample_.size()}, {labels, count}, {samples, count}};
}

}  // namespace carousel
