// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// `carousel verify`: makes the plan of a finished run again from what the run file holds, and
// compares. Needs neither the data set nor the machine it ran on.

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <deque>
#include <string>
#include <vector>

#include "app/commands.hpp"
#include "app/requested_run.hpp"
#include "core/audit/verify.hpp"
#include "core/base/real.hpp"
#include "core/data/sampler.hpp"
#include "core/train/learning_rate.hpp"
#include "core/train/slices.hpp"

namespace carousel {
namespace {

/// Why a run is not done.
std::string reason(const RunSummary& run) {
  if (!run.status) return "it has no status.json";
  const RunStatus& status = *run.status;
  if (status.state == RunState::failed) return "it failed:\n  " + status.cause;
  if (status.state == RunState::stopped)
    return fmt::format("it was stopped by {}; `carousel train {}` goes on", status.cause,
                       run.folder);
  if (status.state == RunState::diverged) return "it diverged:\n  " + status.cause;
  switch (life_of(status)) {
    case Life::alive:
      return "it is still running";
    case Life::gone:
      return "it was killed";
    case Life::unknown:
      break;
  }
  return fmt::format("it was killed, or still runs on {}",
                     status.host.empty() ? "another host" : status.host);
}

bool is_done(const RunSummary& run) {
  return run.status && run.status->state == RunState::done;
}

/// The file that tells what a part is.
std::string file_of(const RunSummary& run, const RunPart& part) {
  return part.number == run.number ? run.file : run.folder + "/" + rank_file_name(0, part.number);
}

/// What the plan of a part is made from; throws if it cannot be made here.
PlanBasis basis_of(const RunSummary& run, const RunPart& part) {
  const std::string file = file_of(run, part);
  if (!part.plan)
    fail(is_done(run) ? ExitCode::bad_data : ExitCode::incomplete,
         "{}: has no /plan; the run ended before its first step", file);
  if (!part.plan->basis)
    fail(ExitCode::bad_data,
         "{}: has no /plan/basis; an earlier Carousel did not write it; train again", file);
  const PlanBasis& basis = *part.plan->basis;
  if (basis.real_bytes != 4 && basis.real_bytes != 8)
    fail(ExitCode::bad_data, "{}: attribute real_bytes of /plan/basis is {}", file,
         basis.real_bytes);
  if (basis.real_bytes != int{sizeof(real)})
    fail(ExitCode::usage,
         "{}: was made with numbers of {} bytes, and this program plans for {}; use a build of "
         "that precision",
         run.folder, basis.real_bytes, sizeof(real));
  return basis;
}

/// A part of a run, planned again from its deck.
struct PlannedPart {
  PlannedPart(const RunSummary& run, const RunPart& part)
      : basis(basis_of(run, part)),
        config(as_bad_data(
            [&] { return parse_run_config(part.info.deck, file_of(run, part) + ", deck", {}); })),
        prepared(as_bad_data([&] { return prepare_run(config, basis); },
                             file_of(run, part) + ": deck or /plan/basis: ")),
        order(TrainingOrder{basis.train_samples, config.parallel.micro_batches,
                            config.train.micro_batch_size}
                  .going_on(part.part.first_step, {part.part.epoch, part.part.position})),
        agenda(agenda_of(config.train, config.checkpoint, order)),
        profiled(config.profile.steps) {}

  [[nodiscard]] Expectation expectation() const {
    return {.model = prepared.model,
            .schedule = prepared.schedule,
            .memory = prepared.memory,
            .plan = plan_record(prepared),
            .seed = config.run.seed,
            .micro_batch_size = config.train.micro_batch_size,
            .optimizer_states = config.train.optimizer.states(),
            .order = order,
            .agenda = agenda,
            .profiled =
                [this](std::int64_t step) { return profiled.contains(step, agenda.total_steps); },
            .learning_rate =
                [this](std::int64_t step) { return learning_rate(config.train, agenda, step); }};
  }

  PlanBasis basis;
  RunConfig config;
  PreparedRun prepared;
  TrainingOrder order;
  Agenda agenda;
  Slices profiled;
};

/// "2, from steps 0 and 44 on".
std::string parts_of(const RunSummary& run) {
  std::vector<std::int64_t> first;
  for (const RunPart& part : run.earlier) first.push_back(part.part.first_step);
  return fmt::format("{}, from steps {} and {} on", first.size() + 1, fmt::join(first, ", "),
                     run.part.first_step);
}

std::string describe(const RunSummary& run, const PlanRecord& plan, const Verified& verified) {
  const auto line = [](const char* what, const std::string& text) {
    return fmt::format("  {:<10} {}\n", what, text);
  };
  std::string report =
      fmt::format("{}: {} after {} steps\n", run.folder,
                  run.status ? to_string(run.status->state) : "no status", verified.steps);
  report += line("rule", fmt::format("{}, {} on {} device{}, N = {}, S = {}", plan.rule,
                                     plan.placement, plan.devices, plan.devices == 1 ? "" : "s",
                                     plan.micro_batches, plan.stages));
  if (run.earlier.empty()) {
    report += line("plan", "all of it follows from the deck");
  } else {
    report += line("parts", fmt::format("{}, each by its own deck and plan", parts_of(run)));
    if (verified.lost_steps > 0)
      report += line("", fmt::format("{} steps were made after a checkpoint, lost and made again",
                                     verified.lost_steps));
  }
  report += line("steps", fmt::format("{}, with the learning rates of the deck; {} evaluations",
                                      verified.steps, verified.evaluations));
  report +=
      line("actions", fmt::format("{} of {} profiled steps, order and versions as the rule says",
                                  verified.actions, verified.profiled_steps));
  report += line("messages",
                 fmt::format("{}, each with both ends and the planned bytes", verified.messages));
  report += line("memory", fmt::format("{} rows and every peak, to the byte", verified.actions));
  report += line("receipts", fmt::format("{}, one per step and stage", verified.receipts));
  report += line("checkpoint", verified.checkpoint_step < 0
                                   ? "there is none to compare receipts with"
                                   : fmt::format("its parameters have the receipts of step {}",
                                                 verified.checkpoint_step - 1));
  return report;
}

/// Whether the process of a run is at work.
bool is_alive(const std::string& path) {
  try {
    const RunStatus status = read_status(path);
    return status.state == RunState::running && life_of(status) == Life::alive;
  } catch (const Error&) {
    return false;
  }
}

ExitCode verify(const std::string& path) {
  const RunSummary run = read_run(path);
  std::deque<PlannedPart> parts;  // which stay where they are
  for (const RunPart& part : run.earlier) parts.emplace_back(run, part);
  parts.emplace_back(run, run);
  std::vector<Expectation> expected;
  for (const PlannedPart& part : parts) expected.push_back(part.expectation());
  const Verified verified = verify_run(run, expected);
  fmt::print("{}", describe(run, expected.back().plan, verified));
  if (is_done(run)) {
    fmt::print("All checks passed.\n");
    return ExitCode::done;
  }
  fmt::print("What it wrote passed all checks, but the run is incomplete, {} of {} steps:\n{}\n",
             verified.steps, parts.back().agenda.total_steps, reason(run));
  return ExitCode::incomplete;
}

}  // namespace

// A run that goes on may publish rows and replace checkpoints between one file and the next, which
// then do not fit together.
ExitCode verify_command(const std::string& path) {
  constexpr int looks = 5;
  for (int look = 1;; ++look) {
    try {
      return verify(path);
    } catch (const Error& error) {
      if (!is_alive(path)) throw;
      if (look < looks) continue;
      fail(ExitCode::incomplete,
           "{}: is still running, and its files changed while they were compared; verify it again "
           "when it has ended ({})",
           path, error.what());
    }
  }
}

}  // namespace carousel
