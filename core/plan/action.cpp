// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/action.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace carousel {

bool same_message(const Action& a, const Action& b) {
  return a.payload == b.payload && a.direction == b.direction && a.stage == b.stage &&
         a.piece == b.piece && a.step == b.step && a.micro_batch == b.micro_batch &&
         a.peer == b.peer && a.group == b.group;
}

const char* to_string(ActionKind kind) {
  switch (kind) {
    case ActionKind::load:
      return "load";
    case ActionKind::copy:
      return "copy";
    case ActionKind::forward:
      return "forward";
    case ActionKind::backward:
      return "backward";
    case ActionKind::accumulate:
      return "accumulate";
    case ActionKind::measure:
      return "measure";
    case ActionKind::update:
      return "update";
    case ActionKind::release:
      return "release";
    case ActionKind::post:
      return "post";
    case ActionKind::send:
      return "send";
    case ActionKind::wait:
      return "wait";
    case ActionKind::all_reduce:
      return "all_reduce";
    case ActionKind::reduce:
      return "reduce";
    case ActionKind::broadcast:
      return "broadcast";
    case ActionKind::reduce_scatter:
      return "reduce_scatter";
    case ActionKind::all_gather:
      return "all_gather";
    case ActionKind::exchange:
      return "exchange";
  }
  return "?";
}

const char* to_string(Payload payload) {
  switch (payload) {
    case Payload::none:
      return "";
    case Payload::token:
      return "token";
    case Payload::activations:
      return "activations";
    case Payload::d_activations:
      return "d_activations";
    case Payload::gradient:
      return "gradient";
    case Payload::part:
      return "part";
    case Payload::total:
      return "total";
    case Payload::parameters:
      return "parameters";
    case Payload::predicted:
      return "predicted";
    case Payload::forward_copy:
      return "forward_copy";
    case Payload::backward_copy:
      return "backward_copy";
    case Payload::norms:
      return "norms";
    case Payload::sums:
      return "sums";
    case Payload::metrics:
      return "metrics";
  }
  return "?";
}

bool is_pass(const Action& action) {
  return action.kind == ActionKind::forward || action.kind == ActionKind::backward;
}

bool computes(const Action& action) {
  return std::ranges::find(computing_kinds, action.kind) != computing_kinds.end();
}

bool is_collective(const Action& action) {
  return action.kind == ActionKind::all_reduce || action.kind == ActionKind::reduce ||
         action.kind == ActionKind::broadcast || action.kind == ActionKind::reduce_scatter ||
         action.kind == ActionKind::all_gather ||
         (action.kind == ActionKind::wait && action.direction == Direction::none);
}

bool starts_message(const Action& action) {
  return action.kind == ActionKind::post || action.kind == ActionKind::send ||
         (action.kind != ActionKind::wait && is_collective(action));
}

Action wait_for(Action start) {
  start.kind = ActionKind::wait;
  start.round = {};
  return start;
}

bool passes_by(const Action& action) {
  return action.payload == Payload::forward_copy || action.payload == Payload::backward_copy;
}

bool names_version(const Action& action) {
  return is_pass(action) || action.kind == ActionKind::update ||
         action.payload == Payload::parameters || action.payload == Payload::predicted ||
         passes_by(action);
}

std::string to_string(const Action& action) {
  std::string text =
      fmt::format("t={:<4} step {:<3} {:<10}", action.time, action.step, to_string(action.kind));
  if (action.payload != Payload::none) text += fmt::format(" {}", to_string(action.payload));
  if (action.stage >= 0) text += fmt::format(" stage {}", action.stage);
  if (action.piece >= 0) text += fmt::format(" piece {}", action.piece);
  if (action.micro_batch >= 0) text += fmt::format(" micro-batch {}", action.micro_batch);
  if (names_version(action)) text += fmt::format(" version {}", action.version);
  if (action.peer >= 0)
    text += fmt::format(" {} device {}", action.direction == Direction::send ? "to" : "from",
                        action.peer);
  if (action.group >= 0) text += fmt::format(" group {}", action.group);
  if (action.bytes > 0) text += fmt::format(" {} bytes", action.bytes);
  if (action.source >= 0) text += fmt::format(" source {}", action.source);
  if (action.buffer >= 0) text += fmt::format(" buffer {}", action.buffer);
  if (action.round.exists())
    text += fmt::format(" round {}.{}", action.round.time, action.round.hop);
  return text;
}

}  // namespace carousel
