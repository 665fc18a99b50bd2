// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/nearest.hpp"

#include <algorithm>
#include <numeric>

namespace carousel {
namespace {

constexpr std::size_t longest = 64;  // nobody misspells a name into something longer

std::string_view last_part(std::string_view name) {
  return name.substr(name.rfind('.') + 1);
}

/// How unlike two names are. The right key in the wrong table is close.
int distance(std::string_view name, std::string_view other) {
  const int whole = edit_distance(name, other);
  if (other.find('.') == std::string_view::npos) return whole;
  return std::min(whole, 1 + edit_distance(last_part(name), last_part(other)));
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> before(b.size() + 1);
  std::vector<int> previous(b.size() + 1);
  std::vector<int> current(b.size() + 1);
  std::iota(previous.begin(), previous.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({replaced, previous[j] + 1, current[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = std::min(current[j], before[j - 2] + 1);
    }
    before.swap(previous);
    previous.swap(current);
  }
  return previous[b.size()];
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& names) {
  if (name.size() > longest || names.empty()) return "";
  const auto nearest =
      std::min_element(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
        return distance(name, a) < distance(name, b);
      });
  const int similar = std::max(1, static_cast<int>(last_part(name).size()) / 3);
  return distance(name, *nearest) <= similar ? " (did you mean " + *nearest + "?)" : "";
}

}  // namespace carousel
