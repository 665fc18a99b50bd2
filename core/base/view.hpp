// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The short list of Kokkos aliases that engine code uses: one execution space, its memory, and
// views of bytes and numbers. The thinking half of Carousel never includes this file.

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

#include "core/base/real.hpp"

namespace carousel {

using ExecutionSpace = Kokkos::DefaultExecutionSpace;
using MemorySpace = ExecutionSpace::memory_space;
using HostSpace = Kokkos::HostSpace;

using TeamPolicy = Kokkos::TeamPolicy<ExecutionSpace>;
using Team = TeamPolicy::member_type;
/// CUDA's own index has 32 bits, and an arena more bytes than those count.
using RangePolicy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;

/// True where kernels run on the cores of the host, so that tile shapes can follow.
inline constexpr bool runs_on_host =
    Kokkos::SpaceAccessibility<HostSpace, MemorySpace>::accessible &&
    std::is_same_v<MemorySpace, HostSpace>;

/// Owning storage, in bytes, of one memory category.
using Bytes = Kokkos::View<std::byte*, MemorySpace>;

/// Borrowed one-dimensional views on parts of an arena.
using Vector = Kokkos::View<real*, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
using ConstVector = Kokkos::View<const real*, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

}  // namespace carousel
