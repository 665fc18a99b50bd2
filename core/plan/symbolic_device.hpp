// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One device of a schedule that computes with statements instead of numbers: every buffer knows
// what it contains. It judges the actions of its own list; other devices it knows only by messages.

#include <cstdint>
#include <map>
#include <vector>

#include "core/plan/schedule.hpp"

namespace carousel {

class SymbolicDevice {
 public:
  SymbolicDevice(const Schedule& schedule, const Segment& segment, int device);

  /// Carries out what the action does at once: a computation, or the start of a message. Returns
  /// what is wrong with the action, or null. A wait does nothing yet.
  [[nodiscard]] const char* execute(const Action& action);
  /// The message of this wait is complete: its buffer is free, or holds what has landed.
  void finish(const Action& action);
  /// What is wrong with the device after the last action of the segment, or null.
  [[nodiscard]] const char* at_the_end();

 private:
  /// A micro-batch of a training step, as the occupant of a frame, an input or a boundary gradient.
  struct Occupant {
    std::int64_t step = -1;
    int micro_batch = -1;
    auto operator<=>(const Occupant&) const = default;
  };
  /// How many stages a micro-batch has gone up and down.
  struct Progress {
    int forwards = 0;
    int backwards = 0;
  };
  /// Users of a buffer that forbid writing to it, or reading from it while something lands.
  struct Pending {
    int sends = 0;
    bool landing = false;
    [[nodiscard]] bool idle() const { return sends == 0 && !landing; }
  };
  struct ParameterCopy {
    std::int64_t version = -1;
    Pending pending;
  };
  /// The sum of one stage's gradients of one step over micro-batches first .. last.
  struct GradientBuffer {
    std::int64_t step = -1;
    int stage = -1;
    int first = -1;
    int last = -1;
    Pending pending;
  };

  void demand(bool condition, const char* what) {
    if (!condition && error_ == nullptr) error_ = what;
  }
  [[nodiscard]] bool fine() const { return error_ == nullptr; }
  void demand_version(const Action& action);

  void load(const Action& action);
  void forward(const Action& action);
  void backward(const Action& action);
  void accumulate(const Action& action);
  void update(const Action& action);
  void release(const Action& action);
  void post(const Action& action);
  void send(const Action& action);
  void all_reduce(const Action& action);

  [[nodiscard]] ParameterCopy& copy_of(int stage, std::int64_t version);
  [[nodiscard]] Pending* pending(const Action& action);
  [[nodiscard]] Occupant& input_of(const Action& action);
  [[nodiscard]] Occupant& frame_of(int stage, const Action& action);
  [[nodiscard]] Occupant& boundary_of(int stage, const Action& action);
  [[nodiscard]] Occupant& in_turn(std::vector<Occupant>& buffers, const Action& action);
  [[nodiscard]] bool holds(const GradientBuffer& buffer, const Action& action, int last) const;

  const Schedule& schedule_;
  const ParallelConfig& parallel_;
  Segment segment_;
  int device_;
  std::vector<std::vector<ParameterCopy>> parameters_;  // [stage][copy]
  std::vector<GradientBuffer> gradients_;               // [buffer]
  std::vector<std::vector<Occupant>> frames_;           // [stage][frame]
  std::vector<std::vector<Occupant>> boundaries_;       // [stage][buffer]
  std::vector<Occupant> inputs_;                        // images and labels
  std::map<Occupant, Progress> progress_;
  std::int64_t known_decision_;  // newest step whose completion is known here
  std::int64_t token_ = -1;      // newest step that the device before has let begin
  const char* error_ = nullptr;
};

}  // namespace carousel
