// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "app/commands.hpp"
#include "app/prepared_run.hpp"
#include "core/data/dataset.hpp"

namespace carousel {

void plan_command(const std::string& deck, const std::vector<std::string>& overrides) {
  print_plan(load_run_config(deck, overrides));
}

void print_plan(const RunConfig& config) {
  const Dataset dataset(config.data_file);
  fmt::print("{}", describe(prepare_run(config, dataset, config.transport)));
}

}  // namespace carousel
