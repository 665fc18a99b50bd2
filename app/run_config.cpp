// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/run_config.hpp"

#include <filesystem>

#include "app/deck_reader.hpp"
#include "app/schema.hpp"
#include "app/toml_text.hpp"

namespace carousel {

const char* to_string(TransportKind transport) {
  switch (transport) {
    case TransportKind::automatic:
      return "auto";
    case TransportKind::local:
      return "local";
    case TransportKind::mpi:
      return "mpi";
  }
  return "?";
}

RunConfig load_run_config(const std::string& path, const std::vector<std::string>& overrides) {
  RunConfig config = read_config(read_deck(path, overrides));
  // What is written into files must be read from them again.
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
  RunConfig moved = config;
  moved.data_file = std::filesystem::absolute(config.data_file).string();
  std::string toml;
  for (const TableSpec& table : deck_tables()) {
    if (table.optional && !config.machine) continue;
    toml += fmt::format("{}[{}]\n", toml.empty() ? "" : "\n", table.name);
    for (const KeySpec& spec : table.keys) {
      const std::string key = spec.key();
      if (!config.deck.has(key)) continue;
      const std::string line = fmt::format("{} = {}", spec.name, to_toml(spec.member.read(moved)));
      const std::string origin =
          config.deck.given(key) ? printable(config.deck.where(key)) : "default";
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

}  // namespace carousel
