// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/run_config.hpp"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <system_error>

#include "app/deck_reader.hpp"
#include "app/schema.hpp"
#include "app/toml_text.hpp"
#include "core/deck/row.hpp"
#include "core/record/run_reader.hpp"

namespace carousel {
namespace {

namespace fs = std::filesystem;

/// The configuration with paths that lead to the same files from any folder.
RunConfig from_anywhere(const RunConfig& config) {
  RunConfig moved = config;
  for (std::string* path : {&moved.data.file, &moved.data.tokens})
    if (!path->empty()) *path = fs::absolute(*path).string();
  for (auto* paths : {&moved.data.files, &moved.data.validation_files, &moved.data.test_files})
    for (std::string& path : *paths) path = fs::absolute(path).string();
  if (config.run.resumes_from_path()) moved.run.resume = fs::absolute(config.run.resume).string();
  if (!config.train.start.empty()) moved.train.start = fs::absolute(config.train.start).string();
  return moved;
}

/// What is written into files must be read from them again.
void check_is_text(const RunConfig& config) {
  const RunConfig moved = from_anywhere(config);
  for (const std::string& key : key_names()) {
    if (!config.deck.has(key)) continue;
    const DeckValue value = find_key(key)->read(moved);
    const auto* text = std::get_if<std::string>(&value.data);
    if (text == nullptr || is_utf8(*text)) continue;
    fail(ExitCode::usage,
         "{}: {} = {} is not UTF-8, so that no file of a run could tell it; rename what it names, "
         "or reach it by a link",
         where(config, key), key, in_quotes(*text));
  }
}

/// The deck of the run in a folder, which goes on there unless the overrides say otherwise.
Deck deck_of_run(const std::string& folder, std::vector<std::string> overrides) {
  if (!fs::exists(fs::path(folder) / "run.h5"))
    fail(ExitCode::usage, "{}: is a folder without a run; name a deck, or the folder of a run",
         folder);
  const auto unless_given = [&](const std::string& key, const std::string& value) {
    const std::string prefix = key + "=";
    const auto gives = [&](const std::string& text) { return text.starts_with(prefix); };
    if (std::ranges::none_of(overrides, gives))
      overrides.push_back(prefix + (is_utf8(value) ? to_toml(DeckValue{value}) : value));
  };
  unless_given("run.output", folder);
  unless_given("run.resume", resume_auto);
  return parse_deck(read_deck_of(folder), folder + "/run.h5, deck", overrides);
}

}  // namespace

std::optional<double> wall_clock_seconds(const std::string& text) {
  static const std::regex form(R"((?:(\d{1,4})-)?(\d{1,5}):([0-5]\d):([0-5]\d))");
  std::smatch parts;
  if (!std::regex_match(text, parts, form)) return {};
  const double days = parts[1].matched ? std::stod(parts[1]) : 0;
  return ((days * 24 + std::stod(parts[2])) * 60 + std::stod(parts[3])) * 60 + std::stod(parts[4]);
}

RunConfig load_run_config(const std::string& path, const std::vector<std::string>& overrides) {
  std::error_code unknown;  // the deck itself will tell
  RunConfig config = fs::is_directory(path, unknown) ? read_config(deck_of_run(path, overrides))
                                                     : read_config(read_deck(path, overrides));
  check_is_text(config);
  if (const std::size_t bytes = resolved_deck(config).size(); bytes > max_deck_bytes)
    fail(ExitCode::usage, "{}: with all defaults the deck has {} bytes; a deck may have at most {}",
         path, bytes, max_deck_bytes);
  return config;
}

RunConfig parse_run_config(std::string_view text, const std::string& path,
                           const std::vector<std::string>& overrides) {
  return read_config(parse_deck(text, path, overrides));
}

std::string resolved_deck(const RunConfig& config, bool origins) {
  // The resolved deck lies in other folders than the deck.
  const RunConfig moved = from_anywhere(config);
  std::string toml;
  for (const TableSpec& table : deck_tables()) {
    if (table.optional && !config.machine) continue;
    toml += fmt::format("{}[{}]\n", toml.empty() ? "" : "\n", table.name);
    for (const KeySpec& spec : table.keys) {
      const std::string key = spec.key();
      if (!config.deck.has(key)) continue;
      const std::string line = fmt::format("{} = {}", spec.name, to_toml(spec.read(moved)));
      std::string origin = config.deck.given(key) ? printable(config.deck.where(key)) : "default";
      if (!is_utf8(origin)) origin = "a deck whose path is not UTF-8";
      toml += origins ? fmt::format("{:<40}  # {}\n", line, origin) : line + "\n";
    }
  }
  return toml;
}

std::string where(const RunConfig& config, std::string_view key) {
  return config.deck.where(key);
}

std::string located(const RunConfig& config, const std::string& message) {
  const auto key = std::string_view(message).substr(0, message.find_first_of(" :,=;"));
  if (find_key(key) == nullptr) return message;
  return fmt::format("{}: {}", where(config, key), message);
}

std::vector<Row<RunTable>> RunTable::rows() {
  return {
      key("name", &RunTable::name, anything, "Name of the run, stored in its files.", required_key),
      key("seed", &RunTable::seed, at_least(0),
          "Seeds the initial parameters and the order of the samples.", bound(Bond::fixed)),
      key("output", &RunTable::output, anything,
          "Run folder, relative to the folder where the command runs.", required_key),
      key("resume", &RunTable::resume, anything,
          "off: a run folder that holds a run is refused. auto: a run there goes on from its "
          "newest "
          "checkpoint, and one begins where there is none; exit code 0 if it is done. The path of "
          "a "
          "checkpoint: a run begins with it in a folder of its own, or goes on from it in its own "
          "run folder. Model, data, rule and seed must be the same; `carousel help restart` says "
          "more."),
      key("wall_clock", &RunTable::wall_clock, anything,
          "Time after which the run writes a checkpoint and ends with exit code 75, such as "
          "\"23:30:00\" or \"2-12:00:00\", from its start. Leave time for a few steps, the "
          "checkpoint and an evaluation.",
          optional_key),
      key("watchdog_seconds", &RunTable::watchdog_seconds, within(0, 1e6, "s"),
          "Ends all ranks when one makes no progress for this long, or for ten times as long while "
          "it reads or writes files. 0 never ends them, not even when a rank dies."),
  };
}

std::vector<Row<RunConfig>> RunConfig::transport_rows() {
  return {
      key("transport", &RunConfig::transport, one_of<TransportKind>(),
          "How devices exchange messages. auto is mpi under a launcher and local without one. nccl "
          "needs a GPU for each rank. rounds is auto with messages in groups that wait for each "
          "other, as NCCL's do: for tests."),
      key("gpu_aware", &RunConfig::gpu_aware, anything,
          "Whether MPI is given memory of GPUs, where the library takes it, instead of copies in "
          "host memory.",
          only_with("parallel.transport", {"auto", "mpi", "rounds"})),
  };
}

}  // namespace carousel
