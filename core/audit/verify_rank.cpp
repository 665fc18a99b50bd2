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

/// The rows of /actions are the actions of the plan, one after the other in time unless several
/// queues share them.
std::vector<ActionRecord> verify_actions(const JudgedFile& file,
                                         std::span<const AccountedAction> plan, bool share,
                                         std::set<std::string>& words) {
  auto rows = file.rows<ActionRecord>(plan.size(), words);
  double before = 0;
  for (std::size_t k = 0; k < plan.size(); ++k) {
    const Action& action = plan[k].action;
    file.demand_row<ActionRecord>(k, rows[k],
                                  {.kind = to_string(action.kind),
                                   .step = action.step,
                                   .micro_batch = action.micro_batch,
                                   .stage = action.stage,
                                   .piece = action.piece,
                                   .version = action.version});
    file.demand_within("/actions/begin", k, rows[k].begin, before, never);
    file.demand_within("/actions/end", k, rows[k].end, rows[k].begin, never);
    before = share ? 0 : rows[k].end;
  }
  return rows;
}

/// After every action exactly the planned bytes are in use, category by category.
void verify_memory(const JudgedFile& file, std::span<const AccountedAction> plan,
                   std::span<const ActionRecord> actions, CategoryBytes in_use) {
  std::set<std::string> words;  // these records have none
  const auto rows = file.rows<MemoryRecord>(plan.size(), words);
  for (std::size_t k = 0; k < plan.size(); ++k) {
    in_use[static_cast<std::size_t>(Category::activations)] = plan[k].activation_bytes;
    file.demand("/memory/seconds", k, rows[k].seconds, actions[k].end);
    file.demand_row<MemoryRecord>(k, rows[k],
                                  {.action = static_cast<std::int64_t>(k), .bytes = in_use});
  }
}

/// Row `m` of /messages tells of the message that action `start` of the plan began and `wait`
/// ended.
void verify_message(const JudgedFile& file, std::size_t m, const MessageRecord& row,
                    const Action& action, const ActionRecord& start, const ActionRecord& wait) {
  file.demand_row<MessageRecord>(
      m, row,
      {.kind = to_string(action.payload),
       .direction = action.direction == Direction::send ? "send" : "receive",
       .step = action.step,
       .stage = action.stage,
       .piece = action.piece,
       .micro_batch = action.micro_batch,
       .peer = action.peer,
       .bytes = action.bytes});
  // Its queue starts a message at any time behind the action that hands it over.
  file.demand_within("/messages/posted", m, row.posted, start.begin, wait.end);
  file.demand_within("/messages/completed", m, row.completed, row.posted, wait.end);
  constexpr double rounding = 1e-9;  // of the difference of two times
  file.demand_within("/messages/waited", m, row.waited, 0, wait.end - wait.begin + rounding);
}

/// Rows of /messages are written where they are waited for.
std::vector<MessageEnd> verify_messages(const JudgedFile& file,
                                        std::span<const AccountedAction> plan,
                                        std::span<const ActionRecord> actions) {
  const auto waits = [](const AccountedAction& one) { return one.action.kind == ActionKind::wait; };
  std::set<std::string> words;
  const auto rows =
      file.rows<MessageRecord>(static_cast<std::size_t>(std::ranges::count_if(plan, waits)), words);
  std::vector<MessageEnd> ends;
  std::vector<std::size_t> started;  // rows of actions
  for (std::size_t k = 0; k < plan.size(); ++k) {
    const Action& action = plan[k].action;
    if (starts_message(action)) started.push_back(k);
    if (!waits(plan[k])) continue;
    // A step is profiled as a whole, so that the start is on record where the wait is.
    const auto start = std::ranges::find_if(
        started, [&](std::size_t row) { return same_message(plan[row].action, action); });
    CAROUSEL_CHECK(start != started.end(), "nothing was started for: {}", to_string(action));
    verify_message(file, ends.size(), rows[ends.size()], action, actions[*start], actions[k]);
    started.erase(start);
    ends.push_back({.kind = to_string(action.payload),
                    .step = action.step,
                    .stage = action.stage,
                    .piece = action.piece,
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
  std::set<std::string> words;
  const std::vector<ActionRecord> actions = verify_actions(
      file, plan, expected.memory.devices[static_cast<std::size_t>(device)].queues() > 1, words);
  verify_memory(file, plan, actions, expected.plan.bytes[static_cast<std::size_t>(device)]);
  VerifiedRank result{.actions = std::ssize(plan),
                      .messages = verify_messages(file, plan, actions)};
  verify_totals(file, expected, device, segments);
  return result;
}

}  // namespace carousel
