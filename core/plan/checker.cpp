// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/checker.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/base/check.hpp"

namespace carousel {
namespace {

/// Sum of one stage's gradients of one step over micro-batches first .. last; none when step < 0.
struct GradientSum {
  std::int64_t step = -1;
  int stage = -1;
  int first = -1;
  int last = -1;
};

/// The occupant of a frame, an input buffer or a boundary gradient.
struct Occupant {
  std::int64_t step = -1;
  int micro_batch = -1;
  bool operator==(const Occupant&) const = default;
};
inline constexpr Occupant nobody{};

/// Users of a buffer that forbid writing to it, or reading from it while something lands.
struct Pending {
  int sends = 0;
  bool landing = false;
};

struct ParameterCopy {
  std::int64_t version = -1;
  bool complete = true;
  Pending pending;
};

struct GradientBuffer {
  GradientSum sum;
  Pending pending;
};

/// A started send or receive until its wait.
struct Request {
  Action action;
  int device = 0;
  bool complete = false;
};

struct DeviceState {
  std::vector<std::vector<ParameterCopy>> parameters;  // [stage][copy]
  std::vector<GradientBuffer> gradients;               // [buffer]
  std::vector<std::vector<Occupant>> frames;           // [stage][frame]
  std::vector<std::vector<Occupant>> boundaries;       // [stage][buffer]
  std::vector<Occupant> inputs;                        // images and labels
  std::map<Occupant, int, bool (*)(const Occupant&, const Occupant&)> forwards{&before};
  std::map<Occupant, int, bool (*)(const Occupant&, const Occupant&)> backwards{&before};
  std::map<std::int64_t, int> updates;  // step -> number of stages updated
  std::vector<Request> requests;
  std::int64_t known_decision = -1;  // newest step whose completion is known here
  bool in_all_reduce = false;
  std::size_t next = 0;

  static bool before(const Occupant& a, const Occupant& b) {
    return a.step != b.step ? a.step < b.step : a.micro_batch < b.micro_batch;
  }
};

/// The rule once more, straight from the paper's table and not by way of Rule.
std::int64_t version_by_rule(const ParallelConfig& parallel, int i, int j, std::int64_t t) {
  const auto slot = [&](std::int64_t micro_batch) {
    return parallel.stages * micro_batch / parallel.micro_batches;
  };
  if (parallel.rule == RuleKind::dp) return t;
  if (parallel.rule == RuleKind::cdp_v1) return t - 1;
  return slot(i) + j >= slot(parallel.micro_batches - 1) + parallel.slack ? t : t - 1;
}

class Machine {
 public:
  Machine(const Schedule& schedule, const Segment& segment,
          const std::vector<std::vector<Action>>& lists)
      : schedule_(schedule),
        parallel_(schedule.parallel()),
        segment_(segment),
        lists_(lists),
        devices_(schedule.devices()) {
    for (int d = 0; d < schedule.devices(); ++d) initialise(d);
  }

  std::optional<Fault> run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (int d = 0; d < static_cast<int>(devices_.size()); ++d) {
        while (devices_[d].next < lists_[d].size()) {
          const Action& action = lists_[d][devices_[d].next];
          blocked_ = false;
          error_.clear();
          execute(d, action);
          if (!error_.empty()) return fault(d, error_);
          if (blocked_) break;
          ++devices_[d].next;
          moved = true;
        }
      }
    }
    for (int d = 0; d < static_cast<int>(devices_.size()); ++d) {
      if (devices_[d].next < lists_[d].size()) return fault(d, "waits for ever");
    }
    return at_the_end();
  }

 private:
  void initialise(int d) {
    DeviceState& state = devices_[d];
    const BufferCounts& counts = schedule_.buffers(d);
    for (int j = 0; j < parallel_.stages; ++j) {
      state.parameters.emplace_back(counts.parameter_copies);
      for (std::int64_t v = segment_.first - counts.parameter_copies + 1; v <= segment_.first; ++v)
        copy_of(state, j, v).version = v;
      state.frames.emplace_back(counts.frames[j], nobody);
      state.boundaries.emplace_back(counts.boundaries[j], nobody);
    }
    state.gradients.resize(counts.gradients.size());
    state.inputs.assign(counts.inputs, nobody);
    state.known_decision = segment_.first - 1;
  }

  [[nodiscard]] Fault fault(int d, const std::string& why) const {
    const std::size_t at = devices_[d].next;
    const std::string action =
        at < lists_[d].size() ? to_string(lists_[d][at]) : std::string("end of the segment");
    return {d, at, fmt::format("device {}, action {}: {}: {}", d, at, action, why)};
  }

  void demand(bool condition, const char* what) {
    if (!condition && error_.empty()) error_ = what;
  }

  static ParameterCopy& copy_of(DeviceState& state, int stage, std::int64_t version) {
    const auto copies = static_cast<std::int64_t>(state.parameters[stage].size());
    return state.parameters[stage][((version % copies) + copies) % copies];
  }

  template <class T>
  T* element(std::vector<T>& buffers, int index) {
    demand(index >= 0 && index < static_cast<int>(buffers.size()), "names a buffer that is not");
    return error_.empty() ? &buffers[index] : nullptr;
  }

  void execute(int d, const Action& action) {
    DeviceState& state = devices_[d];
    demand(action.step >= segment_.first && action.step < segment_.last, "outside the segment");
    demand(action.step <= state.known_decision + 2, "runs before step - 2 is known to be complete");
    demand(action.stage < parallel_.stages && action.micro_batch < parallel_.micro_batches,
           "names a stage or micro-batch that is not");
    if (!error_.empty()) return;
    switch (action.kind) {
      case ActionKind::load:
        return load(state, action);
      case ActionKind::forward:
        return forward(state, action);
      case ActionKind::backward:
        return backward(state, action);
      case ActionKind::accumulate:
        return accumulate(state, action);
      case ActionKind::update:
        return update(d, action);
      case ActionKind::release:
        return release(state, action);
      case ActionKind::post:
      case ActionKind::send:
        return start(d, action);
      case ActionKind::wait:
        return wait(d, action);
      case ActionKind::all_reduce:
        return all_reduce(state, action);
      case ActionKind::save:
        return demand(false, "does not belong into training");
    }
  }

  void load(DeviceState& state, const Action& action) {
    Occupant* input = element(state.inputs, action.buffer);
    if (input == nullptr) return;
    demand(*input == nobody, "overwrites images in use");
    *input = {action.step, action.micro_batch};
  }

  /// Both passes read the version of the rule, from a copy that nothing is landing in.
  void demand_version(DeviceState& state, const Action& action) {
    const std::int64_t version =
        version_by_rule(parallel_, action.micro_batch, action.stage, action.step);
    const ParameterCopy& copy = copy_of(state, action.stage, version);
    demand(action.version == version, "does not use the version of the rule");
    demand(copy.version == version && copy.complete, "its parameters are not here");
  }

  [[nodiscard]] static bool holds(const std::vector<Occupant>& buffers, const Occupant& self) {
    return std::ranges::find(buffers, self) != buffers.end();
  }

  void forward(DeviceState& state, const Action& action) {
    const Occupant self{action.step, action.micro_batch};
    const int j = action.stage;
    demand_version(state, action);
    demand(state.forwards[self]++ == j, "not the next forward of this micro-batch");
    demand(holds(state.inputs, self), "its images and labels are not here");
    demand(j == 0 || holds(state.frames[j - 1], self), "its input is not here");
    Occupant* frame = element(state.frames[j], action.buffer);
    if (frame == nullptr) return;
    demand(*frame == nobody, "overwrites activations in use");
    *frame = self;
  }

  void backward(DeviceState& state, const Action& action) {
    const Occupant self{action.step, action.micro_batch};
    const int j = action.stage;
    const int last = parallel_.stages - 1;
    demand_version(state, action);
    demand(state.forwards[self] == parallel_.stages, "forward is not complete");
    demand(state.backwards[self]++ == last - j, "not the next backward of this micro-batch");
    Occupant* frame = element(state.frames[j], action.source);
    GradientBuffer* gradient = element(state.gradients, action.buffer);
    if (frame == nullptr || gradient == nullptr) return;
    demand(*frame == self, "its activations are not in that frame");
    demand(holds(state.inputs, self), "its images and labels are gone");
    demand(j == 0 || holds(state.frames[j - 1], self), "its input is gone");
    if (j < last) {
      const auto own = std::ranges::find(state.boundaries[j], self);
      demand(own != state.boundaries[j].end(), "the gradient of its output is not here");
      if (error_.empty()) *own = nobody;
    }
    if (j > 0) {
      const auto free = std::ranges::find(state.boundaries[j - 1], nobody);
      demand(free != state.boundaries[j - 1].end(), "no buffer for the gradient of its input");
      if (error_.empty()) *free = self;
    }
    write(*gradient, {action.step, j, action.micro_batch, action.micro_batch});
    const std::vector<int>& stages = capacity(state, action.buffer);
    demand(std::ranges::find(stages, j) != stages.end(), "the gradient buffer is not for it");
  }

  /// Stages whose gradients fit into a buffer of this device.
  const std::vector<int>& capacity(const DeviceState& state, int buffer) const {
    return schedule_.buffers(static_cast<int>(&state - devices_.data())).gradients[buffer];
  }

  void write(GradientBuffer& buffer, const GradientSum& sum) {
    demand(!buffer.pending.landing && buffer.pending.sends == 0,
           "overwrites a gradient that is being sent or received");
    buffer.sum = sum;
  }

  void accumulate(DeviceState& state, const Action& action) {
    GradientBuffer* to = element(state.gradients, action.buffer);
    GradientBuffer* from = element(state.gradients, action.source);
    if (to == nullptr || from == nullptr) return;
    demand(!from->pending.landing, "reads a gradient that has not landed");
    const GradientSum& low = to->sum.first <= from->sum.first ? to->sum : from->sum;
    const GradientSum& high = to->sum.first <= from->sum.first ? from->sum : to->sum;
    demand(low.step == action.step && high.step == action.step, "adds gradients of another step");
    demand(low.stage == action.stage && high.stage == action.stage, "adds another stage");
    demand(low.first == 0 && high.first == high.last && low.last + 1 == high.first,
           "does not add in index order");
    demand(high.last == action.micro_batch, "adds another micro-batch than it says");
    if (!error_.empty()) return;
    write(*to, {action.step, action.stage, 0, high.last});
    from->sum = {};
  }

  void update(int d, const Action& action) {
    DeviceState& state = devices_[d];
    const int j = action.stage;
    GradientBuffer* gradient = element(state.gradients, action.source);
    if (gradient == nullptr) return;
    demand(schedule_.buffers(d).optimizer[j], "has no optimizer state here");
    demand(!gradient->pending.landing, "reads a gradient that has not landed");
    const GradientSum& sum = gradient->sum;
    demand(sum.step == action.step && sum.stage == j && sum.first == 0 &&
               sum.last == parallel_.micro_batches - 1,
           "its gradient is not complete");
    demand(action.version == action.step + 1, "does not make the next version");
    const ParameterCopy& old = copy_of(state, j, action.step);
    demand(old.version == action.step && old.complete, "its parameters are not here");
    ParameterCopy& next = copy_of(state, j, action.version);
    demand(next.pending.sends == 0 && !next.pending.landing,
           "overwrites parameters that are being sent or received");
    next.version = action.version;
    ++state.updates[action.step];
    if (j == 0) state.known_decision = action.step;
  }

  void release(DeviceState& state, const Action& action) {
    const Occupant self{action.step, action.micro_batch};
    Occupant* frame = element(state.frames[action.stage], action.buffer);
    if (frame == nullptr) return;
    demand(*frame == self, "releases activations that are not there");
    demand(state.backwards[self] >= parallel_.stages - action.stage, "releases before backward");
    *frame = nobody;
    if (action.stage > 0) return;
    const auto input = std::ranges::find(state.inputs, self);
    demand(input != state.inputs.end(), "releases images that are not there");
    if (error_.empty()) *input = nobody;
  }

  /// The buffer a message of this device lands in or leaves from; null for tokens.
  Pending* pending(DeviceState& state, const Action& action) {
    switch (action.payload) {
      case Payload::parameters:
        return &copy_of(state, action.stage, action.version).pending;
      case Payload::gradient:
      case Payload::total: {
        GradientBuffer* buffer = element(state.gradients, action.buffer);
        return buffer == nullptr ? nullptr : &buffer->pending;
      }
      default:
        return nullptr;
    }
  }

  void demand_sendable(DeviceState& state, const Action& action) {
    if (action.payload == Payload::parameters) {
      const ParameterCopy& copy = copy_of(state, action.stage, action.version);
      demand(copy.version == action.version && copy.complete, "what it sends is not here");
    } else if (action.payload == Payload::gradient || action.payload == Payload::total) {
      const GradientBuffer* buffer = element(state.gradients, action.buffer);
      if (buffer == nullptr) return;
      const GradientSum& sum = buffer->sum;
      const int through =
          action.payload == Payload::total ? parallel_.micro_batches - 1 : action.micro_batch;
      demand(!buffer->pending.landing && sum.step == action.step && sum.stage == action.stage &&
                 sum.first == 0 && sum.last == through,
             "what it sends is not here");
    }
  }

  void start(int d, const Action& action) {
    DeviceState& state = devices_[d];
    demand(action.peer >= 0 && action.peer < static_cast<int>(devices_.size()) && action.peer != d,
           "has no peer");
    demand(action.direction ==
               (action.kind == ActionKind::send ? Direction::send : Direction::receive),
           "goes the wrong way");
    if (!error_.empty()) return;
    Pending* buffer = pending(state, action);
    if (!error_.empty()) return;
    if (action.kind == ActionKind::send) {
      demand_sendable(state, action);
      if (buffer != nullptr) ++buffer->sends;
    } else if (buffer != nullptr) {
      demand(buffer->sends == 0 && !buffer->landing, "lands in a buffer that is in use");
      if (action.payload == Payload::parameters) {
        // What lands replaces the version before last, which nobody here may read again.
        copy_of(state, action.stage, action.version).complete = false;
      } else {
        const std::vector<int>& stages = capacity(state, action.buffer);
        demand(std::ranges::find(stages, action.stage) != stages.end(),
               "the gradient buffer is not for it");
        demand(state.gradients[action.buffer].sum.step < action.step ||
                   spent(state.gradients[action.buffer].sum),
               "lands on a gradient that is still needed");
      }
      buffer->landing = true;
    }
    if (!error_.empty()) return;
    state.requests.push_back({action, d, false});
    match(d);
  }

  /// Partial sums were added or sent on; only a complete total that was not read is needed.
  [[nodiscard]] bool spent(const GradientSum& sum) const {
    return sum.step < 0 || sum.last < parallel_.micro_batches - 1;
  }

  /// Completes the newest request of device d when its other end is waiting; messages between two
  /// devices about the same thing keep their order.
  void match(int d) {
    Request& mine = devices_[d].requests.back();
    DeviceState& peer = devices_[mine.action.peer];
    for (Request& other : peer.requests) {
      const Action& a = mine.action;
      const Action& b = other.action;
      if (other.complete || b.peer != d || b.direction == a.direction || b.payload != a.payload ||
          b.stage != a.stage)
        continue;
      demand(a.step == b.step && a.micro_batch == b.micro_batch && a.version == b.version &&
                 a.bytes == b.bytes,
             "meets another message at its peer");
      mine.complete = other.complete = true;
      return;
    }
  }

  void wait(int d, const Action& action) {
    DeviceState& state = devices_[d];
    if (action.direction == Direction::none) return wait_all_reduce(state);
    const auto request = std::ranges::find_if(state.requests, [&](const Request& candidate) {
      const Action& a = candidate.action;
      return a.direction == action.direction && a.payload == action.payload &&
             a.stage == action.stage && a.step == action.step && a.peer == action.peer &&
             a.buffer == action.buffer && a.version == action.version && a.bytes == action.bytes &&
             a.micro_batch == action.micro_batch;
    });
    demand(request != state.requests.end(), "waits for what was never started");
    if (!error_.empty()) return;
    if (!request->complete) {
      blocked_ = true;
      return;
    }
    Pending* buffer = pending(state, action);
    if (buffer != nullptr && action.direction == Direction::send) --buffer->sends;
    if (buffer != nullptr && action.direction == Direction::receive) land(state, action, *buffer);
    state.requests.erase(request);
  }

  void land(DeviceState& state, const Action& action, Pending& buffer) {
    buffer.landing = false;
    if (action.payload == Payload::parameters) {
      ParameterCopy& copy = copy_of(state, action.stage, action.version);
      copy.version = action.version;
      copy.complete = true;
      if (action.stage == 0) state.known_decision = action.version - 1;
      return;
    }
    const int through =
        action.payload == Payload::total ? parallel_.micro_batches - 1 : action.micro_batch;
    state.gradients[action.buffer].sum = {action.step, action.stage, 0, through};
  }

  void all_reduce(DeviceState& state, const Action& action) {
    demand(parallel_.rule == RuleKind::dp, "a collective in a cyclic rule");
    const int self = static_cast<int>(&state - devices_.data());
    for (int j = 0; j < parallel_.stages; ++j) {
      const GradientBuffer* buffer = element(state.gradients, j);
      if (buffer == nullptr) return;
      demand(buffer->sum.step == action.step && buffer->sum.stage == j &&
                 buffer->sum.first == self && buffer->sum.last == self,
             "not all gradients are here");
    }
    demand(!state.in_all_reduce, "starts a second collective");
    state.in_all_reduce = true;
  }

  void wait_all_reduce(DeviceState& state) {
    demand(state.in_all_reduce, "waits for what was never started");
    if (!error_.empty()) return;
    for (DeviceState& other : devices_) {
      // A device that has left already had completed the same sum.
      if (!other.in_all_reduce && other.gradients[0].sum.last - other.gradients[0].sum.first + 1 <
                                      parallel_.micro_batches) {
        blocked_ = true;
        return;
      }
    }
    state.in_all_reduce = false;
    for (int j = 0; j < parallel_.stages; ++j) {
      state.gradients[j].sum.first = 0;
      state.gradients[j].sum.last = parallel_.micro_batches - 1;
    }
  }

  std::optional<Fault> at_the_end() {
    for (int d = 0; d < static_cast<int>(devices_.size()); ++d) {
      DeviceState& state = devices_[d];
      const BufferCounts& counts = schedule_.buffers(d);
      demand(state.requests.empty(), "a message was never waited for");
      for (int j = 0; j < parallel_.stages; ++j) {
        for (int back = 0; back < counts.parameter_copies; ++back) {
          const std::int64_t version = segment_.last - back;
          const ParameterCopy& copy = copy_of(state, j, version);
          demand(copy.version == version && copy.complete, "parameters are not complete");
        }
        demand(std::ranges::count(state.frames[j], nobody) == counts.frames[j],
               "activations were never released");
      }
      const auto per_step = static_cast<std::size_t>(schedule_.local_micro_batches(d));
      const auto steps = static_cast<std::size_t>(segment_.last - segment_.first);
      demand(state.backwards.size() == per_step * steps, "micro-batches are missing");
      for (const auto& [who, backwards] : state.backwards)
        demand(backwards == parallel_.stages, "a backward is missing");
      const auto owned = std::ranges::count(counts.optimizer, true);
      for (std::int64_t t = segment_.first; t < segment_.last; ++t)
        demand(state.updates[t] == owned, "updates are missing");
      if (!error_.empty()) return fault(d, error_);
    }
    return std::nullopt;
  }

  const Schedule& schedule_;
  const ParallelConfig& parallel_;
  Segment segment_;
  const std::vector<std::vector<Action>>& lists_;
  std::vector<DeviceState> devices_;
  std::string error_;
  bool blocked_ = false;
};

}  // namespace

std::optional<Fault> check_actions(const Schedule& schedule, const Segment& segment,
                                   const std::vector<std::vector<Action>>& lists) {
  return Machine(schedule, segment, lists).run();
}

void check_schedule(const Schedule& schedule) {
  const Segment segment{0, schedule.trailing_periods() + 3};
  std::vector<std::vector<Action>> lists;
  for (int d = 0; d < schedule.devices(); ++d) lists.push_back(schedule.actions(d, segment));
  if (const std::optional<Fault> fault = check_actions(schedule, segment, lists))
    fail(ExitCode::internal,
         "the schedule is faulty: {}; this is a bug in Carousel, please report it", fault->text);
}

}  // namespace carousel
