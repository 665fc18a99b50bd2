// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// `carousel train`, in numbered steps.

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <optional>
#include <string>
#include <thread>

#include "app/complaint.hpp"
#include "app/engine.hpp"
#include "app/heartbeat.hpp"
#include "app/provenance.hpp"
#include "app/ranks.hpp"
#include "app/requested_run.hpp"
#include "app/run_observer.hpp"
#include "comm/deadline.hpp"
#include "comm/local_transport.hpp"
#include "core/base/version.hpp"
#include "core/record/trace.hpp"
#include "core/state/checkpoint.hpp"
#include "layers/factory.hpp"

namespace carousel {
namespace {

/// Sends and receives that all devices together may have pending.
int pending_messages(const Schedule& schedule) {
  int sum = 0;
  for (int d = 0; d < schedule.devices(); ++d) sum += schedule.buffers(d).requests;
  return sum;
}

void check_processes(const PreparedRun& run, const MpiSession* session, bool local) {
  const int processes = session == nullptr ? 1 : session->size();
  const int wanted = local ? 1 : run.schedule.devices();
  if (processes != wanted)
    fail(ExitCode::usage, "the plan needs {} rank{}, but {} {} started; start it with {}", wanted,
         wanted == 1 ? "" : "s", processes, processes == 1 ? "was" : "were", wanted);
}

/// The devices of the plan that this process is.
std::vector<int> devices_here(const PreparedRun& run, const MpiSession* session, bool local) {
  if (session != nullptr && !local) return {session->rank()};
  std::vector<int> all(run.schedule.devices());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// The group of a checkpoint that has a tensor.
std::string group_of(const StateTensor& tensor, const OptimizerConfig& optimizer) {
  switch (tensor.part) {
    case StatePart::parameters:
      return "/parameters/";
    case StatePart::previous:
      return "/previous/";
    case StatePart::optimizer:
      return optimizer_group(optimizer_states(optimizer).at(tensor.state));
    case StatePart::buffers:
      return "/buffers/";
  }
  fail(ExitCode::internal, "no such part of a checkpoint");
}

// status.json is never older than twice that, whatever the training is at.
constexpr std::chrono::seconds status_pause{5};

constexpr const char* advice = "lower train.optimizer.learning_rate or look at the data";

/// Nobody can go on from numbers that are not finite, and no checkpoint of them is written.
void check_finite(const StateTensor& tensor, std::int64_t steps) {
  if (!std::ranges::all_of(tensor.values, [](real value) { return std::isfinite(value); }))
    fail(ExitCode::diverged, "{} has numbers that are not finite after step {}; {}",
         tensor.spec.name, steps - 1, advice);
}

/// Device 0 makes trace.json of what all devices have recorded.
void trace(const RunConfig& config, const Ranks& ranks) {
  ranks.together([&] {
    if (ranks.first()) write_trace(config.run.output);
  });
}

/// What all devices have learned becomes the newest checkpoint.
void save(const RunConfig& config, const PreparedRun& run, const Ranks& ranks, Trainer& trainer) {
  const std::int64_t steps = trainer.steps();
  std::optional<CheckpointWriter> checkpoint;
  const CheckpointPlace place{.step = steps,
                              .epoch = steps / trainer.agenda().steps_per_epoch,
                              .micro_batches = config.parallel.micro_batches,
                              .micro_batch_size = config.train.micro_batch_size};
  ranks.at_files([&] {
    if (ranks.first())
      checkpoint.emplace(provenance(config), place, checkpoint_size(run.model, saved_copies(run)));
  });
  std::optional<Error> error;
  trainer.collect([&](const StateTensor& tensor) {
    if (error) return;
    try {
      ranks.at_files([&] {
        if (tensor.part != StatePart::previous) check_finite(tensor, steps);
        checkpoint->add({group_of(tensor, config.train.optimizer) + tensor.spec.name,
                         tensor.spec.shape, tensor.values});
      });
    } catch (const Error& found) {
      error = found;  // the other devices are still sending
    }
  });
  ranks.together([&] {
    if (error) throw *error;
    if (checkpoint) checkpoint->save(config.run.output, config.checkpoint.keep);
  });
}

/// Trains with everything in place and says how it ended.
void train_to_the_end(const RunConfig& config, const PreparedRun& run, const Ranks& ranks,
                      Trainer& trainer, RunObserver& observer, StatusFile& status) {
  for (bool more = true; more;) {
    more = trainer.advance();
    ranks.together([&] { observer.publish(); });
    if (trainer.result().diverged_at < 0 && trainer.agenda().saves_after(trainer.steps()))
      save(config, run, ranks, trainer);
    // Behind the checkpoint, so that whatever ends an evaluation leaves what was learned. Finite
    // parameters may still give a test loss that is not; that ends the run, and they can be looked
    // at.
    if (trainer.evaluate_when_due()) ranks.together([&] { observer.publish_evaluation(); });
  }
  ranks.together([&] { observer.finish(); });
  trace(config, ranks);
  const TrainingResult& result = trainer.result();
  // The last that ranks do together: whoever is lost from here on misses nothing. All know of a
  // divergence and fail together; parameters are lost since that step, and a checkpoint of them
  // would only do harm.
  ranks.together([&] {
    if (result.diverged_at >= 0)
      fail(ExitCode::diverged,
           "the loss of step {} is not a finite number; all devices stopped after step {} (steps "
           "count from 0); {}",
           result.diverged_at, result.steps - 1, advice);
    if (ranks.first()) status.write({.state = RunState::done, .step = result.steps});
  });
  observer.say(fmt::format("done: {} steps, {}", result.steps, printable(config.run.output)));
}

}  // namespace

ExitCode train(const RunConfig& config, bool overwrite, const Launcher& launcher,
               const MpiSession* session, const RunClock& clock) {
  const Ranks ranks(session);
  ranks.check_same(build_info().git_hash + resolved_deck(config, false),
                   config.run.watchdog_seconds);
  const bool local = chosen_transport(config, launcher) == TransportKind::local;

  // From here on ranks wait for each other.
  StatusFile status(config.run.output);
  Witness witness(status);
  std::optional<Watchdog> watchdog;
  if (ranks.several() && config.run.watchdog_seconds > 0)
    watchdog.emplace(*session,
                     watchdog_spec(config.run.watchdog_seconds, session->rank(), ranks, witness));

  // What a training is made of outlives whatever ends it, until that is told.
  std::optional<Dataset> dataset;
  std::optional<PreparedRun> run;
  std::optional<Kokkos::ScopeGuard> kokkos;
  std::optional<ExecutionSpace> exec;
  std::optional<MpiGroups> groups;
  std::optional<LocalHub> hub;
  std::optional<RunObserver> observer;
  std::optional<Trainer> trainer;
  std::optional<Watched> watched;
  std::optional<Heartbeat> heartbeat;
  // No other rank knows of the failure. They hear of it first, since files may be what fails here;
  // those have their time for it, too.
  const auto end_alone = [&](ExitCode code, const char* cause) {
    // A call of MPI may fail before the watchdog hears which rank was lost.
    if (watchdog && code == ExitCode::peer_lost) watchdog->wait_for_cause();
    if (watchdog) watchdog->tell_failure(cause);
    // Several fail at once where a file that all read does; whoever comes later sees it told.
    if (watchdog)
      std::this_thread::sleep_for(std::chrono::milliseconds(100 * std::min(session->rank(), 10)));
    const std::string told =
        ranks.several() ? fmt::format("rank {}: {}", session->rank(), cause) : cause;
    const Deadline limit(watchdog ? config.run.watchdog_seconds : 0, [&] {
      complain(told);
      std::_Exit(static_cast<int>(code));
    });
    witness.write_failure(code, told);
  };
  try {
    // 1. The plan: data, model, stages, schedule, memory; the same on every rank.
    std::string fingerprint;  // of the data, which may be of this node
    ranks.together([&] {
      dataset.emplace(config.data_file);
      run.emplace(prepare_run(config, *dataset, chosen_transport(config, launcher)));
      check_batch_norm(config, *run);
      check_processes(*run, session, local);
      if (ranks.first()) check_run_folder(config.run.output, overwrite);
      fingerprint = std::to_string(dataset->fingerprint());
    });
    ranks.check_same(fingerprint, 0);

    // 2. The machine.
    ranks.together([&] {
      kokkos.emplace(kokkos_settings(config.engine, session));
      exec.emplace();
    });

    // 3. The devices of this process and where their messages meet. Only the groups are made with
    // others, so that a rank that cannot get its memory keeps nobody waiting.
    const std::vector<int> devices = devices_here(*run, session, local);
    const Clock seconds = [&clock] { return clock.seconds(); };
    if (local)
      hub.emplace(*exec, run->schedule.groups(), pending_messages(run->schedule), seconds);
    else
      groups.emplace(session->groups(run->schedule.groups()));
    const auto connect = [&](int device) -> std::unique_ptr<Transport> {
      if (local) return hub->transport(device);
      return session->transport(std::move(*groups), run->schedule.buffers(device).requests,
                                static_cast<std::size_t>(run->memory.largest_message), seconds);
    };
    ranks.together([&] {
      observer.emplace(config, *run, *dataset, devices, ranks, status);
      trainer.emplace(*exec,
                      TrainerSpec{.model = run->model,
                                  .partition = run->partition,
                                  .schedule = run->schedule,
                                  .memory = run->memory,
                                  .dataset = *dataset,
                                  .train = config.train,
                                  .checkpoint = config.checkpoint,
                                  .profile = config.profile,
                                  .seed = config.run.seed,
                                  .devices = devices,
                                  .layers = make_layer,
                                  .transport = connect,
                                  .seconds = seconds},
                      *observer);
    });

    // 4. The run folder; until here an earlier run in it is untouched.
    witness.expect_folder(ranks.of_first(this_process()));
    ranks.together([&] {
      if (ranks.first()) create_run_folder(config.run.output, overwrite);
    });
    witness.owns_folder();
    watched.emplace(witness, trainer->device(devices.front()).activity());
    if (ranks.first()) heartbeat.emplace(status_pause, [&witness] { witness.write_progress(); });
    ranks.together([&] { observer->begin(*exec, *trainer); });
    observer->introduce(node_use(*exec, session), session == nullptr ? 1 : session->size());

    // 5. Training, checkpoints and the last word.
    train_to_the_end(config, *run, ranks, *trainer, *observer, status);
    watchdog.reset();
    return ExitCode::done;
  } catch (const AgreedError& error) {
    ranks.at_files([&] {
      if (ranks.first()) witness.write_failure(error.code(), error.what());
    });
    throw;
  } catch (const Error& error) {
    end_alone(error.code(), error.what());
    throw;
  } catch (const std::exception& error) {
    end_alone(ExitCode::internal, error.what());
    throw;
  }
}

}  // namespace carousel
