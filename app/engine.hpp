// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The commands of the engine, where deck, layers, transports and files meet. Nothing else in
// Carousel knows all of them.

#include <Kokkos_Core.hpp>
#include <string>
#include <vector>

#include "app/launcher.hpp"
#include "app/run_clock.hpp"
#include "app/run_config.hpp"
#include "app/sample_arguments.hpp"
#include "app/start_text.hpp"
#include "comm/mpi_session.hpp"
#include "core/base/check.hpp"
#include "core/base/view.hpp"

namespace carousel {

struct EngineArguments {
  std::string command;                 // train, eval, predict or sample
  std::vector<std::string> operands;   // DECK, CHECKPOINT [DATASET], or CHECKPOINT DATASET OUT
  std::vector<std::string> overrides;  // table.key=value
  bool overwrite = false;
  bool as_trained = false;
  bool confusion = false;
  bool without_ema = false;
  std::string split = {};       // that eval looks at
  SampleArguments sample = {};  // but for the checkpoint
  double watchdog_seconds = 0;  // that the start of MPI may take; 0: for ever
};

/// What the front end hands over; Error(usage) for anything else.
[[nodiscard]] EngineArguments parse_engine_arguments(const std::vector<std::string>& words);

/// Runs one command and returns how it ended. `session` is null without a launcher.
[[nodiscard]] ExitCode run_engine(const EngineArguments& arguments, const Launcher& launcher,
                                  const MpiSession* session, const RunClock& clock);

[[nodiscard]] ExitCode train(const RunConfig& deck, bool overwrite, const Launcher& launcher,
                             const MpiSession* session, const RunClock& clock);
/// `dataset` is empty for the one of the training; the others as in EvalArguments.
[[nodiscard]] ExitCode evaluate(const std::string& checkpoint, const std::string& dataset,
                                const std::string& split, bool as_trained, bool confusion,
                                bool without_ema);

/// Collective. Writes the outputs for all samples of a data set, or for those of a split.
[[nodiscard]] ExitCode predict(const std::string& checkpoint, const std::string& dataset,
                               const std::string& output, const std::string& split,
                               bool without_ema, const Launcher& launcher,
                               const MpiSession* session);

/// Prints a text, on one device.
[[nodiscard]] ExitCode sample(const SampleArguments& arguments);

/// Settings for one process: the cores that its node can give each of its ranks, and its GPU.
[[nodiscard]] Kokkos::InitializationSettings kokkos_settings(const EngineConfig& config,
                                                             const Launcher& launcher,
                                                             const MpiSession* session);

/// Throws unless every thread that Kokkos shares work among does its part.
void check_threads(const ExecutionSpace& exec);

/// What the ranks of this node make of its cores, once Kokkos runs.
[[nodiscard]] NodeUse node_use(const ExecutionSpace& exec, const MpiSession* session);

}  // namespace carousel
