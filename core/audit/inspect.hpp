// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reports for people, at most 80 columns wide where names allow it: what a file of Carousel holds,
// and how runs compare. They only read.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "core/record/run_reader.hpp"

namespace carousel {

enum class FileKind : std::uint8_t { run, dataset, tokens, checkpoint, weights, predictions };

/// What a path leads to, by what the file says it is. Throws as inspect() does.
[[nodiscard]] FileKind kind_of(const std::string& path);

/// Describes what a run folder, run.h5, data set or checkpoint holds. Throws Error(input_output) if
/// it cannot be read, Error(bad_data) if it is damaged or none of these.
[[nodiscard]] std::string inspect(const std::string& path);

/// The keys of a run's deck, with their values.
using KeysOfRun = std::function<std::map<std::string, std::string>(const RunSummary&)>;

/// One table with a column per run: what was asked, what was measured beside what was planned, and
/// whether runs of the same rule ended with the same bits. Of more runs than 80 columns have room
/// for, a line per run: how it ended, and the keys in which their decks differ.
[[nodiscard]] std::string compare_runs(std::span<const std::string> paths,
                                       const KeysOfRun& keys_of);

}  // namespace carousel
