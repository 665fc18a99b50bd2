// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What every file that this program writes says about where it comes from. It writes none itself.

#include "app/run_config.hpp"
#include "app/start_text.hpp"
#include "core/record/run_file.hpp"

namespace carousel {

/// Program, libraries, the time now, the seed and the resolved deck.
[[nodiscard]] RunInfo provenance(const RunConfig& config);

/// "nid001, AMD EPYC 9654, 64 threads": the node of this process, its processor and what of it a
/// rank uses.
[[nodiscard]] std::string machine_of(const NodeUse& node);

}  // namespace carousel
