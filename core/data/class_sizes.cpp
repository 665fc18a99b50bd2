// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/class_sizes.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/check.hpp"

namespace carousel {
namespace {

/// A name, cut where it is long.
std::string shortened(const std::string& name) {
  constexpr std::size_t most = 24;
  if (name.size() <= most) return name;
  std::size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;  // of UTF-8
  return name.substr(0, end) + "...";
}

}  // namespace

std::int64_t ClassSizes::empty() const {
  return std::ranges::count(samples, 0);
}

ClassSizes class_sizes(std::size_t classes, std::span<const int> labels) {
  CAROUSEL_CHECK(classes > 0, "{} classes", classes);
  ClassSizes sizes;
  sizes.samples.resize(classes);
  for (const int label : labels) ++sizes.samples.at(static_cast<std::size_t>(label));
  const auto place = [&](auto found) {
    return static_cast<std::size_t>(found - sizes.samples.begin());
  };
  sizes.least = place(std::ranges::min_element(sizes.samples));
  sizes.most = place(std::ranges::max_element(sizes.samples));
  return sizes;
}

std::string describe_classes(const std::vector<std::string>& names,
                             std::span<const int> training_labels) {
  const ClassSizes sizes = class_sizes(names.size(), training_labels);
  const std::string count = fmt::format("{} class{}", names.size(), names.size() == 1 ? "" : "es");
  const std::int64_t least = sizes.samples[sizes.least];
  const std::int64_t most = sizes.samples[sizes.most];
  if (least == most) return fmt::format("{} of {} each for training", count, least);
  return fmt::format("{}, from {} ({}) to {} ({}) for training", count, least,
                     shortened(names[sizes.least]), most, shortened(names[sizes.most]));
}

std::string missing_classes(const std::vector<std::string>& names,
                            std::span<const int> training_labels) {
  const ClassSizes sizes = class_sizes(names.size(), training_labels);
  const std::int64_t empty = sizes.empty();
  if (empty == 0) return "";
  return fmt::format("{} of {} classes ha{} no samples for training, beginning with {}", empty,
                     names.size(), empty == 1 ? "s" : "ve", shortened(names[sizes.least]));
}

}  // namespace carousel
