// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "app/commands.hpp"

namespace carousel {

void plan_command(const std::string& deck, const std::vector<std::string>& overrides) {
  print_plan(load_run_config(deck, overrides));
}

void print_plan(const RunConfig& config) {
  const std::vector<int>& widths = config.model.widths;
  const Model model = with_locations(config, [&] {
    return build_model(config.model, {.channels = widths.front()}, widths.back());
  });
  fmt::print("{}", to_string(model));
}

}  // namespace carousel
