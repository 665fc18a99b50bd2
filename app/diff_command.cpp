// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// `carousel diff`: where two runs part, and what in their files may explain it.

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>

#include "app/commands.hpp"
#include "app/run_keys.hpp"
#include "core/audit/receipts.hpp"
#include "core/base/check.hpp"

namespace carousel {
namespace {

void add(std::string& report, const std::string& what, const std::string& a, const std::string& b) {
  if (a != b) report += fmt::format("  {:<28}  {}  |  {}\n", what, a, b);
}

/// Keys of the decks, in the order of their names; "-" for a key that has no effect in that run.
void add_decks(std::string& report, const RunSummary& a, const RunSummary& b) {
  const std::map<std::string, std::string> of_a = keys_of(a);
  const std::map<std::string, std::string> of_b = keys_of(b);
  std::map<std::string, std::string> all = of_a;
  all.insert(of_b.begin(), of_b.end());
  const auto value = [](const std::map<std::string, std::string>& keys, const std::string& key) {
    const auto found = keys.find(key);
    return found == keys.end() ? "-" : found->second;
  };
  for (const auto& [key, unused] : all) add(report, key, value(of_a, key), value(of_b, key));
}

std::string data_of(const PlanRecord& plan) {
  if (!plan.basis) return "?";
  return fmt::format("{} of {}", plan.basis->train_samples, to_string(plan.basis->source.shown));
}

void add_plans(std::string& report, const PlanRecord& a, const PlanRecord& b) {
  add(report, "training samples", data_of(a), data_of(b));
  const std::size_t stages = std::min(a.stage_layers.size(), b.stage_layers.size());
  for (std::size_t s = 0; s < stages; ++s)
    add(report, fmt::format("stage {}", s), a.stage_layers[s], b.stage_layers[s]);
  add(report, "bytes of a number", a.basis ? fmt::format("{}", a.basis->real_bytes) : "?",
      b.basis ? fmt::format("{}", b.basis->real_bytes) : "?");
}

void add_step(std::string& report, const RunSummary& a, const RunSummary& b, std::int64_t step) {
  const auto value = [&](const RunSummary& run, double StepRecord::*column) {
    const std::int64_t row = step - run.first_step();
    return row >= 0 && row < std::ssize(run.rows)
               ? fmt::format("{:.9g}", run.rows[static_cast<std::size_t>(row)].*column)
               : "-";
  };
  const auto both = [&](const char* name, double StepRecord::*column) {
    add(report, fmt::format("{} of step {}", name, step), value(a, column), value(b, column));
  };
  both("learning rate", &StepRecord::learning_rate);
  both("loss", &StepRecord::loss);
}

std::string explanation(const RunSummary& a, const RunSummary& b, const Agreement& agreement) {
  std::string report;
  add_decks(report, a, b);
  if (a.plan && b.plan) add_plans(report, *a.plan, *b.plan);
  add(report, "program", a.info.program_version + " " + a.info.git_hash,
      b.info.program_version + " " + b.info.git_hash);
  add(report, "libraries", a.info.libraries, b.info.libraries);
  if (report.empty() && agreement.differ())
    report =
        "  Nothing in deck, plan or program explains it: compare the data files, the threads\n"
        "  per device and the machines.\n";
  if (agreement.differ()) add_step(report, a, b, agreement.steps);
  return report;
}

std::string verdict(const RunSummary& a, const RunSummary& b, const Agreement& agreement) {
  if (agreement.differ())
    return fmt::format("{} and {} differ first after step {}, in stage {} of {}", a.folder,
                       b.folder, agreement.steps, agreement.stage, a.receipts.size());
  std::string same = fmt::format("{} and {} made the same {} updates, bit for bit", a.folder,
                                 b.folder, agreement.steps - agreement.first);
  if (agreement.first > 0) same += fmt::format(", from step {} on", agreement.first);
  if (agreement.equal()) return same;
  return fmt::format("{}; {} made {} more", same, agreement.only_a > 0 ? a.folder : b.folder,
                     std::max(agreement.only_a, agreement.only_b));
}

RunSummary with_receipts(const std::string& path) {
  RunSummary run = read_run(path);
  if (!missing_files(run).empty())
    fail(ExitCode::input_output, "{}: {}; copy the whole folder", run.folder, missing_files(run));
  const ReceiptHistory history = receipts_of(run);
  if (history.end() == history.first)
    fail(ExitCode::bad_data, "{}: has no receipts; its ranks did not finish a single step",
         run.folder);
  return run;
}

}  // namespace

ExitCode diff_command(const std::string& path_a, const std::string& path_b) {
  const RunSummary a = with_receipts(path_a);
  const RunSummary b = with_receipts(path_b);
  if (a.receipts.size() != b.receipts.size())
    fail(ExitCode::usage,
         "{} is cut into {} stages and {} into {}, and receipts are of stages: compare /parameters "
         "of their checkpoints instead, as by h5diff",
         a.folder, a.receipts.size(), b.folder, b.receipts.size());
  const Agreement agreement = compare_receipts(a, b);
  fmt::print("{}\n", verdict(a, b, agreement));
  if (agreement.equal()) return ExitCode::done;
  fmt::print("{}", explanation(a, b, agreement));
  return ExitCode::differ;
}

}  // namespace carousel
