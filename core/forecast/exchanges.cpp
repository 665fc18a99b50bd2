// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/forecast/exchanges.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "core/base/check.hpp"

namespace carousel {
namespace {

/// What the two ends of a message have in common.
struct Subject {
  std::int64_t step = 0;
  std::int64_t version = 0;
  int from = -1;
  int to = -1;
  int stage = -1;
  int piece = -1;
  int micro_batch = -1;
  int payload = 0;

  bool operator==(const Subject&) const = default;

  [[nodiscard]] std::uint64_t hash() const {
    std::uint64_t result = 0;
    const auto mix = [&](std::uint64_t word) {
      result = (result ^ word) * 0x9E3779B97F4A7C15;
      result ^= result >> 29;
    };
    const auto pair = [](int high, int low) {
      return std::uint64_t{static_cast<std::uint32_t>(high)} << 32 |
             static_cast<std::uint32_t>(low);
    };
    mix(pair(from, to));
    mix(pair(stage, micro_batch));
    mix(static_cast<std::uint64_t>(piece));
    mix(static_cast<std::uint64_t>(step));
    mix(static_cast<std::uint64_t>(version) << 8 ^ static_cast<std::uint64_t>(payload));
    return result;
  }
};

/// The exchanges about one subject, oldest first, and the newest that each end has come to.
struct History {
  Subject subject;
  int first = -1;
  int last = -1;
  int sent = -1;
  int posted = -1;
  int sent_and_waited = -1;
  int posted_and_waited = -1;
};

/// Histories by subject; open addressing, since nothing is ever removed.
class Histories {
 public:
  explicit Histories(std::size_t most) : slots_(std::bit_ceil(2 * most + 1), -1) {}

  /// The reference holds until the next call.
  History& operator[](const Subject& subject) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = subject.hash() & mask;
    while (slots_[slot] >= 0 && histories_[slots_[slot]].subject != subject)
      slot = (slot + 1) & mask;
    if (slots_[slot] < 0) {
      slots_[slot] = static_cast<int>(histories_.size());
      histories_.push_back({.subject = subject});
    }
    return histories_[slots_[slot]];
  }

 private:
  std::vector<int> slots_;
  std::vector<History> histories_;
};

class Matcher {
 public:
  Matcher(std::span<const std::vector<Action>> lists, std::vector<std::vector<int>> groups)
      : lists_(lists), histories_(count_starts(lists)) {
    result_.groups = std::move(groups);
    if (result_.groups.empty()) {
      result_.groups.emplace_back(lists.size());
      std::iota(result_.groups[0].begin(), result_.groups[0].end(), 0);
    }
    for (std::vector<int>& group : result_.groups) std::ranges::sort(group);
  }

  Exchanges run() {
    const int devices = static_cast<int>(lists_.size());
    result_.of.resize(devices);
    collectives_.resize(result_.groups.size());
    for (int d = 0; d < devices; ++d) {
      pending_.clear();
      result_.of[d].assign(lists_[d].size(), -1);
      for (std::size_t k = 0; k < lists_[d].size(); ++k) {
        const Action& action = lists_[d][k];
        if (!starts_message(action) && action.kind != ActionKind::wait) continue;
        result_.of[d][k] = is_collective(action) ? collective(d, k) : message(d, k);
      }
    }
    return std::move(result_);
  }

 private:
  /// The collectives of a group in order, and how many of them `device` has started.
  struct Collectives {
    std::vector<int> exchanges;
    int device = -1;
    std::size_t started = 0;
  };
  /// A collective that the device at hand has started and not yet waited for.
  struct Pending {
    int exchange = -1;
    std::size_t index = 0;  // of its start
  };

  static std::size_t count_starts(std::span<const std::vector<Action>> lists) {
    std::size_t count = 0;
    for (const std::vector<Action>& list : lists)
      count += static_cast<std::size_t>(std::ranges::count_if(list, starts_message));
    return count;
  }

  [[noreturn]] void refuse(int d, std::size_t k, const char* why) const {
    fail(ExitCode::internal, "{}: {}", action_name(d, k, lists_[d][k]), why);
  }

  int message(int d, std::size_t k) {
    const Action& a = lists_[d][k];
    if (a.peer < 0 || a.peer >= std::ssize(lists_) || a.peer == d) refuse(d, k, "has no other end");
    const bool sends = a.kind == ActionKind::send ||
                       (a.kind == ActionKind::wait && a.direction == Direction::send);
    History& history = histories_[{.step = a.step,
                                   .version = a.version,
                                   .from = sends ? d : a.peer,
                                   .to = sends ? a.peer : d,
                                   .stage = a.stage,
                                   .piece = a.piece,
                                   .micro_batch = a.micro_batch,
                                   .payload = static_cast<int>(a.payload)}];
    int& started = sends ? history.sent : history.posted;
    if (a.kind == ActionKind::wait) {
      int& waited = sends ? history.sent_and_waited : history.posted_and_waited;
      if (started == waited) refuse(d, k, "waits for what was never started");
      return waited = after(history, waited);
    }
    const int next = after(history, started);
    started = next >= 0 ? next : append(history, a.bytes);
    Exchange& exchange = result_.all[started];
    if (exchange.bytes != a.bytes) refuse(d, k, "meets a message of another size at its peer");
    if (sends) exchange.index = k;
    ++exchange.started;
    return started;
  }

  [[nodiscard]] int after(const History& history, int exchange) const {
    return exchange < 0 ? history.first : next_[exchange];
  }

  int append(History& history, std::int64_t bytes) {
    const int exchange =
        add({.from = history.subject.from, .to = history.subject.to, .bytes = bytes});
    (history.last < 0 ? history.first : next_[history.last]) = exchange;
    return history.last = exchange;
  }

  int collective(int d, std::size_t k) {
    const Action& a = lists_[d][k];
    const int group = a.group;
    if (group < 0 || group >= std::ssize(result_.groups) ||
        !std::ranges::binary_search(result_.groups.at(group), d))
      refuse(d, k, "is of a group that the device does not belong to");
    if (a.kind == ActionKind::wait) return take_pending(d, k);
    Collectives& calls = collectives_[group];
    if (calls.device != d) {
      calls.device = d;
      calls.started = 0;
    }
    if (calls.started == calls.exchanges.size())
      calls.exchanges.push_back(add({.kind = a.kind,
                                     .from = a.peer >= 0 ? a.peer : result_.groups[group][0],
                                     .group = group,
                                     .bytes = a.bytes,
                                     .index = k}));
    const int started = calls.exchanges[calls.started++];
    Exchange& exchange = result_.all[started];
    if (exchange.kind != a.kind || exchange.bytes != a.bytes)
      refuse(d, k, "meets another collective of the group");
    ++exchange.started;
    pending_.push_back({started, k});
    return started;
  }

  /// The oldest pending collective that the wait is for; few are pending at once.
  int take_pending(int d, std::size_t k) {
    const auto found = std::ranges::find_if(pending_, [&](const Pending& pending) {
      Action wait = wait_for(lists_[d][pending.index]);
      wait.time = lists_[d][k].time;
      return wait == lists_[d][k];
    });
    if (found == pending_.end()) refuse(d, k, "waits for what was never started");
    const int exchange = found->exchange;
    pending_.erase(found);
    return exchange;
  }

  int add(const Exchange& exchange) {
    result_.all.push_back(exchange);
    next_.push_back(-1);
    return static_cast<int>(result_.all.size()) - 1;
  }

  std::span<const std::vector<Action>> lists_;
  Histories histories_;
  std::vector<int> next_;                 // [exchange] the next one about its subject
  std::vector<Collectives> collectives_;  // [group]
  std::vector<Pending> pending_;
  Exchanges result_;
};

}  // namespace

std::string action_name(int device, std::size_t index, const Action& action) {
  return fmt::format("device {}, action {}: {}", device, index, to_string(action));
}

Exchanges match_exchanges(std::span<const std::vector<Action>> lists,
                          std::vector<std::vector<int>> groups) {
  return Matcher(lists, std::move(groups)).run();
}

}  // namespace carousel
