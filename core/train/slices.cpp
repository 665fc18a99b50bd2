// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/slices.hpp"

#include <algorithm>
#include <charconv>

#include "core/base/check.hpp"

namespace carousel {
namespace {

/// Text between separators; a string of n separators has n + 1 parts.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

[[noreturn]] void refuse(std::string_view part) {
  fail(ExitCode::usage,
       "profile.steps: \"{}\" is not a Python slice with a positive step; write 0:20,::1000, for "
       "example",
       part);
}

std::optional<std::int64_t> number(std::string_view text, std::string_view part) {
  constexpr std::int64_t largest = std::int64_t{1} << 53;  // far from any overflow
  text = trimmed(text);
  if (text.empty()) return {};
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) refuse(part);
  if (value > largest || value < -largest) refuse(part);
  return value;
}

Slice parse(std::string_view part) {
  const std::vector<std::string_view> fields = split(part, ':');
  Slice slice{.start = number(fields[0], part), .stop = {}, .step = 1};
  if (fields.size() == 1) {  // one step
    if (!slice.start) refuse(part);
    if (*slice.start != -1) slice.stop = *slice.start + 1;
    return slice;
  }
  if (fields.size() > 3) refuse(part);
  slice.stop = number(fields[1], part);
  if (fields.size() == 3) slice.step = number(fields[2], part).value_or(1);
  if (slice.step < 1) refuse(part);
  return slice;
}

}  // namespace

Slices::Slices(std::string_view text) {
  if (trimmed(text).empty()) return;
  for (const std::string_view part : split(text, ',')) slices_.push_back(parse(part));
}

bool Slices::contains(std::int64_t step, std::int64_t steps) const {
  return std::any_of(slices_.begin(), slices_.end(), [&](const Slice& slice) {
    const auto bound = [&](std::int64_t at) { return at < 0 ? std::max(steps + at, {}) : at; };
    const std::int64_t start = bound(slice.start.value_or(0));
    const std::int64_t stop = bound(slice.stop.value_or(steps));
    return step >= start && step < stop && (step - start) % slice.step == 0;
  });
}

}  // namespace carousel
