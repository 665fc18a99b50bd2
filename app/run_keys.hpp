// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The deck of a run as keys and values, for whoever compares runs.

#include <map>
#include <string>

#include "core/record/run_reader.hpp"

namespace carousel {

/// Every key that has an effect in the run's newest part, with its value as TOML, but for names,
/// which change no number. Error(bad_data) if the run file holds no deck.
[[nodiscard]] std::map<std::string, std::string> keys_of(const RunSummary& run);

}  // namespace carousel
