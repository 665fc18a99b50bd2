// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many threads of a host a kernel is worth: all, or only the one that launches it, since waking
// others and waiting for the last of them takes longer than a small kernel. Numbers do not depend
// on it.

#include <algorithm>
#include <optional>

#include "core/base/range.hpp"
#include "core/base/view.hpp"

namespace carousel {

/// What a kernel does.
struct Work {
  double operations = 0;
  double bytes = 0;  // read and written

  /// What one thread takes for it, about: a core of a server multiplies and adds in registers, and
  /// reads from a cache that others share.
  [[nodiscard]] double seconds() const { return std::max(operations / 2e10, bytes / 1e10); }
};

/// The same execution space with all of its threads and with one. Kernels launched on either are in
/// order: on a host each is over when its launch returns, and on a GPU both are the same stream.
class Workers {
 public:
  explicit Workers(const ExecutionSpace& all) : all_(all), one_(single(all)) {}

  [[nodiscard]] const ExecutionSpace& all() const { return all_; }
  /// For what takes no time.
  [[nodiscard]] const ExecutionSpace& one() const { return one_; }
  [[nodiscard]] const ExecutionSpace& of(const Work& work) const {
    return is_small(work) ? one_ : all_;
  }
  /// Whether more threads would gain less than it takes to have them start and end together, some
  /// microseconds where each has a core that is awake, and many where it has not.
  [[nodiscard]] static bool is_small(const Work& work) { return work.seconds() < 20e-6; }

 private:
  [[nodiscard]] static ExecutionSpace single(const ExecutionSpace& all) {
#ifdef KOKKOS_ENABLE_OPENMP
    if constexpr (std::is_same_v<ExecutionSpace, Kokkos::OpenMP>)
      if (concurrency(all) > 1) return Kokkos::OpenMP(1);
#endif
    return all;
  }

  ExecutionSpace all_;
  ExecutionSpace one_;
};

}  // namespace carousel
