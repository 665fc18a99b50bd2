// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "app/commands.hpp"
#include "app/run_keys.hpp"
#include "core/audit/inspect.hpp"
#include "core/audit/listing.hpp"
#include "core/base/check.hpp"

namespace carousel {

void inspect_command(const InspectArguments& arguments) {
  const std::vector<std::string>& paths = arguments.paths;
  if (arguments.json) {
    fmt::print("{}", listed_as_json(paths));
  } else if (!arguments.csv.empty()) {
    if (paths.size() > 1)
      fail(ExitCode::usage, "inspect --csv: give one run, not {}", paths.size());
    fmt::print("{}", listed_as_csv(paths.front(), arguments.csv));
  } else {
    fmt::print("{}", paths.size() == 1 ? inspect(paths.front()) : compare_runs(paths, keys_of));
  }
}

}  // namespace carousel
