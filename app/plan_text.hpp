// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A plan for people, on a terminal. The figures come from core/prepare and core/forecast.

#include <string>

#include "core/prepare/prepare.hpp"

namespace carousel {

/// Model, stages, time grid, memory and messages, at 80 columns.
[[nodiscard]] std::string describe(const PreparedRun& run);

}  // namespace carousel
