// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/activity.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace carousel {
namespace {

std::string subject(const Action& action) {
  std::string text =
      action.payload == Payload::none ? to_string(action.kind) : to_string(action.payload);
  if (action.stage >= 0) text += fmt::format(" of stage {}", action.stage);
  if (action.micro_batch >= 0) text += fmt::format(", micro-batch {}", action.micro_batch);
  return text + fmt::format(", step {}", action.step);
}

std::string doing(const Action& action) {
  if (action.payload == Payload::none) return subject(action);
  const char* verb = to_string(action.kind);
  if (action.peer < 0) return fmt::format("{} {}", verb, subject(action));
  return fmt::format("{} {} {} rank {}", verb, subject(action),
                     action.direction == Direction::send ? "to" : "from", action.peer);
}

}  // namespace

void Activity::starts(const Action& action) {
  const std::lock_guard lock(mutex_);
  now_ = action;
  busy_ = true;
  ++count_;
}

void Activity::ends() {
  const std::lock_guard lock(mutex_);
  last_ = now_;
  busy_ = false;
  ++count_;
}

void Activity::completes(std::int64_t steps) {
  const std::lock_guard lock(mutex_);
  completed_ = std::max(completed_, steps);
}

std::uint64_t Activity::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

bool Activity::is_loading() const {
  const std::lock_guard lock(mutex_);
  return busy_ && now_.kind == ActionKind::load;
}

std::int64_t Activity::steps() const {
  const std::lock_guard lock(mutex_);
  // No device begins a step before all have done the third before it.
  return std::max(completed_, now_.step - 2);
}

std::string Activity::text() const {
  const std::lock_guard lock(mutex_);
  if (count_ == 0) return "has not begun";
  const std::string now = !busy_ ? "between segments" : fmt::format("now: {}", doing(now_));
  return count_ == 1 ? now : fmt::format("{}; before: {}", now, doing(last_));
}

}  // namespace carousel
