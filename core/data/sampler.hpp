// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which sample comes when: a pure function of (seed, epoch, position), the same on every rank and
// thread. It knows indices only, no data.

#include <cstdint>
#include <span>
#include <vector>

namespace carousel {

/// Where a micro-batch lies: the positions first, first + 1, ... in the order of an epoch.
struct EpochPosition {
  std::int64_t epoch = 0;
  std::int64_t first = 0;
};

/// How training steps divide epochs. The incomplete last step of an epoch is dropped.
///
/// Where a run goes on in the middle of an epoch with steps of another size, the rest of that epoch
/// is divided into new steps, so that each of its samples is used once; the incomplete step at its
/// end is dropped, too. From there on all is as if the run had always had this size, but for the
/// numbers of its steps: the work of step t is that of step t + ahead of such a run.
struct TrainingOrder {
  std::int64_t samples = 0;
  int micro_batches = 1;     // N
  int micro_batch_size = 1;  // b
  std::int64_t ahead = 0;
  std::int64_t divided_epoch = -1;  // where the size changed; -1: in none
  std::int64_t displaced = 0;       // by how much its new steps lie behind those of other epochs

  /// The order of a run whose step `step` is to begin at a position of an epoch, up to which other
  /// steps have used the epoch.
  [[nodiscard]] TrainingOrder going_on(std::int64_t step, const EpochPosition& at) const;

  [[nodiscard]] std::int64_t step_samples() const {
    return static_cast<std::int64_t>(micro_batches) * micro_batch_size;
  }
  /// floor(samples / (N b)); throws Error(usage) when there is not even one step.
  [[nodiscard]] std::int64_t steps_per_epoch() const;
  /// Where micro-batch i of training step t lies.
  [[nodiscard]] EpochPosition locate(std::int64_t step, int micro_batch) const;
};

/// The order of samples in each epoch: Fisher-Yates from the end, position k changing places with
/// floor(u (k + 1)), where u = uniform01(random_key(seed, "permutation"), epoch, k).
class Sampler {
 public:
  /// Allocates all it ever needs.
  Sampler(std::uint64_t seed, std::int64_t samples);

  /// The sample at every position. Valid until an epoch two away is asked for: cyclic rules work on
  /// the end of one epoch and on the start of the next at the same time.
  [[nodiscard]] std::span<const int> permutation(std::int64_t epoch);

 private:
  struct Epoch {
    std::int64_t number = -1;
    std::vector<int> order;
  };
  std::uint64_t key_;
  Epoch epochs_[2];  // even, odd
};

}  // namespace carousel
