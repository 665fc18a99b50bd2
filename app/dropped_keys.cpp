// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/dropped_keys.hpp"

#include <set>
#include <sstream>

#include "app/complaint.hpp"

namespace carousel {
namespace {

using Overrides = std::vector<std::string>;

std::vector<Overrides> with_each_value(const Overrides& overrides, const std::string& sweep) {
  const std::size_t equals = sweep.find('=');
  if (equals == std::string::npos) return {overrides};
  std::vector<Overrides> all;
  std::istringstream values(sweep.substr(equals + 1));
  for (std::string value; std::getline(values, value, ',');) {
    all.push_back(overrides);
    all.back().push_back(sweep.substr(0, equals + 1) + value);
  }
  return all;
}

}  // namespace

void say_what_is_dropped(const std::string& deck, const Overrides& overrides,
                         const std::string& sweep, const Launcher& launcher) {
  if (!launcher.first()) return;
  std::set<std::string> said;
  for (const Overrides& each : with_each_value(overrides, sweep))
    for (const std::string& text : load_run_config(deck, each).notes)
      if (said.insert(text).second) note(text);
}

}  // namespace carousel
