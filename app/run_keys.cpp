// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/run_keys.hpp"

#include "app/deck.hpp"
#include "app/run_config.hpp"

namespace carousel {

std::map<std::string, std::string> keys_of(const RunSummary& run) {
  std::map<std::string, std::string> keys;
  const Deck deck = as_bad_data([&] { return parse_deck(run.info.deck, run.file + ", deck", {}); });
  for (const DeckEntry& entry : deck.entries) keys[entry.key] = to_toml(entry.value);
  keys.erase("run.name");
  keys.erase("run.output");
  return keys;
}

}  // namespace carousel
