// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// `carousel train`, in numbered steps.

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <system_error>

#include "app/complaint.hpp"
#include "app/engine.hpp"
#include "app/prepared_run.hpp"
#include "app/provenance.hpp"
#include "app/run_observer.hpp"
#include "comm/local_transport.hpp"
#include "comm/watchdog.hpp"
#include "core/base/version.hpp"
#include "core/io/checkpoint.hpp"
#include "core/io/trace.hpp"
#include "layers/factory.hpp"

namespace carousel {
namespace {

/// Runs an action on all ranks and fails on all when one fails; alone, just runs it.
template <class Action>
void together(const MpiSession* session, Action&& action) {
  const auto told = [&] {
    try {
      action();
    } catch (const std::system_error& error) {
      fail(ExitCode::input_output, "{}", error.what());
    }
  };
  if (session == nullptr)
    told();
  else
    session->together(told);
}

/// Sends and receives that all devices together may have pending.
int pending_messages(const Schedule& schedule) {
  int sum = 0;
  for (int d = 0; d < schedule.devices(); ++d) sum += schedule.buffers(d).requests;
  return sum;
}

/// Makes the transport of one device.
std::function<std::unique_ptr<Transport>(int)> transports(const PreparedRun& run,
                                                          const MpiSession* session, bool local,
                                                          LocalHub& hub, const Clock& clock) {
  if (local) return [&hub](int device) { return hub.transport(device); };
  return [&run, session, clock](int device) {
    return session->transport(run.schedule.groups(), run.schedule.buffers(device).requests,
                              static_cast<std::size_t>(run.memory.largest_message), clock);
  };
}

/// Ranks that were given different decks would wait for messages that nobody sends.
void check_agreement(const RunConfig& config, const PreparedRun& run, const MpiSession* session) {
  if (session == nullptr) return;
  std::string text = build_info().git_hash + config.deck.to_toml(false);
  if (!config.schedule_file.empty()) {
    for (const auto& list : run.schedule.lists({0, run.schedule.period_steps()}))
      for (const Action& action : list) text += to_string(action);
  }
  const auto mine = std::hash<std::string>()(text);
  auto of_first = mine;
  session->from_first(std::as_writable_bytes(std::span(&of_first, 1)));
  session->together([&] {
    if (mine != of_first)
      fail(ExitCode::usage,
           "this rank was given another deck, override, schedule or version of the program than "
           "rank 0; start all with the same");
  });
}

std::vector<NamedTensor> checkpoint_tensors(const Snapshot& snapshot) {
  std::vector<NamedTensor> tensors;
  const auto append = [&](const std::string& group, const std::vector<HostTensor>& from) {
    for (const HostTensor& tensor : from)
      tensors.push_back({group + tensor.name, tensor.shape, tensor.values});
  };
  append("/parameters/", snapshot.parameters);
  append("/previous/", snapshot.previous);
  append("/optimizer/momentum/", snapshot.momentum);
  append("/buffers/", snapshot.buffers);
  return tensors;
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

/// Nobody can go on from numbers that are not finite, and no checkpoint of them is written.
void check_finite(const Snapshot& snapshot, const std::optional<EvaluationRecord>& evaluation) {
  constexpr const char* advice = "lower train.optimizer.learning_rate or look at the data";
  for (const auto* tensors : {&snapshot.parameters, &snapshot.momentum, &snapshot.buffers}) {
    for (const HostTensor& tensor : *tensors) {
      if (!std::ranges::all_of(tensor.values, [](real value) { return std::isfinite(value); }))
        fail(ExitCode::diverged, "{} has numbers that are not finite after the last step; {}",
             tensor.name, advice);
    }
  }
  if (evaluation && !std::isfinite(evaluation->loss))
    fail(ExitCode::diverged, "the test loss is not a finite number after the last step; {}",
         advice);
}

/// What device 0 has learned becomes the run's last checkpoint.
void save(const RunConfig& config, const Trainer& trainer, const Snapshot& snapshot) {
  const CheckpointPlace place{.step = snapshot.step,
                              .epoch = snapshot.step / trainer.steps_per_epoch(),
                              .micro_batches = config.parallel.micro_batches,
                              .micro_batch_size = config.train.micro_batch_size};
  save_checkpoint(config.run.output, provenance(config), place, checkpoint_tensors(snapshot));
}

/// Device 0 makes trace.json of what all devices have recorded.
void trace(const RunConfig& config, const MpiSession* session) {
  const bool first = session == nullptr || session->rank() == 0;
  together(session, [] {});  // every rank has left its file
  together(session, [&] {
    if (first) write_trace(config.run.output);
  });
}

/// Trains with everything in place and says how it ended.
void train_to_the_end(const RunConfig& config, const MpiSession* session, Trainer& trainer,
                      RunObserver& observer, StatusFile& status) {
  const bool first = session == nullptr || session->rank() == 0;
  const TrainingResult result = trainer.run();
  if (result.diverged_at >= 0) {
    trace(config, session);
    // All ranks know it and fail together. Parameters are lost since that step; a checkpoint of
    // them would only do harm.
    together(session, [&] {
      fail(ExitCode::diverged,
           "the loss of step {} is not a finite number; all devices stopped after step {} (steps "
           "count from 0); lower train.optimizer.learning_rate or look at the data",
           result.diverged_at, result.steps - 1);
    });
  }
  const Snapshot snapshot = trainer.snapshot();
  together(session, [&] {
    if (!first) return;
    check_finite(snapshot, observer.last_evaluation());
    save(config, trainer, snapshot);
  });
  trace(config, session);
  if (!first) return;
  status.write({.state = RunState::done, .step = result.steps});
  observer.say(fmt::format("done: {} steps, {}", result.steps, printable(config.run.output)));
}

/// The last word of a run that failed, by rank 0 or by the rank that alone knows of it.
void write_failure(StatusFile& status, ExitCode code, const char* cause, std::int64_t step) {
  try {
    status.write({.state = code == ExitCode::diverged ? RunState::diverged : RunState::failed,
                  .exit_code = static_cast<int>(code),
                  .cause = printable(cause),
                  .step = step});
  } catch (const Error&) {
    // The cause itself is told on the terminal; a second failure would only hide it.
  }
}

/// Says why this rank ends and what it was doing; called by the watchdog's thread.
void say_last_words(StatusFile& status, int rank, const Activity& activity,
                    const std::string& cause, bool writes) {
  complain(fmt::format("rank {}: {}; {}", rank, cause, activity.text()));
  if (writes)
    write_failure(status, ExitCode::peer_lost, cause.c_str(), activity.step());
  else
    status.close();  // the lost rank 0, should it come back, has no more to tell
}

}  // namespace

ExitCode train(const RunConfig& config, bool overwrite, const Launcher& launcher,
               const MpiSession* session, const RunClock& clock) {
  const bool first = session == nullptr || session->rank() == 0;
  const bool local = chosen_transport(config, launcher) == TransportKind::local;

  // 1. The plan: data, model, stages, schedule, memory; the same on every rank.
  std::optional<Dataset> dataset;
  std::optional<PreparedRun> run;
  Kokkos::InitializationSettings settings;
  together(session, [&] {
    dataset.emplace(config.data_file);
    run.emplace(prepare_run(config, *dataset, chosen_transport(config, launcher)));
    check_batch_norm(config, *run);
    check_processes(*run, session, local);
    if (first) check_run_folder(config.run.output, overwrite);
    settings = kokkos_settings(config.engine, session);
  });

  check_agreement(config, *run, session);

  // 2. The machine.
  const Kokkos::ScopeGuard kokkos(settings);
  const ExecutionSpace exec;

  // 3. The devices of this process and where their messages meet.
  const std::vector<int> devices = devices_here(*run, session, local);
  const Clock seconds = [&clock] { return clock.seconds(); };
  LocalHub hub(exec, run->schedule.groups(), pending_messages(run->schedule), seconds);
  StatusFile status(config.run.output);
  std::optional<RunObserver> observer;
  std::optional<Trainer> trainer;
  together(session, [&] {
    observer.emplace(config, *run, *dataset, devices, status);
    trainer.emplace(exec,
                    TrainerSpec{.model = run->model,
                                .partition = run->partition,
                                .schedule = run->schedule,
                                .memory = run->memory,
                                .dataset = *dataset,
                                .train = config.train,
                                .profile = config.profile,
                                .seed = config.run.seed,
                                .devices = devices,
                                .layers = make_layer,
                                .transport = transports(*run, session, local, hub, seconds),
                                .seconds = seconds},
                    *observer);
  });

  // 4. The run folder; until here an earlier run in it is untouched.
  together(session, [&] {
    if (first) create_run_folder(config.run.output, overwrite);
  });
  try {
    together(session, [&] {
      if (first) status.write({});
      observer->begin(exec, *trainer);
    });

    // From here on ranks wait for each other.
    std::optional<Watchdog> watchdog;
    if (session != nullptr && session->size() > 1 && config.run.watchdog_seconds > 0) {
      const Activity& activity = trainer->device(session->rank()).activity();
      watchdog.emplace(*session,
                       WatchdogSpec{.seconds = config.run.watchdog_seconds,
                                    .progress = [&activity] { return activity.count(); },
                                    .at_files = [&activity] { return !activity.at_action(); },
                                    .last_words =
                                        [&, session](const std::string& cause, bool writes) {
                                          say_last_words(status, session->rank(), activity, cause,
                                                         writes);
                                        }});
    }

    // 5. Training, the last checkpoint and the last word.
    train_to_the_end(config, session, *trainer, *observer, status);
    return ExitCode::done;
  } catch (const AgreedError& error) {
    if (first) write_failure(status, error.code(), error.what(), trainer->steps());
    throw;
  } catch (const Error& error) {
    write_failure(status, error.code(), error.what(), trainer->steps());
    throw;
  } catch (const std::exception& error) {
    write_failure(status, ExitCode::internal, error.what(), trainer->steps());
    throw;
  }
}

}  // namespace carousel
