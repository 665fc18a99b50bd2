// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/rider.hpp"

#include "core/base/copy.hpp"
#include "core/base/range.hpp"
#include "core/plan/stage_memory.hpp"

namespace carousel {
namespace {

template <class T>
void to_host(const ExecutionSpace& exec, std::span<T> to, const T* from) {
  copy<HostSpace, MemorySpace>(exec, to.data(), from, to.size_bytes());
  finish(exec, "carousel::train::copy_to_host");
}

/// A number by its leading 12 digits, of which 4096 add up without rounding where they are of one
/// size, the 12 behind, and the rest. What is not finite is in the first part alone.
KOKKOS_INLINE_FUNCTION void carry(double number, real* parts) {
  if constexpr (rider_parts == 1) {
    parts[0] = static_cast<real>(number);
  } else {
    constexpr std::uint32_t leading = 0xfffff000;
    for (int part = 0; part < rider_parts; ++part) {
      const auto rounded = static_cast<float>(number);
      const bool last = part + 1 == rider_parts || !Kokkos::isfinite(rounded);
      const float kept =
          last ? rounded
               : Kokkos::bit_cast<float>(Kokkos::bit_cast<std::uint32_t>(rounded) & leading);
      parts[part] = kept;
      number = Kokkos::isfinite(kept) ? number - static_cast<double>(kept) : 0;
    }
  }
}

}  // namespace

void write_rider(const ExecutionSpace& exec, const double* report, int sums, real* rider) {
  static const std::string label = "carousel::train::write_rider";
  Kokkos::parallel_for(
      label, range(exec, 1), KOKKOS_LAMBDA(int) {
        carry(report[0], rider);
        for (int k = 0; k < sums; ++k)
          carry(report[report_head + k], rider + rider_parts * (1 + k));
        rider[rider_parts * (1 + sums)] = static_cast<real>(report[1]);
        rider[rider_parts * (1 + sums) + 1] = 0;
      });
}

void copy_rider(const ExecutionSpace& exec, int sums, const real* from, real* to) {
  static const std::string label = "carousel::train::copy_rider";
  Kokkos::parallel_for(
      label, range(exec, rider_size(sums)), KOKKOS_LAMBDA(int k) { to[k] = from[k]; });
}

void ask_for_pause(const ExecutionSpace& exec, int sums, real* rider) {
  static const std::string label = "carousel::train::ask_for_pause";
  Kokkos::parallel_for(
      label, range(exec, 1), KOKKOS_LAMBDA(int) { rider[rider_size(sums) - 1] = 1; });
}

void write_ages(const ExecutionSpace& exec, const Decisions* known, std::int64_t step,
                real* rider) {
  static const std::string label = "carousel::train::write_ages";
  Kokkos::parallel_for(
      label, range(exec, 1), KOKKOS_LAMBDA(int) {
        rider[0] = static_cast<real>(known->diverged_at < 0 ? -1 : step - known->diverged_at);
        rider[1] = static_cast<real>(known->paused_at < 0 ? -1 : step - known->paused_at);
      });
}

void read_ages(const ExecutionSpace& exec, const real* rider, std::int64_t step,
               std::int64_t segment_first, Decisions* known) {
  static const std::string label = "carousel::train::read_ages";
  Kokkos::parallel_for(
      label, range(exec, 1), KOKKOS_LAMBDA(int) {
        const auto diverged_at = step - static_cast<std::int64_t>(rider[0]);
        const auto paused_at = step - static_cast<std::int64_t>(rider[1]);
        if (rider[0] >= 0 && known->diverged_at < 0) known->diverged_at = diverged_at;
        if (rider[1] >= 0 && known->paused_at < 0 && paused_at >= segment_first)
          known->paused_at = paused_at;
      });
}

real* rider_of(std::byte* message, std::int64_t bytes, int numbers) {
  const auto size = numbers * std::int64_t{sizeof(real)};
  return reinterpret_cast<real*>(message + bytes - align_up(size));
}

void copy_to_device(const ExecutionSpace& exec, real* to, std::span<const real> from) {
  copy<MemorySpace, HostSpace>(exec, to, from.data(), from.size_bytes());
  finish(exec, "carousel::train::copy_to_device");
}

void copy_to_host(const ExecutionSpace& exec, std::span<real> to, const real* from) {
  to_host(exec, to, from);
}

void copy_reports_to_host(const ExecutionSpace& exec, std::span<double> to, const double* from) {
  to_host(exec, to, from);
}

}  // namespace carousel
