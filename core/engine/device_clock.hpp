// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// When the work of an execution space has come so far, written down by the device itself, since the
// host is ahead of it.

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "core/base/copy.hpp"
#include "core/engine/gpu_ticks.hpp"
#include "core/engine/transport.hpp"

namespace carousel {

class DeviceClock {
 public:
  /// Sets the clock by that of the run.
  DeviceClock(const ExecutionSpace& exec, Clock seconds);

  /// Waits for `exec`, to learn what a GPU's clock shows when the run's does: within hours they
  /// drift apart by more than a step.
  void calibrate(const ExecutionSpace& exec);

  /// Writes the seconds of the run, when all is over that was launched before, into memory that
  /// host and device share.
  void stamp(const ExecutionSpace& exec, double* seconds) const;

 private:
  Clock seconds_;
#ifdef KOKKOS_ENABLE_CUDA
  Kokkos::View<std::uint64_t, Kokkos::SharedHostPinnedSpace> read_;
  std::uint64_t ticks_ = 0;  // of the GPU's clock, in nanoseconds,
  double then_ = 0;          // and of the run's at the same time
#endif
};

#ifdef KOKKOS_ENABLE_CUDA

inline DeviceClock::DeviceClock(const ExecutionSpace& exec, Clock seconds)
    : seconds_(std::move(seconds)), read_("carousel::engine::ticks") {
  calibrate(exec);
}

inline void DeviceClock::calibrate(const ExecutionSpace& exec) {
  static const std::string label = "carousel::engine::clock";
  std::uint64_t* const ticks = read_.data();
  finish(exec, "carousel::engine::clock");
  // By the quickest of some looks: a first launch takes its time, and the host may be interrupted.
  double quickest = std::numeric_limits<double>::infinity();
  for (int k = 0; k < 4; ++k) {
    const double before = seconds_();
    Kokkos::parallel_for(
        label, range(exec, 1), KOKKOS_LAMBDA(int) { *ticks = gpu_ticks(); });
    finish(exec, "carousel::engine::clock");
    const double after = seconds_();
    if (after - before >= quickest) continue;
    quickest = after - before;
    then_ = (before + after) / 2;
    ticks_ = *ticks;
  }
}

inline void DeviceClock::stamp(const ExecutionSpace& exec, double* seconds) const {
  static const std::string label = "carousel::engine::stamp";
  const std::uint64_t ticks = ticks_;
  const double then = then_;
  Kokkos::parallel_for(
      label, range(exec, 1), KOKKOS_LAMBDA(int) {
        const auto passed = static_cast<std::int64_t>(gpu_ticks() - ticks);
        *seconds = then + 1e-9 * static_cast<double>(passed);
      });
}

#else

inline DeviceClock::DeviceClock(const ExecutionSpace& /*exec*/, Clock seconds)
    : seconds_(std::move(seconds)) {}
inline void DeviceClock::calibrate(const ExecutionSpace& /*exec*/) {}
inline void DeviceClock::stamp(const ExecutionSpace& /*exec*/, double* seconds) const {
  *seconds = seconds_();
}

#endif

}  // namespace carousel
