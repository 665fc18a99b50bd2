// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A plan for people, on a terminal. The figures come from core/prepare and core/forecast.

#include <cstdint>
#include <string>

#include "core/prepare/prepare.hpp"

namespace carousel {

/// Stages, time grid, memory, messages and the bytes of a checkpoint, at 80 columns; with `layers`
/// also every layer.
[[nodiscard]] std::string describe(const PreparedRun& run, std::int64_t checkpoint, bool layers);

}  // namespace carousel
