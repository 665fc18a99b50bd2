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
/// The same on the host, of one tensor, and back.
void store_numbers(DataType type, std::span<const real> full, std::byte* stored);
void restore_numbers(DataType type, const std::byte* stored, std::span<real> full);

}  // namespace carousel
