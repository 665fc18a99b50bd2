// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A schedule: for every device the ordered actions of training, as data. This is the only place
// that knows rules and placements; it executes nothing and allocates no device memory.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/plan/action.hpp"
#include "core/plan/agenda.hpp"
#include "core/plan/pieces.hpp"
#include "core/plan/placements/layout.hpp"
#include "core/plan/placements/traits.hpp"
#include "core/plan/program.hpp"
#include "core/plan/rule.hpp"

namespace carousel {

/// Which buffers of a device a forward or a backward works on, beside those that its action names.
struct PassBuffers {
  int input = 0;            // inputs and targets
  int landing = 0;          // of the device's first stage, where it lands
  std::vector<int> frames;  // [S] of the device's stages up to that of the pass
  int parameters = -1;      // of those that pass by; -1: the stage's stay on the device
  int d_output = -1;        // boundary gradients behind the stage, and before it
  int d_input = -1;
};

/// The actions of a device repeat with the training step. They are kept once, as the program of
/// its team, for a period of `period_time` time steps, which is one training step.
class Schedule {
 public:
  explicit Schedule(const ScheduleSpec& spec);

  [[nodiscard]] const Rule& rule() const { return rule_; }
  [[nodiscard]] const ParallelConfig& parallel() const { return spec_.parallel; }
  [[nodiscard]] const PlacementTraits& traits() const { return *traits_; }
  [[nodiscard]] int devices() const { return static_cast<int>(program_of_.size()); }
  /// Time steps of a training step.
  [[nodiscard]] std::int64_t period_time() const { return layout_.period_time; }
  [[nodiscard]] const ScheduleSpec& spec() const { return spec_; }
  /// Of a gradient and of parameters, with what rides behind them.
  [[nodiscard]] std::int64_t message_bytes(int stage) const { return spec_.message_bytes[stage]; }
  [[nodiscard]] std::int64_t parameter_bytes(int stage) const {
    return spec_.parameter_bytes[stage];
  }
  /// Of a stage; 1 where stages go whole.
  [[nodiscard]] int most_pieces() const {
    std::size_t most = 1;
    for (const auto& pieces : spec_.pieces) most = std::max(most, pieces.size());
    return static_cast<int>(most);
  }
  [[nodiscard]] const BufferCounts& buffers(int device) const { return program(device).buffers; }
  /// The device that completes theta of a stage first and reports on it. For cyclic rules it alone
  /// holds the optimizer state, except in `model`: the first micro-batch that v2 lets read fresh
  /// parameters (N-1-j for N = S).
  [[nodiscard]] int owner(int stage) const { return layout_.owner[stage]; }
  /// Whether a device, alone or with others who have other pieces, shows what was learned of a
  /// stage.
  [[nodiscard]] bool shows(int device, int stage) const {
    return device >= owner(stage) && device < owner(stage) + shards_of(spec_.parallel);
  }
  /// The first device of every team of the placement.
  [[nodiscard]] const std::vector<int>& teams() const { return teams_; }
  /// [group] devices that take part in its collectives.
  [[nodiscard]] const std::vector<std::vector<int>>& groups() const { return layout_.groups; }
  /// The buffer, out of `count` used round robin, of a micro-batch `steps` after a segment began.
  [[nodiscard]] int round_robin(std::int64_t steps, int micro_batch, int count) const;
  /// Whether a device sends its piece of a stage from where it keeps it, instead of where the stage
  /// passes by.
  [[nodiscard]] bool leaves_from_kept(int device, const Action& action) const {
    return action.direction == Direction::send &&
           buffers(device).keeps(action.stage, action.piece, shards_of(spec_.parallel));
  }
  /// The buffer of parameters that pass by, for the forward or the backward of a stage, `steps`
  /// after a segment began.
  [[nodiscard]] int travelling(int device, std::int64_t steps, Payload copy, int stage) const;

  /// Fills in the buffers of a forward or backward in a segment that begins with `first_step`, or,
  /// without it, in an evaluation, which takes the first of everything. `frames` has room for S.
  void resolve(int device, const Action& pass, std::optional<std::int64_t> first_step,
               PassBuffers& buffers) const;

  [[nodiscard]] const Program& program(int device) const {
    return layout_.programs[program_of_[device]];
  }
  /// Whole periods from the first action of a step to its last one.
  [[nodiscard]] std::int64_t reach() const { return leading_periods_ + trailing_periods_; }
  /// A segment long enough to show whatever a longer one would: between beginning and end it has
  /// three whole periods, since what an action meets is of its own period or of one beside it, and
  /// a step three steps behind another, whose outcome it must know.
  [[nodiscard]] Segment window() const { return {0, std::max<std::int64_t>(reach() + 3, 4)}; }
  /// Periods first .. end - 1 have actions of a segment.
  [[nodiscard]] std::int64_t first_period(const Segment& segment) const {
    return segment.first - leading_periods_;
  }
  [[nodiscard]] std::int64_t end_period(const Segment& segment) const {
    return segment.last + trailing_periods_;
  }
  /// One action of program(device) made absolute, in a period of a segment. None when it belongs to
  /// another segment or is the turn of another device of the team. What exchanges rounds belongs to
  /// all segments: without messages there it does nothing.
  [[nodiscard]] std::optional<Action> instantiate(int device, const ProgramAction& what,
                                                  std::int64_t period,
                                                  const Segment& segment) const;
  /// Calls visit with all actions of one device in one segment, in order.
  template <class Visit>
  void for_each(int device, const Segment& segment, Visit&& visit) const {
    for (std::int64_t p = first_period(segment); p < end_period(segment); ++p) {
      for (const ProgramAction& what : program(device).actions) {
        if (const std::optional<Action> action = instantiate(device, what, p, segment))
          visit(*action);
      }
    }
  }
  [[nodiscard]] std::vector<Action> actions(int device, const Segment& segment) const;
  /// [device] the same for all devices at once, which is faster where teams are large.
  [[nodiscard]] std::vector<std::vector<Action>> lists(const Segment& segment) const;

 private:
  [[nodiscard]] int device_in_turn(const Program& program, std::int64_t step, int turn) const;
  /// Puts the device in place of the program of a peer, and the group of the device in its team.
  void name_devices(int device, const Turns& turns, Action& action) const;
  [[nodiscard]] Action absolute(int device, const ProgramAction& what, std::int64_t period,
                                std::int64_t first_step) const;
  void find_reads();
  void adopt_programs();
  void count_buffers();
  void make_rounds();

  ScheduleSpec spec_;
  const PlacementTraits* traits_;
  Rule rule_;
  placements::Layout layout_;
  std::vector<int> program_of_;  // [device]
  std::vector<int> teams_;
  // Of actions of a step, how many periods the first comes before it and the last behind it;
  // negative when all come behind, or before.
  std::int64_t leading_periods_ = 0;
  std::int64_t trailing_periods_ = 0;
};

/// Messages and bytes that are sent in a steady period by a device, or by its team.
struct Traffic {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
};
[[nodiscard]] Traffic traffic(const Schedule& schedule, int device);

/// Share of the time steps of one period in which the devices compute, at the pace of the rule.
/// `lists` are those of a segment that begins with step 0.
[[nodiscard]] double busy_fraction(const Schedule& schedule,
                                   const std::vector<std::vector<Action>>& lists,
                                   std::int64_t period);

}  // namespace carousel
