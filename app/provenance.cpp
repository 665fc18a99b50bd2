// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/provenance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "core/base/version.hpp"
#include "core/record/run_folder.hpp"

namespace carousel {

RunInfo provenance(const RunConfig& config) {
  const BuildInfo& build = build_info();
  return {.program_version = build.version,
          .git_hash = build.git_hash,
          .libraries = build.libraries(),
          .start_time = utc_now(),
          .seed = config.run.seed,
          .deck = resolved_deck(config)};
}

std::string machine_of(const NodeUse& node) {
  std::ifstream file("/proc/cpuinfo");
  const std::string key = "model name";
  std::string processor = "unknown processor";
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    processor = line.substr(std::min(line.size(), line.find(':') + 2));
    break;
  }
  return fmt::format("{}, {}, {}", host_name(), processor, describe_place(node));
}

}  // namespace carousel
