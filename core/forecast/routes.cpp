// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/forecast/routes.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/text.hpp"

namespace carousel {
namespace {

constexpr std::int64_t steady_step = 4;
constexpr std::size_t most_rows = 16;

/// "0 .. 3", "0, 2", or "0, 2 .. 14" where there are gaps.
std::string members(const std::vector<int>& devices) {
  const std::size_t count = devices.size();
  if (count == 1) return fmt::format("{}", devices[0]);
  const bool gaps = devices.back() - devices.front() + 1 != std::ssize(devices);
  if (!gaps) return fmt::format("{} .. {}", devices.front(), devices.back());
  if (count == 2) return fmt::format("{}, {}", devices[0], devices[1]);
  return fmt::format("{}, {}{} {}", devices[0], devices[1], count == 3 ? "," : " ..",
                     devices.back());
}

/// Whether all devices of a collective send and get the same.
bool is_of_all(ActionKind kind) {
  return kind == ActionKind::all_reduce || kind == ActionKind::reduce_scatter ||
         kind == ActionKind::all_gather;
}

}  // namespace

int hops_of(ActionKind kind, std::size_t devices) {
  const int chain = static_cast<int>(devices) - 1;
  return kind == ActionKind::all_reduce ? 2 * chain : chain;
}

Traffic sum_of(const std::vector<Route>& routes) {
  Traffic sum;
  for (const Route& route : routes) {
    sum.messages += route.sent.messages;
    sum.bytes += route.sent.bytes;
  }
  return sum;
}

std::vector<Route> routes_of(const Schedule& schedule) {
  return routes_of(schedule, schedule.lists({0, steady_step + 1}), steady_step);
}

std::vector<Route> routes_of(const Schedule& schedule,
                             const std::vector<std::vector<Action>>& lists, std::int64_t step) {
  std::map<std::tuple<int, ActionKind, int, int>, Traffic> sums;
  for (int d = 0; d < schedule.devices(); ++d) {
    for (const Action& action : lists[d]) {
      const bool joint = is_collective(action) && action.kind != ActionKind::wait;
      const bool counts =
          joint ? schedule.groups()[action.group].front() == d : action.kind == ActionKind::send;
      if (action.step != step || !counts) continue;
      if (joint) {
        const std::size_t p = schedule.groups()[action.group].size();
        const int hops = hops_of(action.kind, p);
        Traffic& sum = sums[{action.group, action.kind, action.peer, -1}];
        // Every hop of a ring is on all its links at once, with one p-th of the bytes.
        sum.messages += hops * (is_of_all(action.kind) ? static_cast<std::int64_t>(p) : 1);
        sum.bytes += hops * action.bytes;
      } else {
        Traffic& sum = sums[{-1, action.kind, d, action.peer}];
        ++sum.messages;
        sum.bytes += action.bytes;
      }
    }
  }
  std::vector<Route> routes;
  for (const auto& [who, sent] : sums) {
    const auto& [group, kind, from, to] = who;
    routes.push_back({.from = from, .to = to, .group = group, .kind = kind, .sent = sent});
  }
  return routes;
}

std::string to_string(const std::vector<Route>& routes, const Schedule& schedule) {
  if (routes.empty()) return "";
  const auto row = [](const std::string& from, const std::string& to, const std::string& messages,
                      const std::string& bytes) {
    return fmt::format("{:>18}{:>18}{:>12}{:>14}\n", from, to, messages, bytes);
  };
  std::string text = row("sent per step from", "to", "messages", "bytes");
  const std::size_t rows = routes.size() > most_rows ? most_rows - 1 : routes.size();
  for (std::size_t k = 0; k < rows; ++k) {
    const Route& route = routes[k];
    std::string from = route.from >= 0 ? fmt::format("{}", route.from) : "";
    std::string to = fmt::format("{}", route.to);
    if (route.group >= 0) {
      std::vector<int> devices = schedule.groups()[route.group];
      std::ranges::sort(devices);
      to = members(devices);
      // What is reduced comes from all and goes to the owner.
      if (route.kind == ActionKind::reduce) std::swap(from, to);
      if (is_of_all(route.kind)) from = to;
    }
    text += row(from, to, fmt::format("{}", route.sent.messages), human_bytes(route.sent.bytes));
    if (route.group >= 0) text.insert(text.size() - 1, fmt::format("  {}", to_string(route.kind)));
  }
  if (routes.size() > rows) {
    const Traffic rest = sum_of({routes.begin() + static_cast<std::ptrdiff_t>(rows), routes.end()});
    text += row(fmt::format("{} more", routes.size() - rows), "", fmt::format("{}", rest.messages),
                human_bytes(rest.bytes));
  }
  return text;
}

}  // namespace carousel
