// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which numbers an action of each kind has, and which values they may have on a device. It judges
// one action alone; whether it is right where it stands is for the checker.

#include "core/plan/schedule.hpp"

namespace carousel {

/// Why the action cannot stand in a list of training for this device, or null. Frames and inputs
/// must be those that come in turn, since the executor counts them itself.
[[nodiscard]] const char* misnamed_field(const Schedule& schedule, const Segment& segment,
                                         int device, const Action& action);

}  // namespace carousel
