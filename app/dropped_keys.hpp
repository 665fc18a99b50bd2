// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tells which keys of a deck the command line deprives of their effect. The front end says it, once
// whatever the number of ranks; the engine reads the same deck in silence.

#include <string>
#include <vector>

#include "app/launcher.hpp"

namespace carousel {

/// Prints a line for each such key on standard error. `sweep`, KEY=VALUE,VALUE,... or empty, stands
/// for an override by each of its values. Throws what load_run_config() throws.
void say_what_is_dropped(const std::string& deck, const std::vector<std::string>& overrides,
                         const std::string& sweep, const Launcher& launcher);

}  // namespace carousel
