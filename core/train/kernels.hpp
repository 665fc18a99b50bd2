// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The small kernels of the executor itself, on borrowed memory. The update is in
// core/train/update.hpp, the sum of gradients in core/base/add.hpp.

#include <span>

#include "core/engine/layer.hpp"
#include "core/engine/queue.hpp"
#include "core/plan/stage_memory.hpp"
#include "core/train/records.hpp"

namespace carousel {

/// Completes the row of a message for which the device waited from `begun` to the time in `waited`;
/// all in memory that host and device share.
void note_times(const ExecutionSpace& exec, const OperationTimes* times, const double* begun,
                MessageRecord* row);

/// Puts parameters first .. first + size - 1 of a stage, `full`, where kernels read them, in the
/// types that they are stored in.
void store_parameters(const ExecutionSpace& exec, std::span<const ParameterRange> ranges,
                      std::int64_t first, std::int64_t size, const real* full, std::byte* stored);
/// With prediction, what is read in place of theta_t: theta_t + kappa (theta_t - theta_{t-1}).
[[nodiscard]] KOKKOS_INLINE_FUNCTION real predicted(real theta, real before, real kappa) {
  return Kokkos::fma(kappa, theta - before, theta);
}
/// Puts that of parameters first .. first + size - 1 of a stage where kernels read them.
void store_predicted(const ExecutionSpace& exec, std::span<const ParameterRange> ranges,
                     std::int64_t first, std::int64_t size, const real* theta, const real* before,
                     real kappa, std::byte* stored);
/// The same as store_parameters() on the host, of one tensor, and back.
void store_numbers(DataType type, std::span<const real> full, std::byte* stored);
void restore_numbers(DataType type, const std::byte* stored, std::span<real> full);

}  // namespace carousel
