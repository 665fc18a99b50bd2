// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/draw/timeline.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>

namespace carousel {
namespace {

/// Training steps that are looked at: two steady ones and what overlaps them.
constexpr Segment segment{0, 4};
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

std::vector<TimelineRow> rows_of(const Schedule& schedule, int rows) {
  std::vector<TimelineRow> result;
  for (int r = 0; r < rows; ++r) {
    if (schedule.traits().one_device)
      result.push_back({.device = 0, .micro_batch = r});
    else if (schedule.traits().splits_stages)
      result.push_back({.device = r, .stage = schedule.buffers(r).first_stage});
    else if (schedule.rule().passes() > 1)
      result.push_back({.device = r, .worker = r});
    else
      result.push_back({.device = r, .micro_batch = r});
  }
  return result;
}

/// Time steps from the first pass of a training step to its last one.
std::vector<StepSpan> spans_of(const std::vector<std::vector<DrawnPass>>& passes) {
  std::vector<StepSpan> spans(segment.last, {never, 0});
  for (const std::vector<DrawnPass>& row : passes) {
    for (const DrawnPass& pass : row) {
      StepSpan& span = spans[pass.step];
      span = {std::min(span.first, pass.time), std::max(span.end, pass.time + 1)};
    }
  }
  return spans;
}

/// Collects what devices do, one after the other.
class Survey {
 public:
  explicit Survey(const Schedule& schedule)
      : single_(schedule.traits().one_device),
        passes_(single_ ? schedule.rule().micro_batches() : schedule.devices()) {
    const std::vector<std::vector<Action>> lists = schedule.lists(segment);
    for (int d = 0; d < schedule.devices(); ++d)
      for (const Action& action : lists[d]) visit(d, action);
    busy_ = busy_fraction(schedule, lists, 1);
  }

  [[nodiscard]] const std::vector<std::vector<DrawnPass>>& passes() const { return passes_; }
  [[nodiscard]] double busy() const { return busy_; }
  [[nodiscard]] std::vector<int> held(std::int64_t times) const {
    std::vector<int> result;
    int now = 0;
    for (std::int64_t time = 0; time < times; ++time) {
      const auto change = changes_.find(time);
      result.push_back(now += change == changes_.end() ? 0 : change->second);
    }
    return result;
  }

 private:
  void visit(int device, const Action& action) {
    if (action.kind == ActionKind::forward) ++changes_[action.time];
    if (action.kind == ActionKind::release) --changes_[action.time + 1];
    if (!is_pass(action)) return;
    const int row = single_ ? action.micro_batch : device;
    passes_[row].push_back({row, action.time, action.step, action.micro_batch, action.stage,
                            action.version, action.kind == ActionKind::backward});
  }

  bool single_;
  std::vector<std::vector<DrawnPass>> passes_;  // [row]
  std::map<std::int64_t, int> changes_ = {};    // of what is held, at a time step
  double busy_ = 0;
};

/// What the two ends of a message, or all participants of a collective, have in common.
struct Subject {
  ActionKind kind = ActionKind::send;
  Payload payload = Payload::none;
  int stage = -1;
  int micro_batch = -1;
  int from = -1;
  int to = -1;

  auto operator<=>(const Subject&) const = default;
};

/// Walks lists of actions and remembers where both ends of everything that travels stand.
class Routes {
 public:
  explicit Routes(int rows) : rows_(rows) {}

  /// `edge` is where the action stands, before or behind the pass of its time step.
  void visit(int device, const Action& action, std::int64_t edge) {
    if (action.payload == Payload::none || action.payload == Payload::token) return;
    if (is_collective(action))
      visit_collective(device, action, edge);
    else if (action.peer < rows_)
      visit_message(device, action, edge);
  }

  [[nodiscard]] Travels travels() const {
    Travels result;
    for (const auto& [subject, arrow] : arrows_) result.arrows.push_back(arrow);
    for (const auto& [subject, bar] : bars_) result.bars.push_back(bar);
    return result;
  }

 private:
  void visit_message(int device, const Action& action, std::int64_t edge) {
    const bool leaves = action.kind == ActionKind::send;
    const bool needed = action.kind == ActionKind::wait && action.direction == Direction::receive;
    if (!leaves && !needed) return;
    const int from = leaves ? device : action.peer;
    const int to = leaves ? action.peer : device;
    Arrow& arrow =
        arrows_[{ActionKind::send, action.payload, action.stage, action.micro_batch, from, to}];
    arrow.payload = action.payload;
    arrow.stage = action.stage;
    arrow.micro_batch = action.micro_batch;
    arrow.from = from;
    arrow.to = to;
    (leaves ? arrow.begin : arrow.end) = edge;
  }

  void visit_collective(int device, const Action& action, std::int64_t edge) {
    // A wait does not name the kind, but there is one collective per payload, stage and group.
    const Subject subject{ActionKind::wait,   action.payload, action.stage,
                          action.micro_batch, action.peer,    action.group};
    Bar& bar = bars_.try_emplace(subject, Bar{.begin = never, .end = never}).first->second;
    bar.payload = action.payload;
    bar.stage = action.stage;
    bar.group = action.group;
    bar.root = action.peer;
    if (action.kind == ActionKind::wait) {
      bar.end = std::min(bar.end, edge);
      return;
    }
    bar.kind = action.kind;
    bar.rows.push_back(device);
    bar.begin = std::min(bar.begin, edge);
  }

  int rows_;
  std::map<Subject, Arrow> arrows_ = {};
  std::map<Subject, Bar> bars_ = {};
};

}  // namespace

std::string name_of(const TimelineRow& row) {
  if (row.stage >= 0) return fmt::format("stage {}", row.stage);
  if (row.worker >= 0) return fmt::format("worker {}", row.worker);
  return fmt::format("micro-batch {}", row.micro_batch);
}

Timeline timeline_of(const Schedule& schedule, int most_rows, std::int64_t most_times) {
  const Survey survey(schedule);
  const std::vector<StepSpan> spans = spans_of(survey.passes());

  Timeline result;
  result.rows_are_micro_batches = !schedule.traits().splits_stages;
  result.all_rows = static_cast<int>(survey.passes().size());
  result.rows = rows_of(schedule, std::min(result.all_rows, most_rows));
  result.steady = spans[0].end - schedule.period_time();
  result.all_times = 2 * schedule.period_time() + result.steady + 1;
  result.times = std::min(result.all_times, most_times);
  result.held = survey.held(result.all_times);
  result.most_held = *std::ranges::max_element(result.held);
  result.held.resize(result.times);
  result.busy = survey.busy();
  for (const TimelineRow& row : result.rows) {
    for (const DrawnPass& pass : survey.passes()[&row - result.rows.data()])
      if (pass.time < result.times) result.passes.push_back(pass);
  }
  for (const StepSpan& span : spans)
    if (span.first < result.times) result.steps.push_back(span);
  return result;
}

Travels travels_of(const Schedule& schedule, std::int64_t step, int rows) {
  Routes routes(rows);
  for (int d = 0; d < std::min(rows, schedule.devices()); ++d) {
    std::int64_t passed = -1;  // the latest time step whose pass came before
    schedule.for_each(d, segment, [&](const Action& action) {
      if (is_pass(action)) passed = action.time;
      if (action.step == step)
        routes.visit(d, action, action.time + (passed == action.time ? 1 : 0));
    });
  }
  return routes.travels();
}

}  // namespace carousel
