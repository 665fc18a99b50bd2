// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/recorder.hpp"

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
