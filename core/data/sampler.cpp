// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/sampler.hpp"

#include <limits>
#include <numeric>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/random.hpp"

namespace carousel {

TrainingOrder TrainingOrder::going_on(std::int64_t step, const EpochPosition& at) const {
  CAROUSEL_CHECK(step >= 0 && at.epoch >= 0 && at.first >= 0 && at.first <= samples,
                 "step {} at {} of epoch {}", step, at.first, at.epoch);
  TrainingOrder order = *this;
  const std::int64_t left = (samples - at.first) / step_samples();  // steps of that epoch
  const std::int64_t before = steps_per_epoch() - left;             // of which nobody is left
  order.ahead = at.epoch * steps_per_epoch() + before - step;
  order.displaced = at.first - before * step_samples();
  order.divided_epoch = order.displaced == 0 || left == 0 ? -1 : at.epoch;
  if (order.divided_epoch < 0) order.displaced = 0;
  return order;
}

std::int64_t TrainingOrder::steps_per_epoch() const {
  const std::int64_t step = step_samples();
  if (samples < step)
    fail(
        ExitCode::usage,
        "train.micro_batch_size = {} in parallel.micro_batches = {} makes steps of {} samples, but "
        "the data set has {} to train with; lower one of them",
        micro_batch_size, micro_batches, step, samples);
  return samples / step;
}

EpochPosition TrainingOrder::locate(std::int64_t step, int micro_batch) const {
  const std::int64_t steps = steps_per_epoch();
  const std::int64_t number = step + ahead;
  EpochPosition position{
      .epoch = number / steps,
      .first = (number % steps * micro_batches + micro_batch) * micro_batch_size};
  if (position.epoch == divided_epoch) position.first += displaced;
  return position;
}

Sampler::Sampler(std::uint64_t seed, std::int64_t samples) : key_(random_key(seed, "permutation")) {
  CAROUSEL_CHECK(samples > 0 && samples <= std::numeric_limits<int>::max(), "{} samples", samples);
  for (Epoch& epoch : epochs_) epoch.order.resize(static_cast<std::size_t>(samples));
}

std::span<const int> Sampler::permutation(std::int64_t epoch) {
  CAROUSEL_CHECK(epoch >= 0, "epoch {}", epoch);
  Epoch& kept = epochs_[epoch % 2];
  if (kept.number != epoch) {
    kept.number = epoch;
    std::iota(kept.order.begin(), kept.order.end(), 0);
    for (std::size_t k = kept.order.size() - 1; k > 0; --k) {
      const double u = uniform01(key_, static_cast<std::uint64_t>(epoch), k);
      std::swap(kept.order[k],
                kept.order[static_cast<std::size_t>(u * static_cast<double>(k + 1))]);
    }
  }
  return kept.order;
}

}  // namespace carousel
