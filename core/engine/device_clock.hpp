// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// When the work of an execution space has come so far, written down by the device itself, since the
// host is ahead of it.

#include <cstdint>
#include <utility>

#include "core/base/copy.hpp"
#include "core/engine/transport.hpp"

namespace carousel {

class DeviceClock {
 public:
  /// Waits for `exec`, to learn what a GPU's clock shows when the run's does.
  DeviceClock(const ExecutionSpace& exec, Clock seconds);

  /// Writes the seconds of the run, when all is over that was launched before, into memory that
  /// host and device share.
  void stamp(const ExecutionSpace& exec, double* seconds) const;

 private:
  Clock seconds_;
  std::uint64_t ticks_ = 0;  // of the GPU's clock, in nanoseconds,
  double then_ = 0;          // and of the run's at the same time
};

#ifdef KOKKOS_ENABLE_CUDA

namespace detail {

KOKKOS_INLINE_FUNCTION std::uint64_t gpu_ticks() {
  std::uint64_t ticks = 0;
  KOKKOS_IF_ON_DEVICE((asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ticks));))
  return ticks;
}

/// Not in a constructor, where nvcc takes no lambdas.
inline void read_ticks(const ExecutionSpace& exec, std::uint64_t* ticks) {
  Kokkos::parallel_for(
      "carousel::engine::clock", range(exec, 1), KOKKOS_LAMBDA(int) { *ticks = gpu_ticks(); });
  finish(exec, "carousel::engine::clock");
}

}  // namespace detail

inline DeviceClock::DeviceClock(const ExecutionSpace& exec, Clock seconds)
    : seconds_(std::move(seconds)) {
  const Kokkos::View<std::uint64_t, Kokkos::SharedHostPinnedSpace> ticks("carousel::engine::ticks");
  finish(exec, "carousel::engine::clock");
  // The second time without what a first launch takes.
  for (int k = 0; k < 2; ++k) {
    const double before = seconds_();
    detail::read_ticks(exec, ticks.data());
    then_ = (before + seconds_()) / 2;
  }
  ticks_ = ticks();
}

inline void DeviceClock::stamp(const ExecutionSpace& exec, double* seconds) const {
  const std::uint64_t ticks = ticks_;
  const double then = then_;
  Kokkos::parallel_for(
      "carousel::engine::stamp", range(exec, 1), KOKKOS_LAMBDA(int) {
        const auto passed = static_cast<std::int64_t>(detail::gpu_ticks() - ticks);
        *seconds = then + 1e-9 * static_cast<double>(passed);
      });
}

#else

inline DeviceClock::DeviceClock(const ExecutionSpace& /*exec*/, Clock seconds)
    : seconds_(std::move(seconds)) {}
inline void DeviceClock::stamp(const ExecutionSpace& /*exec*/, double* seconds) const {
  *seconds = seconds_();
}

#endif

}  // namespace carousel
