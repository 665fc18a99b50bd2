// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sets the receipts of two runs against each other: how far both made the same updates with the
// same bits. Why they differ is not its business.

#include <cstdint>
#include <vector>

#include "core/record/run_reader.hpp"

namespace carousel {

/// The receipts of a run, of all of its parts that are cut into stages as the newest one is.
struct ReceiptHistory {
  std::int64_t first = 0;                            // updates before the first one
  std::vector<std::vector<std::uint64_t>> receipts;  // [stage][update from `first` on]

  /// Updates until the last one of which every stage has its receipt.
  [[nodiscard]] std::int64_t end() const;
};
[[nodiscard]] ReceiptHistory receipts_of(const RunSummary& run);

struct Agreement {
  std::int64_t first = 0;   // updates before the first one that both have receipts of
  std::int64_t steps = 0;   // updates, with those, until which every stage had the same bits
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
