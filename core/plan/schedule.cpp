// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/schedule.hpp"

#include <algorithm>
#include <set>

#include "core/base/check.hpp"
#include "core/plan/placements/kinds.hpp"
#include "core/plan/rounds.hpp"

namespace carousel {
namespace {

/// Largest number of things alive at once, while a list of actions is walked.
class LiveCount {
 public:
  void begin() { include(++now_); }
  void end() { --now_; }
  void restart() { now_ = 0; }
  void include(int count) { most_ = std::max(most_, count); }
  [[nodiscard]] int most() const { return most_; }

 private:
  int now_ = 0;
  int most_ = 0;
};

/// What of a device is alive while its list is walked.
struct LiveBuffers {
  explicit LiveBuffers(const BufferCounts& counts)
      : frames(counts.frames.size()),
        boundaries(counts.frames.size()),
        first_stage(counts.first_stage) {}

  void restart() {
    inputs.restart();
    requests.restart();
    for (LiveCount& count : frames) count.restart();
    for (LiveCount& count : boundaries) count.restart();
  }

  void walk(const Action& action) {
    const int j = action.stage;
    if (action.kind == ActionKind::wait)
      requests.end();
    else if (starts_message(action))
      requests.begin();
    if (action.payload == Payload::d_activations) {
      if (action.kind == ActionKind::post) boundaries[j].begin();
      if (action.kind == ActionKind::wait && action.direction == Direction::send)
        boundaries[j].end();
    }
    if (action.kind == ActionKind::load) inputs.begin();
    if (action.kind == ActionKind::forward) frames[j].begin();
    if (action.kind == ActionKind::backward) {
      if (j > 0) boundaries[j - 1].begin();
      if (j + 1 < std::ssize(boundaries)) boundaries[j].end();
    }
    if (action.kind == ActionKind::release) {
      frames[j].end();
      if (j == first_stage) inputs.end();
    }
  }

  LiveCount inputs;
  LiveCount requests;
  std::vector<LiveCount> frames;
  std::vector<LiveCount> boundaries;
  int first_stage;
};

}  // namespace

Schedule::Schedule(const ScheduleSpec& spec)
    : spec_(spec),
      traits_(&traits_of(spec.parallel.placement)),
      rule_(spec.parallel.rule, spec.parallel.micro_batches, spec.parallel.stages,
            spec.parallel.slack, spec.parallel.sums == Sums::late, spec.parallel.passes) {
  const auto stages = static_cast<std::size_t>(rule_.stages());
  spec_.activation_bytes.resize(stages);
  spec_.d_activation_bytes.resize(stages);
  if (spec_.parameter_bytes.empty()) spec_.parameter_bytes = spec_.message_bytes;
  CAROUSEL_CHECK(spec_.message_bytes.size() == stages && spec_.parameter_bytes.size() == stages,
                 "{} and {} message sizes, S = {}", spec_.message_bytes.size(),
                 spec_.parameter_bytes.size(), stages);
  CAROUSEL_CHECK(spec_.pieces.size() == (has_pieces(spec_.parallel) ? stages : 0),
                 "{} stages are cut, S = {}", spec_.pieces.size(), stages);
  CAROUSEL_CHECK(spec_.parallel.predict == 0 || has_prediction(spec_.parallel),
                 "{} does not predict in {}", to_string(spec_.parallel.rule),
                 to_string(spec_.parallel.placement));
  layout_ = kind_of(spec_.parallel.placement).layout(rule_, spec_);
  if (spec_.parallel.predict > 0) find_reads();
  adopt_programs();
  if (spec_.rounds) make_rounds();
  for (const Program& program : layout_.programs) teams_.push_back(program.first_device);
}

void Schedule::find_reads() {
  for (Program& program : layout_.programs) {
    std::vector<bool> fresh(rule_.stages());
    std::vector<bool> stale(rule_.stages());
    for (const ProgramAction& what : program.actions) {
      const Action& action = what.action;
      if (is_pass(action)) (action.version == action.step ? fresh : stale)[action.stage] = true;
    }
    BufferCounts& counts = program.buffers;
    for (int j = 0; j < rule_.stages(); ++j) {
      // Who updates a stage has what any other device reads of it.
      const bool both = counts.optimizer[j] ? !rule_.always_stale() : fresh[j] && stale[j];
      counts.reads.push_back(both       ? ParametersRead::both
                             : fresh[j] ? ParametersRead::theta
                                        : ParametersRead::predicted);
    }
  }
}

void Schedule::adopt_programs() {
  std::optional<std::int64_t> first, last;  // periods that an action may be off that of its step
  for (std::size_t p = 0; p < layout_.programs.size(); ++p) {
    const Program& program = layout_.programs[p];
    CAROUSEL_CHECK(program.first_device == devices(), "program {} begins elsewhere", p);
    program_of_.insert(program_of_.end(), program.team, static_cast<int>(p));
    for (const ProgramAction& what : program.actions) {
      const std::int64_t step = what.action.step;
      first = std::min(first.value_or(step), step);
      last = std::max(last.value_or(step), step);
    }
  }
  leading_periods_ = last.value_or(0);
  trailing_periods_ = -first.value_or(0);
  count_buffers();
}

void Schedule::count_buffers() {
  // Live sets repeat after the first steps, in which every device of a team has had its turns;
  // counts of one are enough to make the lists.
  for (Program& program : layout_.programs) {
    program.buffers.inputs = 1;
    program.buffers.frames.assign(rule_.stages(), 1);
    program.buffers.boundaries.assign(rule_.stages(), 1);
  }
  const std::vector<std::vector<Action>> all = lists(window());
  for (Program& program : layout_.programs) {
    LiveBuffers most(program.buffers);
    for (int k = 0; k < program.team; ++k) {
      most.restart();
      for (const Action& action : all[program.first_device + k]) most.walk(action);
    }
    // Outside training, device 0 receives from all others at once.
    most.requests.include(devices());
    program.buffers.requests = most.requests.most();
    BufferCounts& counts = program.buffers;
    counts.inputs = std::max(1, most.inputs.most());
    for (int j = 0; j < rule_.stages(); ++j) {
      const bool here = j >= counts.first_stage && j <= counts.last_stage;
      const bool beside =
          j >= counts.first_stage - 1 && j < std::min(counts.last_stage + 1, rule_.stages() - 1);
      counts.frames[j] = std::max(here ? 1 : 0, most.frames[j].most());
      counts.boundaries[j] = std::max(beside ? 1 : 0, most.boundaries[j].most());
    }
  }
}

void Schedule::make_rounds() {
  // A message may start whole periods before its round.
  const Segment segment{0, window().last + 2 * (reach() + 1)};
  std::vector<std::vector<ProgramStep>> all(devices());
  for (int d = 0; d < devices(); ++d) {
    std::vector<ProgramAction>& actions = layout_.programs[program_of_[d]].actions;
    for (std::int64_t p = first_period(segment); p < end_period(segment); ++p) {
      for (ProgramAction& what : actions) {
        if (const std::optional<Action> action = instantiate(d, what, p, segment))
          all[d].push_back({*action, &what.action, action->time - what.action.time});
      }
    }
  }
  add_rounds(all, groups(), segment.last / 2 * period_time(), layout_.programs);
}

int Schedule::round_robin(std::int64_t steps, int micro_batch, int count) const {
  if (count == 0) return -1;  // a faulty list may ask for what there is none of
  return static_cast<int>(
      (traits_->meets_all ? steps * rule_.micro_batches() + micro_batch : steps) % count);
}

int Schedule::travelling(int device, std::int64_t steps, Payload copy, int stage) const {
  const std::int64_t passes = 2LL * rule_.stages();
  const std::int64_t pass = copy == Payload::forward_copy ? stage : passes - 1 - stage;
  const int count = buffers(device).travelling;
  return count == 0 ? -1 : static_cast<int>((steps * passes + pass) % count);
}

void Schedule::resolve(int device, const Action& pass, std::optional<std::int64_t> first_step,
                       PassBuffers& buffers) const {
  const BufferCounts& counts = this->buffers(device);
  const int j = pass.stage;
  const std::int64_t steps = first_step ? pass.step - *first_step : 0;
  const auto turn = [&](int count) {
    return first_step ? round_robin(steps, pass.micro_batch, count) : 0;
  };
  buffers.input = turn(counts.inputs);
  buffers.landing = turn(counts.frames[counts.first_stage]);
  for (int stage = counts.first_stage; stage <= j; ++stage)
    buffers.frames[stage] = turn(counts.frames[stage]);
  const Payload copy =
      pass.kind == ActionKind::forward ? Payload::forward_copy : Payload::backward_copy;
  buffers.parameters = counts.owns(j) ? -1 : travelling(device, steps, copy, j);
  buffers.d_output = turn(counts.boundaries[j]);
  buffers.d_input = j > 0 ? turn(counts.boundaries[j - 1]) : -1;
}

int Schedule::device_in_turn(const Program& program, std::int64_t step, int turn) const {
  if (program.team == 1) return program.first_device;
  const std::int64_t number = step * layout_.turns + turn;
  return program.first_device +
         static_cast<int>((number % program.team + program.team) % program.team);
}

void Schedule::name_devices(int device, const Turns& turns, Action& action) const {
  if (action.peer >= 0)
    action.peer = device_in_turn(layout_.programs[action.peer], action.step, turns.peer);
  if (action.group >= 0) action.group += device - program(device).first_device;
}

Action Schedule::absolute(int device, const ProgramAction& what, std::int64_t period,
                          std::int64_t first_step) const {
  Action result = what.action;
  result.step += period;
  result.version = names_version(what.action) ? what.action.version + period : -1;
  result.time += (period - first_step) * layout_.period_time;
  if (result.round.exists()) result.round.time += (period - first_step) * layout_.period_time;
  name_devices(device, what.turns, result);
  const BufferCounts& counts = buffers(device);
  const std::int64_t steps = result.step - first_step;
  const auto turn = [&](int count) { return round_robin(steps, result.micro_batch, count); };
  const int j = result.stage;
  if (result.kind == ActionKind::load) result.buffer = turn(counts.inputs);
  if (result.kind == ActionKind::forward || result.kind == ActionKind::release)
    result.buffer = turn(counts.frames[j]);
  if (result.kind == ActionKind::backward) result.source = turn(counts.frames[j]);
  // Activations leave the frame that made them and arrive beside the frame that reads them.
  if (result.payload == Payload::activations)
    result.buffer = turn(counts.frames[result.direction == Direction::send ? j - 1 : j]);
  if (result.payload == Payload::d_activations) result.buffer = turn(counts.boundaries[j]);
  if (passes_by(result) && !counts.owns(j) && !leaves_from_kept(device, result))
    result.buffer = travelling(device, steps, result.payload, j);
  return result;
}

std::optional<Action> Schedule::instantiate(int device, const ProgramAction& what,
                                            std::int64_t period, const Segment& segment) const {
  const std::int64_t step = what.action.step + period;
  const bool always = what.action.kind == ActionKind::exchange;
  if (!always && (step < segment.first || step >= segment.last)) return std::nullopt;
  if (device_in_turn(program(device), step, what.turns.here) != device) return std::nullopt;
  return absolute(device, what, period, segment.first);
}

std::vector<Action> Schedule::actions(int device, const Segment& segment) const {
  std::vector<Action> result;
  for_each(device, segment, [&](const Action& action) { result.push_back(action); });
  return result;
}

std::vector<std::vector<Action>> Schedule::lists(const Segment& segment) const {
  std::vector<std::vector<Action>> result(devices());
  for (const Program& program : layout_.programs) {
    for (std::int64_t p = first_period(segment); p < end_period(segment); ++p) {
      for (const ProgramAction& what : program.actions) {
        const std::int64_t step = what.action.step + p;
        const bool always = what.action.kind == ActionKind::exchange;
        if (!always && (step < segment.first || step >= segment.last)) continue;
        const int device = device_in_turn(program, step, what.turns.here);
        result[device].push_back(absolute(device, what, p, segment.first));
      }
    }
  }
  return result;
}

Traffic traffic(const Schedule& schedule, int device) {
  Traffic sum;
  for (const ProgramAction& what : schedule.program(device).actions) {
    if (what.action.kind != ActionKind::send) continue;
    ++sum.messages;
    sum.bytes += what.action.bytes;
  }
  return sum;
}

double busy_fraction(const Schedule& schedule, const std::vector<std::vector<Action>>& lists,
                     std::int64_t period) {
  const std::int64_t begin = period * schedule.period_time();
  std::int64_t busy = 0;
  for (const std::vector<Action>& list : lists) {
    std::set<std::int64_t> times;
    for (const Action& action : list) {
      if (is_pass(action) && action.time >= begin && action.time < begin + schedule.period_time())
        times.insert(action.time);
    }
    busy += std::ssize(times);
  }
  return static_cast<double>(busy) /
         (static_cast<double>(schedule.devices()) * static_cast<double>(schedule.period_time()));
}

}  // namespace carousel
