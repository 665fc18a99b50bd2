// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/arguments.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"

namespace carousel {
namespace {

double value_of(const std::string& layer, const ArgumentSpec& spec, const Arguments& given) {
  const auto found = std::ranges::find(given, spec.name, &Argument::name);
  if (found == given.end()) {
    if (!spec.otherwise) fail(ExitCode::usage, "{}: {} is missing", layer, spec.name);
    return *spec.otherwise;
  }
  const double value = found->value;
  if (!(value >= spec.least && value <= spec.most) || (spec.whole && value != std::floor(value)))
    fail(ExitCode::usage, "{}: {} = {} is no {}number from {} to {}", layer, spec.name, value,
         spec.whole ? "whole " : "", spec.least, spec.most);
  return value;
}

}  // namespace

GivenArguments::GivenArguments(const std::string& layer, std::span<const ArgumentSpec> known,
                               const Arguments& given) {
  for (const Argument& argument : given) {
    if (std::ranges::find(known, argument.name, &ArgumentSpec::name) == known.end()) {
      std::vector<std::string> names;
      for (const ArgumentSpec& spec : known) names.emplace_back(spec.name);
      fail(ExitCode::usage, "{}: it has no {}; known: {}", layer, argument.name,
           fmt::join(names, ", "));
    }
  }
  for (const ArgumentSpec& spec : known)
    values_.push_back({spec.name, value_of(layer, spec, given)});
}

double GivenArguments::number(const std::string& name) const {
  const auto found = std::ranges::find(values_, name, &Argument::name);
  CAROUSEL_CHECK(found != values_.end(), "no argument {}", name);
  return found->value;
}

}  // namespace carousel
