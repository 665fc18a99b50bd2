// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a device tells the host of its steps: sums, decisions and digests, which kernels leave in
// memory that both see. The host never waits for it; it looks when it knows that it is there.

#include <array>
#include <cstdint>
#include <span>

#include "core/base/view.hpp"
#include "core/plan/stage_memory.hpp"
#include "core/train/rider.hpp"

namespace carousel {

/// Sums over the micro-batches of one step, as they ride with gradients and parameters.
struct StepSums {
  double loss = 0;
  std::array<double, most_sums> metrics = {};
};

/// What device and host share.
struct ReportMemory {
  /// A row is written again so many steps later, when the host has long read it: it is never more
  /// than decision_lag steps behind what it hands over.
  static constexpr std::int64_t rows = 8;

  Decisions decisions;
  std::int64_t known_step = 0;
  // The loss, then metrics. NOLINTNEXTLINE(modernize-avoid-c-arrays): kernels write it
  double sums[rows][1 + most_sums] = {};
};

class Reports {
 public:
  /// Steps before `first_step` are known.
  Reports(const ExecutionSpace& exec, std::span<const StageMemory> stages, std::int64_t first_step);

  // ---- For tasks of the compute queue ----
  /// Where an update leaves the digest of theta_{step+1}.
  [[nodiscard]] std::uint64_t* digest(std::int64_t step, int stage) const {
    return &digests_(row(step), stage);
  }
  [[nodiscard]] Decisions* decisions() const { return &shared_().decisions; }
  /// Enqueues the reading of sums that ride with theta_{step+1}, unless that or a later step is
  /// known: what they decide for the segment, and for the host.
  void learn(const ExecutionSpace& exec, std::int64_t step, const real* rider,
             std::int64_t segment_first) const;

  // ---- For the host ----
  /// The newest step whose sums the device has learned; they are there, and of those before.
  [[nodiscard]] std::int64_t known_step() const;
  [[nodiscard]] StepSums sums(std::int64_t step) const;
  /// While the device stands still: a new segment begins.
  void forget_pause() const { shared_().decisions.paused_at = -1; }

 private:
  static constexpr std::int64_t rows = ReportMemory::rows;
  [[nodiscard]] static std::int64_t row(std::int64_t step) { return (step % rows + rows) % rows; }

  int sums_;  // of metrics
  Kokkos::View<ReportMemory, Kokkos::SharedHostPinnedSpace> shared_;
  Kokkos::View<std::uint64_t**, Kokkos::LayoutRight, Kokkos::SharedHostPinnedSpace> digests_;
};

}  // namespace carousel
