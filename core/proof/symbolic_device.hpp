// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One device of a schedule that computes with statements instead of numbers: every buffer knows
// what it contains. It judges the actions of its own list; other devices it knows only by messages.

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/plan/schedule.hpp"
#include "core/proof/micro_batch_set.hpp"

namespace carousel {

/// What a message carries, beside what its action says.
struct Statement {
  MicroBatchSet summed;        // of a gradient
  std::int64_t decision = -1;  // of activations: newest step known complete when they were made
};

class SymbolicDevice {
 public:
  SymbolicDevice(const Schedule& schedule, const Segment& segment, int device);

  /// Carries out what the action does at once: a computation, or the start of a message. Returns
  /// what is wrong with the action, or null. A wait does nothing yet.
  [[nodiscard]] const char* execute(const Action& action);
  /// What a send carries that was just executed.
  [[nodiscard]] Statement statement(const Action& send);
  /// The message of this wait is complete: its buffer is free, or holds what has landed. Returns
  /// what is wrong with that, or null.
  [[nodiscard]] const char* finish(const Action& action, const Statement& landed);
  /// What is wrong with the device after the last action of the segment, or null.
  [[nodiscard]] const char* at_the_end();
  /// Forward passes so far.
  [[nodiscard]] std::int64_t passes() const { return passes_; }

 private:
  /// Users of a buffer that forbid writing to it, or reading from it while something lands.
  struct Pending {
    int sends = 0;
    bool landing = false;
    [[nodiscard]] bool idle() const { return sends == 0 && !landing; }
  };
  /// A micro-batch of a training step.
  struct Occupant {
    std::int64_t step = -1;
    int micro_batch = -1;
    auto operator<=>(const Occupant&) const = default;
  };
  /// A frame, a landing, a boundary gradient or an input, and whose it is.
  struct Holder {
    Occupant who;
    Pending pending;
    std::int64_t decision = -1;  // of a frame, newest step known complete when it was filled
    [[nodiscard]] bool free() const { return who == Occupant{} && pending.idle(); }
    [[nodiscard]] bool holds(const Occupant& self) const { return who == self && !pending.landing; }
  };
  /// How many stages of this device a micro-batch has gone up and down.
  struct Progress {
    int forwards = 0;
    int backwards = 0;
  };
  static constexpr std::int64_t not_there = -2;  // version of a piece
  struct ParameterCopy {
    std::int64_t version = -1;
    Pending pending;
    int stage = -1;  // of a copy that passes by, as what follows
    Payload payload = Payload::none;
    std::int64_t step = -1;
  };
  /// The sum of the gradients of a stage, or of a piece of it, of one step.
  struct GradientSum {
    std::int64_t step = -1;
    int stage = -1;
    int piece = -1;
    MicroBatchSet summed = {};
    Pending pending = {};
  };

  /// Squares of a piece of a stage that is cut.
  struct PieceNorm {
    std::int64_t step = -1;
    Pending pending;
  };

  void demand(bool condition, const char* what) {
    if (!condition && error_ == nullptr) error_ = what;
  }
  [[nodiscard]] bool fine() const { return error_ == nullptr; }
  void demand_version(const Action& action);

  void load(const Action& action);
  void copy(const Action& action);
  void forward(const Action& action);
  void backward(const Action& action);
  void accumulate(const Action& action);
  /// Of one piece, or of a stage that goes whole.
  void add(const Action& action, GradientSum& from, GradientSum& to);
  void measure(const Action& action);
  [[nodiscard]] PieceNorm& piece_norm(const Action& action) {
    return piece_norms_[{action.stage, action.piece}];
  }
  [[nodiscard]] bool knows_norms(const Action& update);
  void update(const Action& action);
  void release(const Action& action);
  void post(const Action& action);
  void send(const Action& action);
  void token(const Action& action);
  void collective(const Action& action);
  void finish_collective(const Action& action);
  /// The same where stages are cut.
  void chunk(const Action& action);
  void finish_chunk(const Action& action);
  /// Calls visit(piece, whether it is of this device) with the pieces of a chunk.
  template <class Visit>
  void for_each_of_chunk(const Action& action, const Visit& visit);
  void land(const Action& action, const Statement& landed);

  [[nodiscard]] bool owns(int stage) const { return counts_.owns(stage); }
  /// Whether a piece of the stage, or all of it, stays here.
  [[nodiscard]] bool stays(int stage, int piece) const;
  /// Pieces of the stage, some of which may be empty and never travel; 1 where it goes whole.
  [[nodiscard]] int pieces(int stage) const;
  [[nodiscard]] bool exists(int stage, int piece) const;
  /// Whether this device updates the parameters that a message is about.
  [[nodiscard]] bool makes(const Action& action) const;
  /// The copy of a version of the stage, in its pieces; of what is predicted, which lies in the
  /// same place where nobody here reads theta.
  [[nodiscard]] std::vector<ParameterCopy>& pieces_of(int stage, std::int64_t version,
                                                      bool predicted = false);
  /// The same of one piece, or of a stage that goes whole.
  [[nodiscard]] ParameterCopy& copy_of(int stage, std::int64_t version, int piece = -1) {
    return pieces_of(stage, version)[std::max(piece, 0)];
  }
  /// That a message brings or takes.
  [[nodiscard]] ParameterCopy& message_copy(const Action& action) {
    return pieces_of(action.stage, action.version,
                     action.payload == Payload::predicted)[std::max(action.piece, 0)];
  }
  /// Whether all of that version is here, and nothing lands there.
  [[nodiscard]] bool has_version(int stage, std::int64_t version, bool predicted = false);
  /// Whether parameters of a payload are what is in the copies of the stage.
  [[nodiscard]] bool is_read(const Action& message) const;
  /// What the buffer has of the piece that an action is about.
  [[nodiscard]] GradientSum& gradient(int buffer, const Action& action);
  /// The parameters that a message is about.
  [[nodiscard]] ParameterCopy& passing(const Action& action, Payload payload);
  /// The buffer that they pass by in, in pieces.
  [[nodiscard]] std::vector<ParameterCopy>& passing_buffer(const Action& action, Payload payload);
  /// Whether all is in it that a pass reads.
  [[nodiscard]] bool has_passing(const Action& pass, Payload payload);
  /// Whether that copy is of the one that an action is about.
  [[nodiscard]] static bool is_of(const ParameterCopy& copy, const Action& action, Payload payload);
  /// Gives the buffer to the copy that the action is about, all of whose pieces it hands out.
  std::vector<ParameterCopy>& enter(const Action& action);
  /// The same for a piece that is not there yet.
  void enter(const Action& action, int piece);
  void demand_room(const ParameterCopy& copy);
  /// What a gather brings.
  [[nodiscard]] ParameterCopy& gathered(const Action& action, int piece);
  /// What a broadcast brings passes by, or stays where the device keeps the stage.
  [[nodiscard]] ParameterCopy& broadcast_copy(const Action& action) {
    return action.payload == Payload::parameters ? copy_of(action.stage, action.version)
                                                 : passing(action, action.payload);
  }
  [[nodiscard]] Pending* pending(const Action& action);
  [[nodiscard]] Holder& in_turn(std::vector<Holder>& places, const Action& action);
  /// The first micro-batch of the worker of this one.
  [[nodiscard]] int first_of_worker(int micro_batch) const {
    return micro_batch - micro_batch % parallel_.passes;
  }
  /// The first micro-batch whose gradient is added to that of `micro_batch`, the last one, before
  /// both become part of the sum: those of a worker, or all that a collective adds up.
  [[nodiscard]] int first_of_term(int micro_batch) const;
  /// Whether a term through `micro_batch` may be added to what is there before it.
  [[nodiscard]] bool joins(const MicroBatchSet& before, const MicroBatchSet& term,
                           int micro_batch) const;
  /// With the parameters of stage 0 come loss and decision of the step that made them.
  void learn(std::int64_t step);
  [[nodiscard]] bool holds(const GradientSum& sum, const Action& action) const;

  const Schedule& schedule_;
  const ParallelConfig& parallel_;
  const BufferCounts& counts_;
  Segment segment_;
  int device_;
  // [stage][copy][piece], empty where nothing stays
  std::vector<std::vector<std::vector<ParameterCopy>>> parameters_;
  // Likewise, of stages of which some passes read theta and some what is predicted.
  std::vector<std::vector<std::vector<ParameterCopy>>> predicted_;
  std::vector<std::vector<ParameterCopy>> travelling_;  // [buffer][piece]
  std::vector<std::vector<GradientSum>> gradients_;     // [buffer][piece], or what it has one of
  std::vector<std::int64_t> norms_;                     // [stage] step of the norm that is here
  bool norms_travel_ = false;
  std::map<std::pair<int, int>, PieceNorm> piece_norms_;  // [stage, piece]
  std::vector<std::vector<Holder>> frames_;               // [stage][frame]
  std::vector<Holder> landings_;                          // [frame] of the first stage
  std::vector<std::vector<Holder>> boundaries_;           // [stage][buffer]
  std::vector<Holder> inputs_;                            // inputs and targets
  std::vector<Occupant> metrics_;                         // [N] whose loss, from the last stage
  std::map<Occupant, Progress> progress_;
  std::int64_t passes_ = 0;
  std::int64_t known_decision_;    // newest step whose completion is known here
  std::int64_t told_;              // newest step whose loss is known here
  std::int64_t newest_load_ = -1;  // training step
  std::int64_t token_ = -1;        // newest step that the device before has let begin
  const char* error_ = nullptr;
};

}  // namespace carousel
