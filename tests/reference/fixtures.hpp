// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What PyTorch computed, by topic, as the scripts of tests/reference wrote it. It reads one file
// and knows nothing of what is in it.

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace carousel::reference {

/// A topic of a file of tests/reference, or of the folder in CAROUSEL_FIXTURES, which tests that
/// were carried to another machine have.
inline nlohmann::json fixture(const char* topic, const std::string& name = "pytorch.json") {
  const char* elsewhere = std::getenv("CAROUSEL_FIXTURES");
  std::ifstream file((elsewhere == nullptr ? CAROUSEL_FIXTURES : elsewhere) + ("/" + name));
  return nlohmann::json::parse(file).at(topic);
}

}  // namespace carousel::reference
