// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What PyTorch computed, by topic, as tests/reference/make_fixtures.py wrote it. It reads one file
// and knows nothing of what is in it.

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace carousel::reference {

/// Tests that were carried to another machine name the file in CAROUSEL_FIXTURES.
inline nlohmann::json fixture(const char* topic) {
  const char* elsewhere = std::getenv("CAROUSEL_FIXTURES");
  std::ifstream file(elsewhere == nullptr ? CAROUSEL_FIXTURES : elsewhere);
  return nlohmann::json::parse(file).at(topic);
}

}  // namespace carousel::reference
