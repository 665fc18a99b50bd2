// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/evaluation.hpp"

#include <algorithm>

namespace carousel {

std::int64_t evaluation_share(const Schedule& schedule, std::int64_t batches, int device) {
  return (batches + schedule.devices() - 1 - device) / schedule.devices();
}

std::int64_t evaluation_position(const Schedule& schedule, std::int64_t batches,
                                 std::int64_t batch) {
  const int sender = static_cast<int>(batch % schedule.devices());
  std::int64_t position = batch / schedule.devices();
  for (int d = 0; d < sender; ++d) position += evaluation_share(schedule, batches, d);
  return position;
}

std::vector<std::vector<Action>> evaluation_actions(const Schedule& schedule, std::int64_t batches,
                                                    std::int64_t version,
                                                    std::int64_t bytes_per_batch) {
  const int devices = schedule.devices();
  const int stages = schedule.rule().stages();
  std::vector<std::vector<Action>> lists(devices);
  const auto message = [&](ActionKind kind, Direction direction, int peer, int sender) {
    return Action{.kind = kind,
                  .payload = Payload::metrics,
                  .direction = direction,
                  .step = version,
                  .peer = peer,
                  .bytes = bytes_per_batch * evaluation_share(schedule, batches, sender),
                  .buffer = static_cast<int>(evaluation_position(schedule, batches, sender))};
  };
  for (int d = 0; d < devices; ++d) {
    std::vector<Action>& list = lists[d];
    if (d == 0) {
      for (int sender = 1; sender < devices; ++sender)
        list.push_back(message(ActionKind::post, Direction::receive, sender, sender));
    }
    for (std::int64_t k = d; k < batches; k += devices) {
      const auto add = [&](ActionKind kind, int stage) {
        list.push_back({.kind = kind,
                        .step = version,
                        .micro_batch = static_cast<int>(k),
                        .stage = stage,
                        .version = version,
                        .buffer = 0});
      };
      for (int j = 0; j < stages; ++j) {
        if (j == 0) add(ActionKind::load, j);
        add(ActionKind::forward, j);
      }
      for (int j = 0; j < stages; ++j) add(ActionKind::release, j);
    }
    if (d > 0) {
      list.push_back(message(ActionKind::send, Direction::send, 0, d));
      list.push_back(message(ActionKind::wait, Direction::send, 0, d));
    } else {
      for (int sender = 1; sender < devices; ++sender)
        list.push_back(message(ActionKind::wait, Direction::receive, sender, sender));
    }
  }
  return lists;
}

std::vector<std::vector<Action>> collection_actions(const Schedule& schedule,
                                                    const std::vector<std::int64_t>& state_bytes,
                                                    std::int64_t step) {
  std::vector<std::vector<Action>> lists(schedule.devices());
  for (int j = 0; j < schedule.rule().stages(); ++j) {
    const bool here = schedule.buffers(0).optimizer[j];
    const int owner = here ? 0 : schedule.owner(j);
    Action action{.payload = Payload::optimizer_state, .step = step, .stage = j};
    if (!here && state_bytes[j] > 0) {
      action.bytes = state_bytes[j];
      // Between segments the gradient buffers are free; state lands in the stage's own.
      action.buffer = 0;
      const std::vector<std::vector<int>>& gradients = schedule.buffers(0).gradients;
      while (std::ranges::find(gradients[action.buffer], j) == gradients[action.buffer].end())
        ++action.buffer;
      Action out = action;
      out.buffer = -1;
      out.peer = 0;
      out.direction = Direction::send;
      action.peer = owner;
      action.direction = Direction::receive;
      for (ActionKind kind : {ActionKind::post, ActionKind::wait}) {
        action.kind = kind;
        lists[0].push_back(action);
        out.kind = kind == ActionKind::post ? ActionKind::send : ActionKind::wait;
        lists[owner].push_back(out);
      }
    }
    action.kind = ActionKind::save;
    action.direction = Direction::none;
    lists[0].push_back(action);
  }
  return lists;
}

}  // namespace carousel
