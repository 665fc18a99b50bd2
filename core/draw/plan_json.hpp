// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A plan as JSON, for programs that draw, check or simulate it in their own way. It reads nothing
// back.

#include <cstdint>
#include <optional>
#include <string>

#include "core/forecast/forecast.hpp"
#include "core/plan/memory_plan.hpp"
#include "core/plan/schedule.hpp"

namespace carousel {

/// One object: `rule`, `placement`, `order`, `reduction`, `N`, `k`, `S`, `slack`, `predict`,
/// `devices`; `activation_units` [device], frames of saved activations of one stage; `bytes`, by
/// category [device]; `groups` [group][device] of the collectives; `period_time`, time steps of a
/// training step; and `actions` of training steps 0 .. steps - 1 by device, in the order in which
/// it executes them. An action has `time` (time step), `device`, `kind`, `step`, `micro_batch`,
/// `stage`, `version`, `peer`, `bytes`, and `payload`, `direction`, `group`, `buffer`, `source`
/// where it has a meaning for them; numbers without a meaning are -1. With a forecast, `simulation`
/// has `seconds_per_step`, `ideal_seconds_per_step` on links that cost nothing, and of one steady
/// training step, which is cut into bins of `bin_seconds`: `computing` [device], the fraction of
/// its time; `links`, each with `from`, `to`, `bytes` [bin]; `activations` [bin], most bytes held
/// on all devices at once. Ends with a line end.
[[nodiscard]] std::string plan_json(const Schedule& schedule, const MemoryPlan& memory,
                                    std::int64_t steps,
                                    const std::optional<Forecast>& simulated = {});

}  // namespace carousel
