// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/recorder.hpp"

#include <charconv>
#include <limits>
#include <string_view>

#include "core/base/check.hpp"

namespace carousel {
namespace {

/// Reads "12" or nothing; nothing leaves `value` as it is.
bool read_number(std::string_view text, std::int64_t& value) {
  if (text.empty()) return true;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value >= 0;
}

}  // namespace

StepSelection::StepSelection(const std::string& slices) {
  std::string_view rest = slices;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view text = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);

    Slice slice{0, std::numeric_limits<std::int64_t>::max(), 1};
    const std::size_t colon = text.find(':');
    const std::size_t second = colon == std::string_view::npos ? colon : text.find(':', colon + 1);
    bool good = !text.empty() && read_number(text.substr(0, colon), slice.first);
    if (colon == std::string_view::npos) {
      slice.last = slice.first + 1;
    } else {
      const std::size_t length = second == std::string_view::npos ? second : second - colon - 1;
      good = good && read_number(text.substr(colon + 1, length), slice.last);
      if (second != std::string_view::npos)
        good = good && read_number(text.substr(second + 1), slice.stride);
    }
    if (!good || slice.stride < 1)
      fail(ExitCode::usage,
           "profile.steps = \"{}\": \"{}\" is not a slice of steps; write first:last:stride, such "
           "as \"0:20,::1000\"",
           slices, text);
    slices_.push_back(slice);
  }
}

bool StepSelection::contains(std::int64_t step) const {
  for (const Slice& slice : slices_) {
    if (step >= slice.first && step < slice.last && (step - slice.first) % slice.stride == 0)
      return true;
  }
  return false;
}

void Recorder::begin(const Schedule& schedule, int device, const Segment& segment) {
  actions_before_ += static_cast<std::int64_t>(actions_.size());
  std::size_t profiled = 0;
  for (std::int64_t t = segment.first; t < segment.last; ++t) profiled += profiles(t) ? 1 : 0;
  std::size_t messages = 0;
  std::size_t updates = 0;
  for (const Action& action : schedule.period(device)) {
    messages += action.kind == ActionKind::wait ? 1 : 0;
    updates += action.kind == ActionKind::update ? 1 : 0;
  }
  const std::size_t actions = profiled * schedule.period(device).size();
  actions_.clear();
  messages_.clear();
  memory_.clear();
  receipts_.clear();
  actions_.reserve(actions);
  memory_.reserve(actions);
  messages_.reserve(profiled * messages);
  receipts_.reserve(updates * static_cast<std::size_t>(segment.last - segment.first));
}

void Recorder::add(const ActionRecord& action, const CategoryBytes& in_use) {
  const auto row = actions_before_ + static_cast<std::int64_t>(actions_.size());
  actions_.push_back(action);
  memory_.push_back({action.end, row, in_use});
}

void Recorder::add(const MessageRecord& message) {
  messages_.push_back(message);
}

void Recorder::add(const Receipt& receipt) {
  receipts_.push_back(receipt);
}

}  // namespace carousel
