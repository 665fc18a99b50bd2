// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The vocabulary of a schedule: what a device does, one plain record per action. Whoever makes,
// prints, checks, draws or executes a schedule speaks only in these.

#include <array>
#include <cstdint>
#include <string>

namespace carousel {

enum class ActionKind : std::uint8_t {
  load,        // put inputs and targets of a micro-batch into its input buffer
  copy,        // bring a piece of parameters that the device keeps to where its stage passes by;
               // or, of Payload::parameters or predicted, what it updates to where passes read
  forward,     // one stage of one micro-batch, with parameters of `version`
  backward,    // its gradient goes to gradient buffer `buffer`
  accumulate,  // gradient buffer `buffer` += gradient buffer `source`
  measure,     // the norm of gradient sum `source`, one of the numbers of Payload::norms
  update,      // optimizer: reads gradient sum `source`, writes parameters of `version`
  release,     // give back the activations of one stage (and with stage 0 the input)
  post,        // start a receive into `buffer`
  send,        // start a send from `buffer`
  wait,        // until what was started as the same_message() is complete
  all_reduce,  // start a sum over the devices of a group, each of which gets it
  reduce,      // the same, but `peer` alone gets it
  broadcast,   // start to bring what `peer` has to all devices of a group
  // Of a chunk, whose first piece is named, each device of a group has the piece of its shard:
  reduce_scatter,  // start to sum it there, from gradient buffer `source` of all to `buffer`
  all_gather,      // start to bring the pieces of all to all
  exchange,        // start all rounds up to `round`, one after the other; see core/plan/rounds.hpp
};

enum class Payload : std::uint8_t {
  none,
  token,          // paces the start of a step; carries nothing
  activations,    // what crosses the cut before `stage`, into the landing of its frame
  d_activations,  // the gradients of what crosses the cut behind `stage`
  gradient,       // sum over micro-batches 0 .. micro_batch of a stage's gradients
  part,           // what micro-batch `micro_batch` alone adds to it
  total,          // the sum over all micro-batches
  parameters,     // theta of `version`; with prediction, where nobody reads it, the following
  predicted,      // what is read in its place, where others read theta, or behind an evaluation
  forward_copy,   // theta of `version` on its way from micro-batch to micro-batch, for forward
  backward_copy,  // the same for backward
  norms,          // of the gradients of all stages
  sums,           // loss and accuracy of the step that made theta_version
  metrics,        // results of an evaluation
};

enum class Direction : std::uint8_t { none, receive, send };

/// Where a message stands among all others, for transports that tell messages apart by nothing
/// else.
struct Round {
  std::int64_t time = 0;  // time step
  int hop = -1;           // within it, from 0 on; -1: no round

  [[nodiscard]] bool exists() const { return hop >= 0; }
  /// One number in the same order.
  [[nodiscard]] std::int64_t number() const { return (time << 20) + hop; }
  auto operator<=>(const Round&) const = default;
};

/// Numbers an action does not have are -1; a version of -1 is theta_{-1} = theta_0.
struct Action {
  ActionKind kind = ActionKind::load;
  Payload payload = Payload::none;
  Direction direction = Direction::none;  // of post, send and wait
  std::int64_t time = 0;                  // time step of the rule, for order and drawing
  std::int64_t step = 0;                  // training step
  int micro_batch = -1;
  int stage = -1;
  int piece = -1;  // of the stage, where the action is not about all of it; see pieces.hpp
  std::int64_t version = -1;
  int peer = -1;
  int group = -1;  // of a collective and the wait for it
  std::int64_t bytes = 0;
  int buffer = -1;   // frame, gradient or other buffer: see the device's BufferCounts
  int source = -1;   // gradient buffer that is read
  Round round = {};  // of what starts a message or a collective, where there are rounds

  bool operator==(const Action&) const = default;
};

/// Whether two actions are about the same message or collective, on one device; of which at most
/// one is under way at a time, so that this is also whether a wait is for what another action
/// started.
[[nodiscard]] bool same_message(const Action& a, const Action& b);
/// Whether the action is a forward or a backward.
[[nodiscard]] bool is_pass(const Action& action);
/// What the device itself works on.
inline constexpr std::array computing_kinds = {
    ActionKind::load,       ActionKind::copy,    ActionKind::forward, ActionKind::backward,
    ActionKind::accumulate, ActionKind::measure, ActionKind::update};
[[nodiscard]] bool computes(const Action& action);
/// Whether the action starts, or waits for, something that all devices of a group take part in.
[[nodiscard]] bool is_collective(const Action& action);
/// Whether the action starts a message or a collective.
[[nodiscard]] bool starts_message(const Action& action);
/// The wait for what an action starts.
[[nodiscard]] Action wait_for(Action start);
/// Whether the action is about parameters that pass by: those of a stage on their way from
/// micro-batch to micro-batch.
[[nodiscard]] bool passes_by(const Action& action);
/// Whether actions of this kind are about a version of the parameters.
[[nodiscard]] bool names_version(const Action& action);

[[nodiscard]] const char* to_string(ActionKind kind);
[[nodiscard]] const char* to_string(Payload payload);
/// One line, aligned, without a line end: "t=3 step 0 mb 1 forward stage 2 v0".
[[nodiscard]] std::string to_string(const Action& action);

}  // namespace carousel
