// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "app/commands.hpp"
#include "core/audit/inspect.hpp"

namespace carousel {

void inspect_command(const std::vector<std::string>& paths) {
  fmt::print("{}", paths.size() == 1 ? inspect(paths.front()) : compare_runs(paths));
}

}  // namespace carousel
