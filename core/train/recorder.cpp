// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/recorder.hpp"

#include "core/base/check.hpp"

namespace carousel {

void Recorder::begin(const Schedule& schedule, int device, const Segment& segment) {
  actions_before_ += static_cast<std::int64_t>(actions_.size());
  std::size_t actions = 0;
  std::size_t messages = 0;
  std::size_t updates = 0;
  schedule.for_each(device, segment, [&](const Action& action) {
    updates += action.kind == ActionKind::update ? 1 : 0;
    if (!profiles(action.step)) return;
    ++actions;
    messages += action.kind == ActionKind::wait ? 1 : 0;
  });
  actions_.clear();
  messages_.clear();
  memory_.clear();
  receipts_.clear();
  actions_.reserve(actions);
  memory_.reserve(actions);
  messages_.reserve(messages);
  receipts_.reserve(updates);
}

ActionRecord* Recorder::add(const ActionRecord& action) {
  CAROUSEL_CHECK(actions_.size() < actions_.capacity(), "more than {} actions", actions_.size());
  return &actions_.emplace_back(action);
}

MessageRecord* Recorder::add(const MessageRecord& message) {
  CAROUSEL_CHECK(messages_.size() < messages_.capacity(), "more than {} messages",
                 messages_.size());
  return &messages_.emplace_back(message);
}

void Recorder::add(const CategoryBytes& in_use) {
  const std::int64_t row = actions_before_ + std::ssize(actions_) - 1;
  memory_.push_back({.action = row, .bytes = in_use});
}

void Recorder::add(const Receipt& receipt) {
  receipts_.push_back(receipt);
}

void Recorder::end() {
  for (MemoryRecord& row : memory_) row.seconds = actions_[row.action - actions_before_].end;
}

}  // namespace carousel
