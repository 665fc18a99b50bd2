// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The table that sets runs side by side; declared in inspect.hpp.

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "core/audit/inspect.hpp"
#include "core/audit/receipts.hpp"
#include "core/base/text.hpp"
#include "core/record/run_reader.hpp"

namespace carousel {
namespace {

/// Rows of text in columns as wide as they need.
class Table {
 public:
  void row(std::string title, std::vector<std::string> cells) {
    cells.insert(cells.begin(), std::move(title));
    widths_.resize(std::max(widths_.size(), cells.size()), 0);
    for (std::size_t k = 0; k < cells.size(); ++k)
      widths_[k] = std::max(widths_[k], cells[k].size());
    rows_.push_back(std::move(cells));
  }

  [[nodiscard]] std::size_t width() const {
    std::size_t sum = widths_.empty() ? 0 : 2 * (widths_.size() - 1);
    for (const std::size_t width : widths_) sum += width;
    return sum;
  }

  [[nodiscard]] std::string text() const {
    std::string text;
    for (const std::vector<std::string>& cells : rows_) {
      std::string line = fmt::format("{:<{}}", cells[0], widths_[0]);
      for (std::size_t k = 1; k < cells.size(); ++k)
        line += fmt::format("  {:>{}}", cells[k], widths_[k]);
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return text;
  }

 private:
  std::vector<std::size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
};

/// One cell per run, "-" for runs that do not say.
template <class Function>
std::vector<std::string> cells(const std::vector<RunSummary>& runs, Function&& cell) {
  std::vector<std::string> row;
  for (const RunSummary& run : runs) row.push_back(cell(run));
  return row;
}

template <class Function>
std::vector<std::string> plan_cells(const std::vector<RunSummary>& runs, Function&& cell) {
  return cells(runs, [&](const RunSummary& run) { return run.plan ? cell(*run.plan) : "-"; });
}

std::string short_name(const std::string& folder) {
  const std::size_t end = folder.find_last_not_of('/');
  const std::size_t slash = folder.rfind('/', end);
  return folder.substr(slash + 1, end - slash);
}

std::string rule_of(const PlanRecord& plan) {
  return plan.rule == "dp" && plan.devices == 1 ? plan.rule + " " + plan.order : plan.rule;
}

/// What a run is told by: its first metric, or the loss.
std::string main_name(const RunSummary& run) {
  return run.metrics.empty() ? "loss" : run.metrics.front();
}

/// Whether all runs are told by one; of different ones each says its own.
bool are_told_alike(std::span<const RunSummary> runs) {
  return std::ranges::all_of(
      runs, [&](const RunSummary& run) { return main_name(run) == main_name(runs[0]); });
}

std::string main_result(const RunSummary& run, bool with_name) {
  if (run.evaluations.empty()) return "-";
  const EvaluationRecord& last = run.evaluations.back();
  const std::string result =
      fmt::format("{:.4f}", run.metrics.empty() ? last.loss : last.metrics.front());
  return with_name ? main_name(run) + " " + result : result;
}

std::string main_title(std::span<const RunSummary> runs) {
  return "test " + (are_told_alike(runs) ? main_name(runs[0]) : std::string("result"));
}

/// A cell from what all ranks measured; "?" if a file is missing, "-" if a rank measured nothing.
template <class Function>
std::vector<std::string> measured_cells(const std::vector<RunSummary>& runs, Function&& cell) {
  return cells(runs, [&](const RunSummary& run) {
    if (!run.missing.empty()) return std::string("?");
    return run.measured.empty() ? std::string("-") : cell(run);
  });
}

/// A total over all ranks and the newest part, per training step.
double per_step(const RunSummary& run, std::int64_t MeasuredRecord::*total) {
  std::int64_t sum = 0;
  for (const MeasuredRecord& rank : run.measured) sum += rank.*total;
  const std::int64_t steps = run.steps - run.part.first_step;
  return steps == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(steps);
}

bool comparable(const RunSummary& a, const RunSummary& b) {
  return a.plan && b.plan && a.plan->rule == b.plan->rule && !a.receipts.empty() &&
         a.missing.empty() && b.missing.empty() && a.plan->micro_batches == b.plan->micro_batches &&
         a.plan->stages == b.plan->stages && a.info.seed == b.info.seed;
}

/// Which earlier run of the same rule, N, S and seed a run repeats bit by bit.
std::string same_bits(const std::vector<RunSummary>& runs, std::size_t k) {
  for (std::size_t earlier = 0; earlier < k; ++earlier) {
    if (!comparable(runs[earlier], runs[k])) continue;
    const Agreement agreement = compare_receipts(runs[earlier], runs[k]);
    if (agreement.steps == agreement.first && !agreement.differ())
      continue;  // no update to compare
    if (agreement.differ())
      return fmt::format("no: step {} stage {}", agreement.steps, agreement.stage);
    if (agreement.equal()) return "yes, as " + short_name(runs[earlier].folder);
    return fmt::format("same for {} steps", agreement.steps);
  }
  return "-";
}

/// A key in which decks of runs differ.
struct DifferingKey {
  std::string key;
  std::vector<std::string> values;  // [run]
};

std::vector<DifferingKey> differing_keys(const std::vector<RunSummary>& runs,
                                         const KeysOfRun& keys_of) {
  std::vector<std::map<std::string, std::string>> decks;
  std::set<std::string> all;
  for (const RunSummary& run : runs) {
    decks.push_back(keys_of(run));
    for (const auto& [key, value] : decks.back()) all.insert(key);
  }
  std::vector<DifferingKey> differing;
  for (const std::string& key : all) {
    std::vector<std::string> values;
    for (const auto& deck : decks) values.push_back(deck.contains(key) ? deck.at(key) : "-");
    if (std::ranges::any_of(values, [&](const std::string& v) { return v != values.front(); }))
      differing.push_back({key, std::move(values)});
  }
  return differing;
}

std::string state_of(const RunSummary& run) {
  if (!run.status) return "?";
  const bool lost = run.status->state == RunState::running && life_of(*run.status) == Life::gone;
  return lost ? "killed" : to_string(run.status->state);
}

/// A line per run, with as many differing keys as there is room for; the rest are named below.
std::string list_runs(const std::vector<RunSummary>& runs, std::vector<DifferingKey> differing) {
  std::vector<std::string> omitted;
  const bool with_name = !are_told_alike(runs);
  while (true) {
    Table table;
    std::vector<std::string> titles = {"state", "steps", main_title(runs)};
    for (const DifferingKey& key : differing)
      titles.push_back(key.key.substr(key.key.rfind('.') + 1));
    table.row("", titles);
    for (std::size_t k = 0; k < runs.size(); ++k) {
      std::vector<std::string> row = {state_of(runs[k]), fmt::format("{}", runs[k].steps),
                                      main_result(runs[k], with_name)};
      for (const DifferingKey& key : differing) row.push_back(key.values[k]);
      table.row(short_name(runs[k].folder), std::move(row));
    }
    if (table.width() <= 80 || differing.empty()) {
      std::string text = table.text();
      if (!omitted.empty())
        text += fmt::format("They also differ in {}.\n", fmt::join(omitted, ", "));
      return text;
    }
    omitted.insert(omitted.begin(), differing.back().key);
    differing.pop_back();
  }
}

}  // namespace

std::string compare_runs(std::span<const std::string> paths, const KeysOfRun& keys_of) {
  std::vector<RunSummary> runs;
  for (const std::string& path : paths) runs.push_back(read_run(path));
  const auto category = Category::activations;
  std::vector<std::string> bits;
  for (std::size_t k = 0; k < runs.size(); ++k) bits.push_back(same_bits(runs, k));

  Table table;
  table.row("", cells(runs, [](const RunSummary& run) { return short_name(run.folder); }));
  table.row("rule", plan_cells(runs, rule_of));
  table.row("placement", plan_cells(runs, [](const PlanRecord& p) { return p.placement; }));
  table.row("devices",
            plan_cells(runs, [](const PlanRecord& p) { return fmt::format("{}", p.devices); }));
  table.row(main_title(runs),
            cells(runs, [with_name = !are_told_alike(runs)](const RunSummary& run) {
              return main_result(run, with_name);
            }));
  table.row("peak activations, all devices", {});
  table.row("  measured", measured_cells(runs, [&](const RunSummary& run) {
              return human_bytes(measured_bytes(run, category));
            }));
  table.row("  planned", plan_cells(runs, [&](const PlanRecord& plan) {
              return human_bytes(planned_bytes(plan, category));
            }));
  table.row("  dp, all at once (N A)", plan_cells(runs, [](const PlanRecord& plan) {
              return human_bytes(plan.activation_bytes_together);
            }));
  table.row("  dp, accumulating (A)", plan_cells(runs, [](const PlanRecord& plan) {
              return human_bytes(plan.activation_bytes_accumulate);
            }));
  table.row("messages sent per step", measured_cells(runs, [](const RunSummary& run) {
              return fmt::format("{:.1f}", per_step(run, &MeasuredRecord::messages_sent));
            }));
  table.row("bytes sent per step", measured_cells(runs, [](const RunSummary& run) {
              return human_bytes(per_step(run, &MeasuredRecord::bytes_sent));
            }));
  if (std::ranges::any_of(runs, [](const RunSummary& run) {
        return run.plan && run.plan->collective_bytes_per_step.value_or(0) > 0;
      })) {
    table.row("  more by collectives, as rings", plan_cells(runs, [](const PlanRecord& plan) {
                return plan.collective_bytes_per_step ? human_bytes(*plan.collective_bytes_per_step)
                                                      : "-";
              }));
  }
  table.row("same bits after every update", bits);
  std::string text =
      table.width() > 80 ? list_runs(runs, differing_keys(runs, keys_of)) : table.text();
  for (const RunSummary& run : runs) {
    if (!run.missing.empty())
      text += fmt::format("{}: {}; copy the whole folder\n", run.folder, missing_files(run));
  }
  return text;
}

}  // namespace carousel
