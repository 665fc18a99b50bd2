// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where commands may write: not over what they read, by whatever name or link, and not where
// something is that nobody has told them to replace. It writes nothing.

#include <span>
#include <string>

#include "app/launcher.hpp"
#include "app/run_config.hpp"

namespace carousel {

/// A file that a command reads, and what it is for it: "the deck".
struct ReadFile {
  std::string what;
  std::string path;
};

/// For commands of one process.
void require_one_process(const Launcher& launcher);

/// For commands that write one file: refuses more than one process, what is no file, a file that is
/// read, and any other unless it is to be overwritten.
void check_output(const std::string& path, bool overwrite, const Launcher& launcher,
                  std::span<const ReadFile> reads);

/// The same for any number of processes, of which one writes.
void check_output(const std::string& path, bool overwrite, std::span<const ReadFile> reads);

/// Refuses to replace the run in run.output where a file of it is one that this run reads: deck,
/// data set, or what it begins with.
void check_replaced_run(const RunConfig& config);

}  // namespace carousel
