// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What rides behind every gradient and parameter vector: the loss and the sums of metrics,
// non-finite and whether somebody wants a pause, in numbers that are summed with the gradient. Also
// copies between host and device.

#include <cstdint>
#include <span>

#include "core/engine/layer.hpp"
#include "core/plan/stage_memory.hpp"

namespace carousel {

/// Behind a gradient that backward has just written: what its micro-batch reported,
/// with so many sums of metrics.
void write_rider(const ExecutionSpace& exec, const double* report, int sums, real* rider);
/// From behind the gradient sum to behind the parameters that were made from it.
void copy_rider(const ExecutionSpace& exec, int sums, const real* from, real* to);
/// Behind a gradient: this device wants a pause.
void ask_for_pause(const ExecutionSpace& exec, int sums, real* rider);
/// What sums of riders say, in a kernel.
struct RiderSums {
  const real* rider;
  int sums;

  /// The loss, then the sums of metrics.
  [[nodiscard]] KOKKOS_INLINE_FUNCTION double sum(int k) const {
    double whole = 0;
    for (int part = rider_parts - 1; part >= 0; --part)
      whole += static_cast<double>(rider[rider_parts * k + part]);
    return whole;
  }
  [[nodiscard]] KOKKOS_INLINE_FUNCTION bool is_non_finite() const {
    return rider[rider_parts * (1 + sums)] > 0;
  }
  [[nodiscard]] KOKKOS_INLINE_FUNCTION bool wants_pause() const {
    return rider[rider_parts * (1 + sums) + 1] > 0;
  }
};

/// What has ended a segment: the first step whose loss was not finite, and the first one of the
/// segment in which somebody wanted a pause; -1: none.
struct Decisions {
  std::int64_t diverged_at = -1;
  std::int64_t paused_at = -1;
};
/// Behind activations of a step: how many steps ago was decided what is known.
void write_ages(const ExecutionSpace& exec, const Decisions* known, std::int64_t step, real* rider);
/// Learns from such a rider; of pauses, what is of the segment.
void read_ages(const ExecutionSpace& exec, const real* rider, std::int64_t step,
               std::int64_t segment_first, Decisions* known);

/// The rider of so many numbers of a message that crosses a cut, in its last bytes.
[[nodiscard]] real* rider_of(std::byte* message, std::int64_t bytes, int numbers);

/// Host to device; returns when the host buffer may be used again.
void copy_to_device(const ExecutionSpace& exec, real* to, std::span<const real> from);
/// Device to host; returns when the numbers are there.
void copy_to_host(const ExecutionSpace& exec, std::span<real> to, const real* from);
void copy_reports_to_host(const ExecutionSpace& exec, std::span<double> to, const double* from);

}  // namespace carousel
