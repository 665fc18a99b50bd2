// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/audit/receipts.hpp"

#include <algorithm>

namespace carousel {
namespace {

/// Updates with a receipt of every stage.
std::int64_t whole_updates(const RunSummary& run) {
  if (run.receipts.empty()) return 0;
  const auto shortest = std::ranges::min_element(
      run.receipts, {}, [](const std::vector<std::uint64_t>& stage) { return stage.size(); });
  return std::ssize(*shortest);
}

}  // namespace

Agreement compare_receipts(const RunSummary& a, const RunSummary& b) {
  const std::int64_t of_a = whole_updates(a);
  const std::int64_t of_b = whole_updates(b);
  const bool same_cut = a.receipts.size() == b.receipts.size();
  Agreement result{.steps = same_cut ? std::min(of_a, of_b) : 0, .stage = same_cut ? -1 : 0};
  for (std::size_t s = 0; same_cut && s < a.receipts.size(); ++s) {
    const auto first = a.receipts[s].begin();
    const auto at = std::mismatch(first, first + result.steps, b.receipts[s].begin()).first;
    if (at - first == result.steps) continue;
    result.steps = at - first;
    result.stage = static_cast<int>(s);
  }
  if (!result.differ()) {
    result.only_a = of_a - result.steps;
    result.only_b = of_b - result.steps;
  }
  return result;
}

}  // namespace carousel
