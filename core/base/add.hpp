// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sum of two vectors of numbers in device memory, which executor and transports share. Sums run
// in the order in which they are enqueued.

#include "core/base/check.hpp"
#include "core/base/range.hpp"
#include "core/base/view.hpp"

namespace carousel {

/// destination += source, element by element.
inline void add(const ExecutionSpace& exec, const Vector& destination, const ConstVector& source) {
  static const std::string label = "carousel::base::add";
  CAROUSEL_CHECK(destination.size() == source.size(), "{} += {} numbers", destination.size(),
                 source.size());
  real* to = destination.data();
  const real* from = source.data();
  Kokkos::parallel_for(
      label, range(exec, static_cast<std::int64_t>(destination.size())),
      KOKKOS_LAMBDA(std::int64_t i) { to[i] += from[i]; });
}

}  // namespace carousel
