// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/audit/verify_rank.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "core/plan/account.hpp"

namespace carousel {
namespace {

constexpr double never = std::numeric_limits<double>::max();

/// When each action ran.
struct Times {
  std::vector<double> begin;  // [row]
  std::vector<double> end;
};

std::vector<AccountedAction> all_actions(const Expectation& expected, int device,
                                         std::span<const Segment> segments) {
  std::vector<AccountedAction> all;
  for (const Segment& segment : segments) {
    const std::vector<AccountedAction> some =
        account(expected.schedule, expected.memory.stages, device, segment, expected.profiled);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

/// The rows of /actions are the actions of the plan, one after the other in time.
Times verify_actions(const JudgedFile& file, std::span<const AccountedAction> plan) {
  const auto kind = file.column<std::string>("/actions/kind", plan.size());
  const auto step = file.column<std::int64_t>("/actions/step", plan.size());
  const auto micro_batch = file.column<std::int64_t>("/actions/micro_batch", plan.size());
  const auto stage = file.column<std::int64_t>("/actions/stage", plan.size());
  const auto version = file.column<std::int64_t>("/actions/version", plan.size());
  Times times{file.column<double>("/actions/begin", plan.size()),
              file.column<double>("/actions/end", plan.size())};
  double before = 0;
  for (std::size_t k = 0; k < plan.size(); ++k) {
    const Action& action = plan[k].action;
    file.demand("/actions/kind", k, kind[k], to_string(action.kind));
    file.demand("/actions/step", k, step[k], action.step);
    file.demand("/actions/micro_batch", k, micro_batch[k], action.micro_batch);
    file.demand("/actions/stage", k, stage[k], action.stage);
    file.demand("/actions/version", k, version[k], action.version);
    file.demand_within("/actions/begin", k, times.begin[k], before, never);
    file.demand_within("/actions/end", k, times.end[k], times.begin[k], never);
    before = times.end[k];
  }
  return times;
}

/// After every action exactly the planned bytes are in use, category by category.
void verify_memory(const JudgedFile& file, std::span<const AccountedAction> plan,
                   const Times& times, CategoryBytes in_use) {
  const auto seconds = file.column<double>("/memory/seconds", plan.size());
  const auto action = file.column<std::int64_t>("/memory/action", plan.size());
  for (std::size_t k = 0; k < plan.size(); ++k) {
    file.demand("/memory/seconds", k, seconds[k], times.end[k]);
    file.demand("/memory/action", k, action[k], static_cast<std::int64_t>(k));
  }
  for (std::size_t c = 0; c < category_count; ++c) {
    const auto category = static_cast<Category>(c);
    const std::string name = fmt::format("/memory/{}", to_string(category));
    const auto bytes = file.column<std::int64_t>(name, plan.size());
    for (std::size_t k = 0; k < plan.size(); ++k) {
      if (category == Category::activations) in_use[c] = plan[k].activation_bytes;
      file.demand(name, k, bytes[k], in_use[c]);
    }
  }
}

/// Rows of /messages are written where they are waited for.
class MessageRows {
 public:
  MessageRows(const JudgedFile& file, std::size_t rows)
      : file_(file),
        kind_(file.column<std::string>("/messages/kind", rows)),
        direction_(file.column<std::string>("/messages/direction", rows)),
        step_(file.column<std::int64_t>("/messages/step", rows)),
        stage_(file.column<std::int64_t>("/messages/stage", rows)),
        micro_batch_(file.column<std::int64_t>("/messages/micro_batch", rows)),
        peer_(file.column<std::int64_t>("/messages/peer", rows)),
        bytes_(file.column<std::int64_t>("/messages/bytes", rows)),
        posted_(file.column<double>("/messages/posted", rows)),
        completed_(file.column<double>("/messages/completed", rows)),
        waited_(file.column<double>("/messages/waited", rows)) {}

  /// Row `m` tells of the message that action `start` of the plan began and action `wait` ended.
  void verify(std::size_t m, const Action& action, const Times& times, std::size_t start,
              std::size_t wait) const {
    const bool sent = action.direction == Direction::send;
    file_.demand("/messages/kind", m, kind_[m], to_string(action.payload));
    file_.demand("/messages/direction", m, direction_[m], sent ? "send" : "receive");
    file_.demand("/messages/step", m, step_[m], action.step);
    file_.demand("/messages/stage", m, stage_[m], action.stage);
    file_.demand("/messages/micro_batch", m, micro_batch_[m], action.micro_batch);
    file_.demand("/messages/peer", m, peer_[m], action.peer);
    file_.demand("/messages/bytes", m, bytes_[m], action.bytes);
    file_.demand_within("/messages/posted", m, posted_[m], times.begin[start], times.end[start]);
    file_.demand_within("/messages/completed", m, completed_[m], times.begin[start],
                        times.end[wait]);
    constexpr double rounding = 1e-9;  // of the difference of two times
    file_.demand_within("/messages/waited", m, waited_[m], 0,
                        times.end[wait] - times.begin[wait] + rounding);
  }

 private:
  const JudgedFile& file_;
  std::vector<std::string> kind_;
  std::vector<std::string> direction_;
  std::vector<std::int64_t> step_;
  std::vector<std::int64_t> stage_;
  std::vector<std::int64_t> micro_batch_;
  std::vector<std::int64_t> peer_;
  std::vector<std::int64_t> bytes_;
  std::vector<double> posted_;
  std::vector<double> completed_;
  std::vector<double> waited_;
};

std::vector<MessageEnd> verify_messages(const JudgedFile& file,
                                        std::span<const AccountedAction> plan, const Times& times) {
  const auto waits = [](const AccountedAction& one) { return one.action.kind == ActionKind::wait; };
  const MessageRows rows(file, static_cast<std::size_t>(std::ranges::count_if(plan, waits)));
  std::vector<MessageEnd> ends;
  std::vector<std::size_t> started;  // rows of actions
  for (std::size_t k = 0; k < plan.size(); ++k) {
    const Action& action = plan[k].action;
    if (action.payload == Payload::none) continue;
    if (!waits(plan[k])) {
      started.push_back(k);
      continue;
    }
    // A step is profiled as a whole, so that the start is on record where the wait is.
    const auto start = std::ranges::find_if(
        started, [&](std::size_t row) { return same_message(plan[row].action, action); });
    CAROUSEL_CHECK(start != started.end(), "nothing was started for: {}", to_string(action));
    rows.verify(ends.size(), action, times, *start, k);
    started.erase(start);
    ends.push_back({.kind = to_string(action.payload),
                    .step = action.step,
                    .stage = action.stage,
                    .micro_batch = action.micro_batch,
                    .peer = action.peer,
                    .bytes = action.bytes,
                    .sent = action.direction == Direction::send,
                    .collective = is_collective(action)});
  }
  return ends;
}

/// Peaks are those of the plan, counts those of a training step times the steps made.
void verify_totals(const JudgedFile& file, const Expectation& expected, int device,
                   std::span<const Segment> segments) {
  const hdf5::File& hdf5 = file.hdf5();
  if (!hdf5.contains("/measured")) {
    if (segments.empty()) return;
    file.wrong("/measured is missing");
  }
  // Segments of one length that begin with the same turn of a team have the same peak.
  const Schedule& schedule = expected.schedule;
  const std::int64_t turns = schedule.program(device).team;
  std::set<std::pair<std::int64_t, std::int64_t>> kinds;  // first step, steps
  for (const Segment& segment : segments)
    kinds.emplace(segment.first % turns, segment.last - segment.first);
  CategoryBytes peak = expected.plan.bytes[static_cast<std::size_t>(device)];
  std::int64_t& activations = peak[static_cast<std::size_t>(Category::activations)];
  activations = 0;
  for (const auto& [first, steps] : kinds)
    activations = std::max(activations, peak_activations(schedule, expected.memory.stages, device,
                                                         {first, first + steps}));
  for (std::size_t c = 0; c < category_count; ++c) {
    const char* name = to_string(static_cast<Category>(c));
    file.demand_attribute("/measured/peak_bytes", name, hdf5.integer("/measured/peak_bytes", name),
                          peak[c]);
  }
  Traffic sent;
  for (const Segment& segment : segments) {
    const Traffic more = sent_in(schedule, device, segment);
    sent = {sent.messages + more.messages, sent.bytes + more.bytes};
  }
  file.demand_attribute("/measured", "messages_sent", hdf5.integer("/measured", "messages_sent"),
                        sent.messages);
  file.demand_attribute("/measured", "bytes_sent", hdf5.integer("/measured", "bytes_sent"),
                        sent.bytes);
}

}  // namespace

VerifiedRank verify_rank(const JudgedFile& file, const Expectation& expected, int device,
                         std::span<const Segment> segments) {
  const std::vector<AccountedAction> plan = all_actions(expected, device, segments);
  const Times times = verify_actions(file, plan);
  verify_memory(file, plan, times, expected.plan.bytes[static_cast<std::size_t>(device)]);
  VerifiedRank result{.actions = std::ssize(plan), .messages = verify_messages(file, plan, times)};
  verify_totals(file, expected, device, segments);
  return result;
}

}  // namespace carousel
