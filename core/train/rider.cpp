// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/rider.hpp"

#include "core/base/range.hpp"
#include "core/plan/stage_memory.hpp"

namespace carousel {
namespace {

template <class T, class Space>
using Borrowed = Kokkos::View<T*, Space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

template <class T>
void to_device(const ExecutionSpace& exec, T* to, std::span<const T> from) {
  Kokkos::deep_copy(exec, Borrowed<T, MemorySpace>(to, from.size()),
                    Borrowed<const T, HostSpace>(from.data(), from.size()));
  exec.fence("carousel::train::copy_to_device");
}

template <class T>
void to_host(const ExecutionSpace& exec, std::span<T> to, const T* from) {
  Kokkos::deep_copy(exec, Borrowed<T, HostSpace>(to.data(), to.size()),
                    Borrowed<const T, MemorySpace>(from, to.size()));
  exec.fence("carousel::train::copy_to_host");
}

}  // namespace

void write_rider(const ExecutionSpace& exec, const Metrics* metrics, real* rider) {
  Kokkos::parallel_for(
      "carousel::train::write_rider", range(exec, 1), KOKKOS_LAMBDA(int) {
        rider[0] = static_cast<real>(metrics->loss);
        rider[1] = static_cast<real>(metrics->correct);
        rider[2] = static_cast<real>(metrics->non_finite);
        rider[3] = static_cast<real>(metrics->samples);
      });
}

void copy_rider(const ExecutionSpace& exec, const real* from, real* to) {
  Kokkos::parallel_for(
      "carousel::train::copy_rider", range(exec, rider_size),
      KOKKOS_LAMBDA(int k) { to[k] = from[k]; });
}

void copy_to_device(const ExecutionSpace& exec, real* to, std::span<const real> from) {
  to_device(exec, to, from);
}

void copy_to_device(const ExecutionSpace& exec, int* to, std::span<const int> from) {
  to_device(exec, to, from);
}

void copy_to_host(const ExecutionSpace& exec, std::span<real> to, const real* from) {
  to_host(exec, to, from);
}

void copy_to_host(const ExecutionSpace& exec, std::span<Metrics> to, const Metrics* from) {
  to_host(exec, to, from);
}

}  // namespace carousel
