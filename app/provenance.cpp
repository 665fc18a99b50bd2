// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/provenance.hpp"

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

}  // namespace carousel
