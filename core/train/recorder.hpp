// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps what one device tells about a segment: actions, messages and memory of profiled steps,
// receipts of all. Room is made before the segment; it writes no file.

#include <cstdint>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "core/plan/schedule.hpp"
#include "core/train/records.hpp"
#include "core/train/slices.hpp"

namespace carousel {

/// Digest of one stage's parameters after the update of a step.
struct Receipt {
  std::int64_t step = 0;
  int stage = 0;
  std::uint64_t digest = 0;
};

class Recorder {
 public:
  /// `profiled` selects steps of a run of `total_steps`. Rows of actions and messages lie in
  /// `memory`.
  Recorder(Slices profiled, std::int64_t total_steps,
           std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : profiled_(std::move(profiled)),
        total_steps_(total_steps),
        actions_(memory),
        messages_(memory) {}

  /// Forgets the last segment and makes room for this one.
  void begin(const Schedule& schedule, int device, const Segment& segment);

  [[nodiscard]] bool profiles(std::int64_t step) const {
    return profiled_.contains(step, total_steps_);
  }
  /// Returns where the row is until the next begin(): its times may become known later.
  ActionRecord* add(const ActionRecord& action);
  MessageRecord* add(const MessageRecord& message);
  /// Behind the newest action.
  void add(const CategoryBytes& in_use);
  void add(const Receipt& receipt);
  /// All times are known.
  void end();

  [[nodiscard]] std::span<const ActionRecord> actions() const { return actions_; }
  [[nodiscard]] std::span<const MessageRecord> messages() const { return messages_; }
  [[nodiscard]] const std::vector<MemoryRecord>& memory() const { return memory_; }
  [[nodiscard]] const std::vector<Receipt>& receipts() const { return receipts_; }

 private:
  Slices profiled_;
  std::int64_t total_steps_;
  std::int64_t actions_before_ = 0;  // rows of earlier segments
  std::pmr::vector<ActionRecord> actions_;
  std::pmr::vector<MessageRecord> messages_;
  std::vector<MemoryRecord> memory_;
  std::vector<Receipt> receipts_;
};

}  // namespace carousel
