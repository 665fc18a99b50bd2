// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/target.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

namespace carousel {

std::string to_string(const TargetSpec& target) {
  const bool one = target.pixels() == 1;
  if (!target.has_labels())
    return one ? fmt::format("targets of {} number{}", target.channels(),
                             target.channels() == 1 ? "" : "s")
               : fmt::format("targets of {} numbers", to_string(target.shape));
  std::string classes = fmt::format("{} classes", target.classes);
  if (one) return classes;
  const std::vector<int> extents = target.shape.extents();
  return fmt::format("{} for each of {} pixels", classes,
                     fmt::join(std::span(extents).subspan(1), "x"));
}

}  // namespace carousel
