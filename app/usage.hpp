// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names of commands and options for a user who mistypes one. It defines none of them.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace carousel {

[[nodiscard]] std::vector<std::string> command_names(const CLI::App& command);

/// What is wrong with a command line that could not be parsed, and what was probably meant.
[[nodiscard]] std::string explain(const CLI::App& app, const CLI::ParseError& error);

}  // namespace carousel
