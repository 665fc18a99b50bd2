// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// trace.json: the recorded actions and messages of a run in Chrome's trace event format, which
// Perfetto opens. It is made of the rank files and holds nothing that they do not.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "core/record/plan_record.hpp"
#include "core/record/profile.hpp"
#include "core/train/records.hpp"

namespace carousel {

/// A browser still opens a trace of so many actions; about 120 bytes each.
inline constexpr std::int64_t trace_actions = 500'000;

/// One track per device (tid), one complete event per action, and for every message whose both
/// ends were recorded a flow from where it was sent to where it was seen to have come. Whole steps
/// from the first on, as many as have at most `limit` actions, and one in any case.
[[nodiscard]] std::string trace_text(const PlanRecord& plan, std::span<const DeviceProfile> devices,
                                     std::int64_t limit = trace_actions);

/// Writes trace.json into the folder of a run whose rank files are complete.
void write_trace(const std::filesystem::path& folder);

}  // namespace carousel
