// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/evaluation.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/base/real.hpp"
#include "core/plan/rounds.hpp"
#include "core/plan/stage_memory.hpp"

namespace carousel {
namespace {

using Lists = std::vector<std::vector<Action>>;

/// The other end of a message.
Action opposite(Action action, int device) {
  action.peer = device;
  const bool sends = action.direction == Direction::send;
  action.direction = sends ? Direction::receive : Direction::send;
  return action;
}

Action start_of(Action action) {
  action.kind = action.direction == Direction::send ? ActionKind::send : ActionKind::post;
  return action;
}

std::int64_t batches_of(std::int64_t lanes, std::int64_t batches, std::int64_t lane) {
  return (batches + lanes - 1 - lane) / lanes;
}

/// How many lanes there are: one per device, or per team that begins.
std::int64_t lanes_of(const Schedule& schedule) {
  if (!schedule.traits().splits_stages) return schedule.devices();
  const std::int64_t lanes = std::ranges::count_if(
      schedule.teams(), [&](int first) { return schedule.buffers(first).first_stage == 0; });
  CAROUSEL_CHECK(lanes > 0, "no team begins");
  return lanes;
}

/// Writes the actions that some devices have in one evaluation.
class Evaluation {
 public:
  Evaluation(const Schedule& schedule, std::int64_t batches, std::int64_t version,
             const std::function<bool(int)>& is_asked_for)
      : schedule_(schedule),
        lanes_(evaluation_lanes(schedule)),
        batches_(batches),
        version_(version),
        stages_(schedule.rule().stages()),
        lists_(schedule.devices()) {
    for (int d = 0; d < schedule.devices(); ++d) asked_for_.push_back(is_asked_for(d));
  }

  Lists lists(std::int64_t bytes_per_batch) {
    const std::int64_t lanes = std::ssize(lanes_);
    for (std::int64_t l = 1; l < lanes; ++l) post_results(l, bytes_per_batch);
    if (lanes_[0].back() != 0) post_results(0, bytes_per_batch);
    const bool predicts = schedule_.parallel().predict > 0;
    if (predicts) bring_all(Payload::parameters);
    // All devices take part in a round, since parameters may pass through those without a batch.
    for (std::int64_t first = 0; first < batches_; first += lanes) {
      for (int j = 0; j < stages_; ++j) {
        if (schedule_.traits().passes_parameters) pass_parameters(j);
        for (std::int64_t k = first; k < std::min(first + lanes, batches_); ++k) forward(k, j);
      }
    }
    if (predicts) bring_all(Payload::predicted);
    for (const std::vector<int>& lane : lanes_) send_results(lane.back());
    return std::move(lists_);
  }

 private:
  [[nodiscard]] Action action(ActionKind kind, std::int64_t batch, int stage) const {
    return {.kind = kind,
            .step = version_,
            .micro_batch = static_cast<int>(batch),
            .stage = stage,
            .version = version_,
            .buffer = 0};
  }

  void add(int device, const Action& action) {
    if (asked_for_[device]) lists_[device].push_back(action);
  }

  void forward(std::int64_t k, int j) {
    const std::int64_t lanes = std::ssize(lanes_);
    const std::vector<int>& lane = lanes_[k % lanes];
    const int here = lane[j];
    const bool arrives = j > 0 && lane[j - 1] != here;
    if (arrives) add(here, start_of(boundary(k, j, Direction::receive, lane[j - 1])));
    if (arrives || j == 0) add(here, action(ActionKind::load, k, j));
    if (arrives) add(here, wait_for(boundary(k, j, Direction::receive, lane[j - 1])));
    Action pass = action(ActionKind::forward, k, j);
    pass.source = static_cast<int>(k / lanes);
    add(here, pass);
    const bool leaves = j + 1 < stages_ && lane[j + 1] != here;
    if (leaves) {
      const Action out = boundary(k, j + 1, Direction::send, lane[j + 1]);
      add(here, start_of(out));
      add(here, wait_for(out));
    }
    if (!leaves && j + 1 < stages_) return;
    for (int before = schedule_.buffers(here).first_stage; before <= j; ++before)
      add(here, action(ActionKind::release, k, before));
  }

  [[nodiscard]] Action boundary(std::int64_t k, int stage, Direction direction, int peer) const {
    return {.payload = Payload::activations,
            .direction = direction,
            .step = version_,
            .micro_batch = static_cast<int>(k),
            .stage = stage,
            .peer = peer,
            .bytes = schedule_.spec().activation_bytes[stage - 1],
            .buffer = 0};
  }

  /// Calls visit(piece, keeper, bytes) for all of a stage, or for each of its pieces.
  template <class Visit>
  void for_each_piece(int j, const Visit& visit) const {
    const auto& cut = schedule_.spec().pieces;
    if (cut.empty()) return visit(-1, schedule_.owner(j), schedule_.parameter_bytes(j));
    for (int p = 0; p < std::ssize(cut[j]); ++p) {
      if (cut[j][p].gradients > 0)
        visit(p, schedule_.owner(j) + p % shards_of(schedule_.parallel()), cut[j][p].parameters);
    }
  }

  /// Where passes read nothing but what is predicted, that is not what is evaluated: who updates a
  /// piece puts it where they read, and it goes around the ring to all others that keep the stage.
  void bring_all(Payload payload) {
    for (int j = 0; j < stages_; ++j)
      for_each_piece(j, [&](int piece, int keeper, std::int64_t bytes) {
        bring({.payload = payload,
               .direction = Direction::receive,
               .step = version_,
               .stage = j,
               .piece = piece,
               .version = version_,
               .bytes = bytes},
              keeper);
      });
  }
  void bring(Action in, int keeper) {
    const int devices = schedule_.devices();
    const auto updates = [&](int d) {
      const BufferCounts& counts = schedule_.buffers(d);
      const bool mine = in.piece < 0 || in.piece % shards_of(schedule_.parallel()) == counts.shard;
      return counts.optimizer[in.stage] && mine;
    };
    const auto reads_theta = [&](int d) {
      return schedule_.buffers(d).reads_of(in.stage) != ParametersRead::predicted;
    };
    in.peer = keeper;
    for (int hop = 0; hop < devices; ++hop) {
      const int to = (keeper + hop) % devices;
      if (reads_theta(to)) continue;
      if (updates(to)) {
        Action copy = action(ActionKind::copy, -1, in.stage);
        copy.payload = in.payload;
        copy.piece = in.piece;
        add(to, copy);
      } else if (schedule_.buffers(to).owns(in.stage)) {
        const Action out = opposite(in, to);
        add(to, start_of(in));
        add(to, wait_for(in));
        add(in.peer, start_of(out));
        add(in.peer, wait_for(out));
        in.peer = to;
      }
    }
  }

  /// From who keeps them around the ring to all others.
  void pass_parameters(int j) {
    for_each_piece(j, [&](int piece, int keeper, std::int64_t bytes) {
      if (piece >= 0) {
        Action copy = action(ActionKind::copy, -1, j);
        copy.payload = Payload::forward_copy;
        copy.piece = piece;
        copy.buffer = schedule_.travelling(keeper, 0, copy.payload, j);
        add(keeper, copy);
      }
      pass_piece(j, piece, keeper, bytes);
    });
  }
  void pass_piece(int j, int piece, int keeper, std::int64_t bytes) {
    const int devices = schedule_.devices();
    for (int hop = 1; hop < devices; ++hop) {
      const int to = (keeper + hop) % devices;
      const int from = (to + devices - 1) % devices;
      if (schedule_.buffers(to).owns(j)) continue;
      Action in{.payload = Payload::forward_copy,
                .direction = Direction::receive,
                .step = version_,
                .stage = j,
                .piece = piece,
                .version = version_,
                .peer = from,
                .bytes = bytes,
                .buffer = schedule_.travelling(to, 0, Payload::forward_copy, j)};
      Action out = opposite(in, to);
      const bool stays = schedule_.buffers(from).owns(j) || schedule_.leaves_from_kept(from, out);
      out.buffer = stays ? -1 : schedule_.travelling(from, 0, Payload::forward_copy, j);
      add(to, start_of(in));
      add(to, wait_for(in));
      add(from, start_of(out));
      add(from, wait_for(out));
    }
  }

  [[nodiscard]] Action results(std::int64_t lane, std::int64_t bytes_per_batch) const {
    const auto lanes = static_cast<std::int64_t>(lanes_.size());
    return {.payload = Payload::metrics,
            .direction = Direction::receive,
            .step = version_,
            .peer = lanes_[lane].back(),
            .bytes = bytes_per_batch * batches_of(lanes, batches_, lane),
            .buffer = static_cast<int>(evaluation_position(schedule_, batches_, lane))};
  }
  void post_results(std::int64_t lane, std::int64_t bytes_per_batch) {
    add(0, start_of(results(lane, bytes_per_batch)));
    results_.push_back(results(lane, bytes_per_batch));
  }
  /// What a device has found, to device 0.
  void send_results(int device) {
    for (const Action& in : results_) {
      if (in.peer != device) continue;
      add(device, start_of(opposite(in, 0)));
      add(device, wait_for(opposite(in, 0)));
      add(0, wait_for(in));
    }
  }

  const Schedule& schedule_;
  std::vector<std::vector<int>> lanes_;
  std::int64_t batches_;
  std::int64_t version_;
  int stages_;
  std::vector<bool> asked_for_ = {};
  Lists lists_;
  std::vector<Action> results_ = {};  // posted on device 0
};

}  // namespace

std::vector<std::vector<int>> evaluation_lanes(const Schedule& schedule) {
  const int stages = schedule.rule().stages();
  std::vector<std::vector<int>> lanes;
  if (!schedule.traits().splits_stages) {
    for (int d = 0; d < schedule.devices(); ++d) lanes.emplace_back(stages, d);
    return lanes;
  }
  // Of a team, which takes micro-batches in turn, the first device.
  std::vector<std::vector<int>> first(stages);
  for (const int d : schedule.teams()) first[schedule.buffers(d).first_stage].push_back(d);
  for (std::size_t l = 0; l < first[0].size(); ++l) {
    lanes.emplace_back();
    for (int j = 0; j < stages; ++j) lanes.back().push_back(first[j][l]);
  }
  return lanes;
}

std::int64_t evaluation_share(const Schedule& schedule, std::int64_t batches, int device) {
  if (device == 0) return batches;
  const std::int64_t lanes = lanes_of(schedule);
  if (!schedule.traits().splits_stages) return batches_of(lanes, batches, device);
  if (schedule.buffers(device).last_stage + 1 < schedule.rule().stages()) return 0;
  const auto all = evaluation_lanes(schedule);
  const auto lane =
      std::ranges::find(all, device, [](const std::vector<int>& each) { return each.back(); });
  return lane == all.end() ? 0 : batches_of(lanes, batches, lane - all.begin());
}

std::int64_t evaluation_position(const Schedule& schedule, std::int64_t batches,
                                 std::int64_t batch) {
  const std::int64_t lanes = lanes_of(schedule);
  std::int64_t position = batch / lanes;
  for (std::int64_t l = 0; l < batch % lanes; ++l) position += batches_of(lanes, batches, l);
  return position;
}

std::vector<std::vector<Action>> evaluation_actions(const Schedule& schedule, std::int64_t batches,
                                                    std::int64_t version,
                                                    std::int64_t bytes_per_batch,
                                                    const std::function<bool(int)>& of) {
  const bool rounds = schedule.spec().rounds;  // which follow from all lists
  const auto wanted = [&](int device) { return rounds || !of || of(device); };
  Lists lists = Evaluation(schedule, batches, version, wanted).lists(bytes_per_batch);
  if (rounds) add_rounds(lists, schedule.groups());
  return lists;
}

std::vector<std::vector<Action>> closing_actions(const Schedule& schedule, std::int64_t last) {
  Lists lists(schedule.devices());
  const int owner = schedule.owner(0);
  const int copies = schedule.buffers(owner).parameter_copies;
  for (int d = 0; d < schedule.devices(); ++d) {
    if (schedule.buffers(d).owns(0) || d == owner) continue;
    for (std::int64_t version = last - copies + 1; version <= last; ++version) {
      const Action in{.payload = Payload::sums,
                      .direction = Direction::receive,
                      .step = last,
                      .stage = 0,
                      .version = version,
                      .peer = owner,
                      .bytes = schedule.spec().rider_bytes,
                      .buffer = 0};
      for (const auto& part : {start_of, wait_for}) {
        lists[d].push_back(part(in));
        lists[owner].push_back(part(opposite(in, d)));
      }
    }
  }
  if (schedule.spec().rounds) add_rounds(lists, schedule.groups());
  return lists;
}

}  // namespace carousel
