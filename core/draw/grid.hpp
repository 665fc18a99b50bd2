// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Draws a schedule as text, the way the paper draws it: one row per micro-batch or device, one
// column per time step, and under it how much of the activations is alive. It only reads actions.

#include <string>

#include "core/plan/schedule.hpp"

namespace carousel {

/// The first training steps until the schedule repeats, cut to `columns` characters. F2 is a
/// forward of stage 2 with theta_t, f2 one with theta_{t-1}; b and B likewise. Where a device has
/// one stage (`pipeline`, `model`), a row is a device and F2 a forward of micro-batch 2. Many rows
/// are drawn in part.
[[nodiscard]] std::string draw_grid(const Schedule& schedule, int columns = 80);

}  // namespace carousel
