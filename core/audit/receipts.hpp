// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sets the receipts of two runs against each other: how far both made the same updates with the
// same bits. Why they differ is not its business.

#include <cstdint>

#include "core/record/run_reader.hpp"

namespace carousel {

struct Agreement {
  std::int64_t steps = 0;   // updates that left the same bits in every stage
  int stage = -1;           // first that differs after the next update; -1: nothing both have
  std::int64_t only_a = 0;  // updates beyond those that both made
  std::int64_t only_b = 0;

  [[nodiscard]] bool differ() const { return stage >= 0; }
  [[nodiscard]] bool equal() const { return !differ() && only_a == 0 && only_b == 0; }
};

/// Updates count when every stage has its receipt. Runs cut into different numbers of stages have
/// nothing to compare: they differ from the first stage of the first step on.
[[nodiscard]] Agreement compare_receipts(const RunSummary& a, const RunSummary& b);

}  // namespace carousel
