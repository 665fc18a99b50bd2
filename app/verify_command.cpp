// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// `carousel verify`: makes the plan of a finished run again from what the run file holds, and
// compares. Needs neither the data set nor the machine it ran on.

#include <fmt/core.h>

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

/// What the plan of the run is made from; throws if it cannot be made here.
PlanBasis basis_of(const RunSummary& run) {
  if (!run.plan)
    fail(is_done(run) ? ExitCode::bad_data : ExitCode::incomplete,
         "{}: has no /plan; the run ended before its first step", run.file);
  if (!run.plan->basis)
    fail(ExitCode::bad_data,
         "{}: has no /plan/basis; an earlier Carousel did not write it; train again", run.file);
  const PlanBasis& basis = *run.plan->basis;
  if (basis.real_bytes != 4 && basis.real_bytes != 8)
    fail(ExitCode::bad_data, "{}: attribute real_bytes of /plan/basis is {}", run.file,
         basis.real_bytes);
  if (basis.real_bytes != int{sizeof(real)})
    fail(ExitCode::usage,
         "{}: was made with numbers of {} bytes, and this program plans for {}; use a build of "
         "that precision",
         run.folder, basis.real_bytes, sizeof(real));
  return basis;
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
  report += line("plan", "all of it follows from the deck");
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
  const PlanBasis basis = basis_of(run);
  const RunConfig config =
      as_bad_data([&] { return parse_run_config(run.info.deck, run.file + ", deck", {}); });
  const PreparedRun prepared =
      as_bad_data([&] { return prepare_run(config, basis); }, run.file + ": deck or /plan/basis: ");

  const TrainConfig& train = config.train;
  const std::int64_t per_epoch =
      TrainingOrder{basis.train_samples, config.parallel.micro_batches, train.micro_batch_size}
          .steps_per_epoch();
  const Agenda agenda = agenda_of(train, config.checkpoint, per_epoch);
  const Slices profiled(config.profile.steps);
  const Expectation expected{
      .model = prepared.model,
      .schedule = prepared.schedule,
      .memory = prepared.memory,
      .plan = plan_record(prepared),
      .seed = config.run.seed,
      .micro_batch_size = train.micro_batch_size,
      .optimizer_states = optimizer_states(train.optimizer),
      .agenda = agenda,
      .profiled = [&](std::int64_t step) { return profiled.contains(step, agenda.total_steps); },
      .learning_rate =
          [&](std::int64_t step) {
            return learning_rate(train.schedule, train.optimizer.learning_rate, step, per_epoch,
                                 agenda.total_steps);
          }};
  const Verified verified = verify_run(run, expected);
  fmt::print("{}", describe(run, expected.plan, verified));
  if (is_done(run)) {
    fmt::print("All checks passed.\n");
    return ExitCode::done;
  }
  fmt::print("What it wrote passed all checks, but the run is incomplete, {} of {} steps:\n{}\n",
             verified.steps, agenda.total_steps, reason(run));
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
