// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The run behind a checkpoint, for commands that look at what it has learned: its deck, on one
// device, and with the data that the command names.

#include <string>

#include "app/run_config.hpp"
#include "core/state/checkpoint.hpp"

namespace carousel {

/// `dataset` is empty for the one that the deck names; `split` as in EvalArguments.
[[nodiscard]] RunConfig evaluated_run(const Checkpoint& checkpoint, const std::string& dataset,
                                      const std::string& split);

}  // namespace carousel
