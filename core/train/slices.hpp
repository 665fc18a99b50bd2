// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which training steps `[profile] steps` selects: Python slices of the run's steps. It selects
// numbers and knows nothing of what is recorded for them.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace carousel {

/// Python's start:stop:step; negative bounds count from the end of the run.
struct Slice {
  std::optional<std::int64_t> start;
  std::optional<std::int64_t> stop;
  std::int64_t step = 1;
};

class Slices {
 public:
  Slices() = default;
  /// Parses "0:20,::1000,-1"; empty text selects nothing. Throws Error(usage), with a message that
  /// begins with profile.steps.
  explicit Slices(std::string_view text);

  /// Whether the slices select `step` of a run of `steps` training steps.
  [[nodiscard]] bool contains(std::int64_t step, std::int64_t steps) const;

 private:
  std::vector<Slice> slices_;
};

}  // namespace carousel
