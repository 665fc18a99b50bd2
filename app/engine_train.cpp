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
#include "app/input_rules.hpp"
#include "app/pauses.hpp"
#include "app/provenance.hpp"
#include "app/ranks.hpp"
#include "app/requested_run.hpp"
#include "app/run_observer.hpp"
#include "app/run_start.hpp"
#include "app/state_files.hpp"
#include "comm/deadline.hpp"
#include "comm/local_transport.hpp"
#include "comm/nccl_session.hpp"
#include "comm/rounds_transport.hpp"
#include "core/base/version.hpp"
#include "core/plan/account.hpp"
#include "core/record/run_folder.hpp"
#include "core/record/trace.hpp"
#include "core/state/checkpoint_writer.hpp"
#include "layers/factory.hpp"
#include "layers/vendor/vendor.hpp"

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

// status.json is never older than twice that, whatever the training is at.
constexpr std::chrono::seconds status_pause{5};

// What devices may take to end after a failure.
constexpr double closing_time = 5;

void check_mpi(const RunConfig& config) {
  if (!config.gpu_aware || MpiSession::takes_gpu_memory()) return;
  fail(ExitCode::usage,
       "{}: parallel.gpu_aware = true: this MPI library does not say that it takes memory of GPUs; "
       "leave it out, or load one that does",
       where(config, "parallel.gpu_aware"));
}

/// NCCL takes one rank per GPU.
void check_own_gpu(const ExecutionSpace& exec, const MpiSession& session) {
  const NodeUse node = node_use(exec, &session);
  if (node.gpu_ranks <= 1) return;
  fail(ExitCode::usage,
       "parallel.transport = \"nccl\": {} ranks of this node share GPU {}, and NCCL takes one; "
       "start as many ranks on a node as it has GPUs, or set it to \"mpi\"",
       node.gpu_ranks, node.gpu);
}

/// Device 0 makes trace.json of what all devices have recorded.
void trace(const RunConfig& config, const Ranks& ranks) {
  ranks.together([&] {
    if (ranks.first()) write_trace(config.run.output);
  });
}

/// Ranks write into the files of the first one. What that one made, others may see later: network
/// file systems let names that were not there be so for half a minute.
void check_shared(const StatusFile& status, const std::string& writer, const RunTable& run) {
  const double longest = run.watchdog_seconds > 0 ? std::min(30.0, run.watchdog_seconds / 2) : 30;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(longest);
  while (!status.is_of(writer)) {
    if (std::chrono::steady_clock::now() > end)
      fail(ExitCode::usage,
           "run.output = {} is not the folder that rank 0 made; give one that all ranks share",
           printable(run.output));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

/// What a training is made of, once it stands; borrowed.
struct Training {
  const RunConfig& config;
  const PreparedRun& run;
  TrainingData data;
  const Ranks& ranks;
  Trainer& trainer;
  RunObserver& observer;
  StatusFile& status;
  Pauses& pauses;
  std::int64_t saved = 0;  // after how many steps the newest checkpoint in the folder was made

  void evaluate() const;
  [[nodiscard]] bool is_out_of_patience() const;
  void save();
  [[nodiscard]] bool train();
  [[nodiscard]] ExitCode finish(bool stopped) const;
};

/// Evaluates where that is due.
void Training::evaluate() const {
  if (!trainer.evaluate_when_due()) return;
  ranks.together([&] {
    observer.publish_evaluation();
    if (ranks.first() && config.checkpoint.keep_best && observer.is_best())
      make_best(config.run.output, trainer.steps());
  });
}

/// What rank 0 says, on all ranks.
bool Training::is_out_of_patience() const {
  if (config.train.patience == 0) return false;
  std::uint64_t ends = ranks.first() && observer.is_out_of_patience() ? 1 : 0;
  ranks.sum(std::span(&ends, 1));
  return ends > 0;
}

/// Makes a checkpoint, unless it is there.
void Training::save() {
  if (saved == trainer.steps()) return;
  save_checkpoint(config, run, data, ranks, trainer);
  saved = trainer.steps();
  pauses.saved();
}

/// Trains until all is done, or evaluations get no better, or somebody wants it to stop; returns
/// whether it was stopped.
bool Training::train() {
  while (trainer.steps() < trainer.agenda().total_steps) {
    if (is_out_of_patience()) {
      save();
      return false;
    }
    // Also of what came while nobody trained.
    if (pauses.decide(ranks).stop) {
      save();
      return true;
    }
    const bool more = trainer.advance();
    ranks.together([&] { observer.publish(); });
    if (trainer.result().diverged_at >= 0) return false;
    const Pauses::Decision pause = pauses.decide(ranks);
    const bool stops = pause.stop && more;
    if (stops || pause.save || trainer.agenda().saves_after(trainer.steps())) save();
    if (stops) return true;
    // Behind the checkpoint, so that whatever ends an evaluation leaves what was learned. Finite
    // parameters may still give a test loss that is not; that ends the run, and they can be looked
    // at.
    evaluate();
  }
  return false;
}

/// Closes the files and says how the training ended.
ExitCode Training::finish(bool stopped) const {
  ranks.together([&] { observer.finish(); });
  trace(config, ranks);
  const TrainingResult& result = trainer.result();
  const std::string folder = printable(config.run.output);
  std::string reason = pauses.stop_reason();
  if (reason.empty()) reason = "a wish of another rank";
  // The last that ranks do together: whoever is lost from here on misses nothing. All know of a
  // divergence and fail together; parameters are lost since that step, and a checkpoint of them
  // would only do harm.
  ranks.together([&] {
    if (result.diverged_at >= 0)
      fail(ExitCode::diverged,
           "the loss of step {} is not a finite number; all devices stopped after step {} (steps "
           "count from 0); {}",
           result.diverged_at, result.steps - 1, divergence_advice);
    if (!ranks.first()) return;
    if (stopped)
      status.write({.state = RunState::stopped,
                    .exit_code = static_cast<int>(ExitCode::requeue),
                    .cause = reason,
                    .step = result.steps});
    else
      status.write({.state = RunState::done, .step = result.steps});
  });
  if (!stopped) {
    const std::int64_t total = trainer.agenda().total_steps;
    if (result.steps < total)
      observer.say(fmt::format("train.patience: {} evaluations in a row were no better",
                               config.train.patience));
    observer.say(fmt::format("done: {}{} steps, {}", result.steps,
                             result.steps < total ? fmt::format(" of {}", total) : "", folder));
    return ExitCode::done;
  }
  observer.say(fmt::format("stopped by {} after {} of {} steps; to go on: carousel train {}",
                           reason, result.steps, trainer.agenda().total_steps, folder));
  return ExitCode::requeue;
}

}  // namespace

ExitCode train(const RunConfig& deck, bool overwrite, const Launcher& launcher,
               const MpiSession* session, const RunClock& clock) {
  RunConfig config = deck;
  const Ranks ranks(session);
  ranks.check_same(build_info().git_hash + resolved_deck(config, false),
                   config.run.watchdog_seconds);
  const TransportKind transport = chosen_transport(config, launcher);
  const bool local = transport == TransportKind::local;

  // From here on ranks wait for each other.
  StatusFile status(config.run.output);
  Witness witness(status);
  std::optional<Watchdog> watchdog;
  if (ranks.several() && config.run.watchdog_seconds > 0)
    watchdog.emplace(*session,
                     watchdog_spec(config.run.watchdog_seconds, session->rank(), ranks, witness));

  // What a training is made of outlives whatever ends it, until that is told.
  std::unique_ptr<DataSet> dataset;
  std::unique_ptr<Source> source;
  std::optional<PreparedRun> run;
  RunStart start;
  std::optional<Checkpoint> checkpoint;
  std::optional<Checkpoint> weights;
  std::optional<Deadline> unwinding;  // a device that waits for a lost one cannot be closed
  std::optional<Kokkos::ScopeGuard> kokkos;
  std::optional<ExecutionSpace> exec;
  std::optional<MpiGroups> groups;
  std::optional<LocalHub> hub;
  RoundsHub rounds;
  std::optional<NcclSession> nccl;
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
    if (nccl)
      unwinding.emplace(closing_time, [told, code] {
        complain(told);
        std::_Exit(static_cast<int>(code));
      });
  };
  try {
    // 1. The plan: data, model, stages, schedule, memory; the same on every rank.
    TrainingData data;  // which may be of this node
    ranks.together([&] {
      dataset = open_data(config);
      run.emplace(prepare_run(config, *dataset, transport));
      check_batch_norm(config, *run);
      check_processes(*run, session, local);
      data.fingerprint = dataset->fingerprint();
      if (ranks.first()) start = find_start(config, *dataset, data.fingerprint, overwrite);
    });
    ranks.check_same(std::to_string(data.fingerprint), 0);
    start = shared_start(start, config, ranks);
    if (start.done) {
      if (ranks.first())
        note(fmt::format("{}: nothing is left to train, {} steps are done{}", config.run.output,
                         start.step,
                         start.out_of_patience ? "; a larger train.patience goes on" : ""));
      watchdog.reset();
      return ExitCode::done;
    }
    ranks.together([&] {
      if (!start.checkpoint.empty()) {
        checkpoint.emplace(start.checkpoint);
        keep_statistics(config, *checkpoint);
      } else if (!config.train.start.empty()) {
        weights.emplace(config.train.start);
        const std::vector<std::string> remarks =
            begin_with_weights(config, *dataset, weights->inputs(), weights->path(), run->model);
        for (const std::string& remark : remarks)
          if (ranks.first()) note(remark);
      }
      data.inputs = inputs_of(config, *dataset);
    });

    // 2. The machine.
    ranks.together([&] {
      kokkos.emplace(with_locations(
          config, [&] { return kokkos_settings(config.engine, launcher, session); }));
      exec.emplace();
      check_threads(*exec);
    });

    // 3. The devices of this process and where their messages meet. Only the groups are made with
    // others, so that a rank that cannot get its memory keeps nobody waiting.
    const std::vector<int> devices = devices_here(*run, session, local);
    const Clock seconds = [&clock, before = start.seconds] { return before + clock.seconds(); };
    Pauses pauses(config, [&clock] { return clock.seconds(); });
    const auto requests = [&](int device) { return run->schedule.buffers(device).requests; };
    const auto connect = [&](int device) {
      std::unique_ptr<Transport> made =
          local ? hub->transport(device)
                : session->transport(std::move(*groups), requests(device), seconds);
      if (!run->schedule.spec().rounds) return made;
      return rounds.transport(std::move(made), requests(device));
    };
    std::function<std::unique_ptr<CommunicationQueue>(int)> queue;
    std::optional<WatchedFailures> failures;
    if (local) {
      hub.emplace(*exec, run->schedule.groups(), pending_messages(run->schedule), seconds);
    } else if (transport == TransportKind::nccl) {
      const bool cuts = !run->schedule.spec().pieces.empty();
      ranks.together([&] {
        check_own_gpu(*exec, *session);
        nccl.emplace(*session, *exec,
                     NcclSession::Spec{.groups = run->schedule.groups(),
                                       .peers = peers_of(run->schedule, session->rank()),
                                       .nodes = cuts ? session->nodes() : std::vector<int>()});
      });
      failures.emplace(witness, [&nccl] { return nccl->failure(); });
      queue = [&](int device) { return nccl->queue(requests(device), seconds); };
    } else {
      ranks.together([&] { check_mpi(config); });
      groups.emplace(session->groups(run->schedule.groups()));
    }
    ranks.together([&] {
      observer.emplace(config, *run, *dataset, devices, ranks, status, start);
      source = dataset->source(config.data, config.run.seed);
      const DataStatistics statistics = dataset->statistics(config.data);
      trainer.emplace(
          *exec,
          TrainerSpec{
              .model = run->model,
              .partition = run->partition,
              .schedule = run->schedule,
              .memory = run->memory,
              .source = *source,
              .mean = statistics.mean,
              .std = statistics.std,
              .train = config.train,
              .checkpoint = config.checkpoint,
              .profile = config.profile,
              .seed = config.run.seed,
              .workers = config.data.workers,
              .devices = devices,
              .beginning = beginning_of(config, run->model, checkpoint ? &*checkpoint : nullptr,
                                        weights ? &*weights : nullptr),
              .wants_pause = [&pauses] { return pauses.wanted(); },
              .layers = make_layer,
              .vendor = vendor::handles_for(run->basis.vendor),
              .transport = connect,
              .communication = queue,
              .seconds = seconds,
              // Copies of messages wait for a GPU, for which the thread that computes has no time.
              .helping = run->basis.staged_messages ? Helping::alone : Helping::helped,
              // What a GPU's libraries make at a first call must not meet messages.
              .rehearses = !runs_on_host},
          *observer);
    });

    // 4. The run folder; until here an earlier run in it is untouched.
    const std::string writer = ranks.of_first(this_process());
    witness.expect_folder(writer);
    ranks.together([&] {
      if (!ranks.first()) return;
      if (start.part > 0) {
        continue_run_folder(config.run.output, start.part);
        forget_later(config.run.output, start.step);
        if (config.checkpoint.keep_best && start.best_step >= 0)
          make_best(config.run.output, start.best_step);
      } else {
        create_run_folder(config.run.output, start.replaces);
      }
    });
    ranks.together([&] { check_shared(status, writer, config.run); });
    witness.owns_folder();
    watched.emplace(witness, trainer->device(devices.front()).activity());
    if (ranks.first()) heartbeat.emplace(status_pause, [&witness] { witness.write_progress(); });
    const NodeUse node = node_use(*exec, session);
    ranks.together([&] { observer->begin(*exec, *trainer, node); });
    observer->introduce(node, session == nullptr ? 1 : session->size());

    // 5. Training, checkpoints and the last word.
    Training training{config, *run, data, ranks, *trainer, *observer, status, pauses};
    // A run that begins with another one's has none of its own.
    if (start.part == 0 && start.step > 0) training.saved = -1;
    if (start.part > 0) training.saved = start.step;
    if (start.evaluates) training.evaluate();
    const ExitCode code = training.finish(training.train());
    watchdog.reset();
    failures.reset();
    if (nccl) nccl->close();
    return code;
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
