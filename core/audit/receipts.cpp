// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/audit/receipts.hpp"

#include <algorithm>

namespace carousel {

std::int64_t ReceiptHistory::end() const {
  if (receipts.empty()) return first;
  const auto shortest = std::ranges::min_element(
      receipts, {}, [](const std::vector<std::uint64_t>& stage) { return stage.size(); });
  return first + std::ssize(*shortest);
}

ReceiptHistory receipts_of(const RunSummary& run) {
  ReceiptHistory history{.first = run.part.first_step, .receipts = run.receipts};
  for (auto part = run.earlier.rbegin(); part != run.earlier.rend(); ++part) {
    const std::int64_t kept = history.first - part->part.first_step;
    if (kept <= 0) continue;  // nobody went on from what it did
    const bool same_cut =
        part->plan && run.plan && part->plan->stage_layers == run.plan->stage_layers;
    const auto has_all = [&](const auto& stage) { return std::ssize(stage) >= kept; };
    if (!same_cut || !std::ranges::all_of(part->receipts, has_all)) break;
    for (std::size_t s = 0; s < history.receipts.size(); ++s)
      history.receipts[s].insert(history.receipts[s].begin(), part->receipts[s].begin(),
                                 part->receipts[s].begin() + kept);
    history.first = part->part.first_step;
  }
  return history;
}

Agreement compare_receipts(const RunSummary& run_a, const RunSummary& run_b) {
  const ReceiptHistory a = receipts_of(run_a);
  const ReceiptHistory b = receipts_of(run_b);
  const bool same_cut = a.receipts.size() == b.receipts.size();
  const std::int64_t first = std::max(a.first, b.first);
  Agreement result{.first = first,
                   .steps = same_cut ? std::max(first, std::min(a.end(), b.end())) : first,
                   .stage = same_cut ? -1 : 0};
  for (std::size_t s = 0; same_cut && s < a.receipts.size(); ++s) {
    if (result.steps == first) break;
    const auto from = a.receipts[s].begin() + (first - a.first);
    const auto to = from + (result.steps - first);
    const auto at = std::mismatch(from, to, b.receipts[s].begin() + (first - b.first)).first;
    if (at == to) continue;
    result.steps = first + (at - from);
    result.stage = static_cast<int>(s);
  }
  if (!result.differ()) {
    result.only_a = std::max<std::int64_t>(0, a.end() - result.steps);
    result.only_b = std::max<std::int64_t>(0, b.end() - result.steps);
  }
  return result;
}

}  // namespace carousel
