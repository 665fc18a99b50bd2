// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a deck asks for, as typed structs, the same in the front end and in the engine. Whether the
// model fits the data or the plan fits the machine is not decided here.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/deck_keys.hpp"
#include "core/base/check.hpp"
#include "core/base/words.hpp"
#include "core/data/config.hpp"
#include "core/model/model.hpp"
#include "core/plan/engine_config.hpp"
#include "core/plan/machine.hpp"
#include "core/plan/rule.hpp"
#include "core/train/config.hpp"

namespace carousel {

enum class TransportKind : std::uint8_t { automatic, local, mpi, nccl, rounds };
constexpr auto words_of(TransportKind) {
  return all_words<TransportKind>("auto", "local", "mpi", "nccl", "rounds");
}

inline constexpr const char* resume_off = "off";
inline constexpr const char* resume_auto = "auto";

/// `[run]`.
struct RunTable {
  std::string name;
  std::uint64_t seed = 1;
  std::string output;               // folder, relative to where the command runs
  double watchdog_seconds = 300;    // 0: none
  std::string resume = resume_off;  // or "auto", or the path of a checkpoint or of a run folder
  std::string wall_clock;           // "23:30:00"; empty: for ever

  [[nodiscard]] static std::vector<Row<RunTable>> rows();

  [[nodiscard]] bool resumes_from_path() const {
    return resume != resume_off && resume != resume_auto;
  }
};

struct RunConfig {
  RunTable run;
  ModelConfig model;
  TaskConfig task;
  DataConfig data;
  ParallelConfig parallel;
  TransportKind transport = TransportKind::automatic;
  bool gpu_aware = false;  // MPI is given memory of GPUs
  TrainConfig train;
  EngineConfig engine;
  CheckpointConfig checkpoint;
  ProfileConfig profile;
  std::optional<Machine> machine;  // to predict step times for
  DeckKeys deck;                   // where all this comes from
  std::vector<std::string> notes;  // keys of the deck that the command line made void, a line each

  /// Of [parallel]: how messages travel.
  [[nodiscard]] static std::vector<Row<RunConfig>> transport_rows();
};

/// Reads and checks a deck with overrides `table.key=value` and `table.key=`. A key of the deck
/// that an override deprives of its effect is dropped with a note. A run folder stands for the deck
/// of its run, which is then gone on with. Throws Error(usage) with the place in the deck, or
/// Error(input_output).
[[nodiscard]] RunConfig load_run_config(const std::string& path,
                                        const std::vector<std::string>& overrides);
/// The same for text that lies in memory, such as the deck inside a checkpoint.
[[nodiscard]] RunConfig parse_run_config(std::string_view text, const std::string& path,
                                         const std::vector<std::string>& overrides);

/// The deck with all defaults, which reads back as the same deck from any folder. With `origins`,
/// comments say where each value comes from.
[[nodiscard]] std::string resolved_deck(const RunConfig& config, bool origins = true);

/// Seconds of "23:30:00" or, with days before, "2-23:30:00", as Slurm writes them; none for
/// anything else.
[[nodiscard]] std::optional<double> wall_clock_seconds(const std::string& text);

/// Where a key is written: "inputs/digits.toml:7:3", or the deck alone for a default.
[[nodiscard]] std::string where(const RunConfig& config, std::string_view key);

/// Puts the place in the deck before a message that begins with the name of a key.
[[nodiscard]] std::string located(const RunConfig& config, const std::string& message);

/// Runs `function` on what a file has stored: what is a mistake of the user in a deck is a damaged
/// file there, not one of whoever reads it. `prefix` comes before the message.
template <class Function>
auto as_bad_data(Function&& function, const std::string& prefix = "") {
  try {
    return std::forward<Function>(function)();
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) throw;
    fail(ExitCode::bad_data, "{}{}", prefix, error.what());
  }
}

/// Runs `function`; mistakes of the user that it reports get their place in the deck.
template <class Function>
decltype(auto) with_locations(const RunConfig& config, Function&& function) {
  try {
    return std::forward<Function>(function)();
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) throw;
    throw Error(error.code(), located(config, error.what()));
  }
}

}  // namespace carousel
