// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Hands over from the front end to the engine, the second executable beside it, which needs Kokkos,
// MPI and perhaps a GPU driver. It does not care what the engine is asked to do.

#include <filesystem>
#include <string>
#include <vector>

namespace carousel {

/// The engine beside the running program.
[[nodiscard]] std::filesystem::path engine_path();

/// Has SIGTERM and SIGUSR1 wait until a training listens to them (app/pauses.hpp): before, they
/// would end it without a word.
void hold_signals();

/// Replaces this process by the engine. Returns only by throwing Error(usage), when the engine is
/// missing or the libraries it needs are not on this machine, as libcuda.so.1 on a login node.
[[noreturn]] void start_engine(const std::filesystem::path& engine,
                               const std::vector<std::string>& arguments);

}  // namespace carousel
