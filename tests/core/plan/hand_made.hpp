// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Actions written by hand, for tests of what reads lists that no schedule made. It tests nothing
// itself.

#include "core/plan/action.hpp"

namespace carousel::testing {

inline Action compute(ActionKind kind, int stage = 0, std::int64_t step = 0) {
  return {.kind = kind, .step = step, .micro_batch = 0, .stage = stage};
}

inline Action send(int to, std::int64_t bytes, int stage = 0) {
  return {.kind = ActionKind::send,
          .payload = Payload::gradient,
          .direction = Direction::send,
          .stage = stage,
          .peer = to,
          .bytes = bytes};
}

inline Action post(int from, std::int64_t bytes, int stage = 0) {
  return {.kind = ActionKind::post,
          .payload = Payload::gradient,
          .direction = Direction::receive,
          .stage = stage,
          .peer = from,
          .bytes = bytes};
}

/// Over all devices, whatever the group is that a test gives the number 0.
inline Action all_reduce(std::int64_t bytes, int stage = -1) {
  return {.kind = ActionKind::all_reduce,
          .payload = Payload::total,
          .stage = stage,
          .group = 0,
          .bytes = bytes};
}

/// The chain of that kind to or from `root`.
inline Action chain(ActionKind kind, int root, std::int64_t bytes) {
  Action action = all_reduce(bytes);
  action.kind = kind;
  action.peer = root;
  return action;
}

/// For what the action has started.
inline Action wait(Action action) {
  action.kind = ActionKind::wait;
  return action;
}

}  // namespace carousel::testing
