// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where messages lie in host memory while they are under way, for transports that know no device
// memory. Plan and queue give places in one order, so that what one finds is enough for the other.

#include <cstdint>
#include <vector>

#include "core/plan/schedule.hpp"

namespace carousel {

/// Gives every message the first place in which it fits, and takes it back when the message was
/// waited for. Where stages are cut, messages are of so many sizes that gaps between them would
/// take thousands of steps to come back: there a place is for messages of one size, until nothing
/// is under way.
class StagingPlaces {
 public:
  /// Room for so many messages at once.
  StagingPlaces(int messages, bool by_size) : by_size_(by_size) {
    taken_.reserve(messages);
    free_.reserve(by_size ? messages : 0);
  }

  /// An aligned offset in bytes; -1 for a message without any.
  std::int64_t take(std::int64_t bytes);
  void give_back(std::int64_t offset);
  /// The end of the last place that was ever given.
  [[nodiscard]] std::int64_t size() const { return size_; }

 private:
  struct Place {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  std::int64_t take_of_size(std::int64_t needed);

  bool by_size_;
  std::vector<Place> taken_;  // in order, where places are not by size
  std::vector<Place> free_;   // of those that are
  std::int64_t end_ = 0;      // of all these
  std::int64_t size_ = 0;
};

/// Whether messages of a schedule have places by their size.
[[nodiscard]] bool stages_by_size(const Schedule& schedule);

/// [device] bytes that its messages need in all segments, whatever their length, between them and
/// in evaluations.
[[nodiscard]] std::vector<std::int64_t> staging_bytes(const Schedule& schedule,
                                                      std::int64_t evaluation_batches,
                                                      std::int64_t bytes_per_batch);

}  // namespace carousel
