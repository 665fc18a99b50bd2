// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/forecast/simulator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/random.hpp"
#include "core/forecast/event_queue.hpp"
#include "core/forecast/exchanges.hpp"

namespace carousel {
namespace {

/// One direction of a device's link.
struct Port {
  double free = 0;     // from then on
  EventQueue waiting;  // in the order of `ready`: their times are all 0
};

constexpr double never = std::numeric_limits<double>::infinity();

class Simulator {
 public:
  explicit Simulator(const SimulationInput& input)
      : input_(input),
        key_(random_key(input.seed, "simulated jitter")),
        exchanges_(match_exchanges(input.lists, input.groups)),
        states_(exchanges_.all.size()),
        positions_(input.lists.size()),
        ports_(2 * input.lists.size()) {
    CAROUSEL_CHECK(input.jitter >= 0 && input.jitter <= 1, "jitter {}", input.jitter);
    CAROUSEL_CHECK(input.slowness.empty() || input.slowness.size() == input.lists.size(),
                   "{} factors for {} devices", input.slowness.size(), input.lists.size());
    result_.devices.resize(input.lists.size());
    if (!input.keep_actions) return;
    for (const std::vector<Action>& list : input.lists) result_.actions.emplace_back(list.size());
  }

  Simulation run() {
    for (int d = 0; d < std::ssize(positions_); ++d) run_device(d);
    run_resumed();
    while (!events_.empty()) {
      serve(events_.pop());
      run_resumed();
    }
    check_end();
    for (const auto& [step, end] : step_ends_) result_.steps.push_back({step, end});
    for (int d = 0; d < std::ssize(positions_); ++d) {
      result_.devices[d].end = positions_[d].now;
      result_.seconds = std::max(result_.seconds, positions_[d].now);
    }
    return std::move(result_);
  }

 private:
  struct State {
    double ready = 0;
    double complete = never;
    int started = 0;
  };

  struct Position {
    double now = 0;
    std::size_t next = 0;  // action
    int blocked_on = -1;   // exchange
  };

  /// Runs until the end of the list or a wait whose end is not known yet. What it starts lies at or
  /// after the event that is being served, so events keep their order.
  void run_device(int d) {
    Position& position = positions_[d];
    const std::vector<Action>& list = input_.lists[d];
    const std::vector<int>& exchange_of = exchanges_.of[d];
    for (; position.next < list.size(); ++position.next) {
      const Action& action = list[position.next];
      const double begin = position.now;
      const int exchange = exchange_of[position.next];
      if (action.kind == ActionKind::wait) {
        if (states_[exchange].complete == never) {
          position.blocked_on = exchange;
          return;
        }
        position.now = std::max(begin, states_[exchange].complete);
        result_.devices[d].blocked += position.now - begin;
      } else if (exchange >= 0) {
        start(exchange, begin);
      } else {
        const double seconds = seconds_of(d, position.next, action);
        position.now += seconds;
        result_.devices[d].busy += seconds;
        if (action.kind == ActionKind::update) {
          double& end = step_ends_[action.step];
          end = std::max(end, position.now);
        }
      }
      if (input_.keep_actions) result_.actions[d][position.next] = {begin, position.now};
    }
  }

  void run_resumed() {
    while (!resumed_.empty()) {
      const int device = resumed_.back();
      resumed_.pop_back();
      run_device(device);
    }
  }

  [[nodiscard]] double seconds_of(int d, std::size_t index, const Action& action) const {
    double seconds = input_.seconds(d, action);
    if (!input_.slowness.empty()) seconds *= input_.slowness[d];
    if (input_.jitter == 0) return seconds;
    const double uniform = uniform01(key_, static_cast<std::uint64_t>(d), index);
    return seconds * (1 - input_.jitter - input_.jitter * std::log1p(-uniform));
  }

  /// One participant has come to the exchange.
  void start(int id, double now) {
    State& state = states_[id];
    const Exchange& exchange = exchanges_.all[id];
    state.ready = std::max(state.ready, now);
    const int participants =
        exchange.group < 0 ? 2 : static_cast<int>(exchanges_.groups[exchange.group].size());
    if (++state.started < participants) return;
    if (occupied_seconds(exchange) == 0)
      complete(id, state.ready);
    else
      events_.push({state.ready, state.ready, exchange.from, static_cast<int>(exchange.index), id});
  }

  [[nodiscard]] double occupied_seconds(const Exchange& exchange) const {
    if (exchange.group >= 0) return collective_seconds(exchange);
    return static_cast<double>(exchange.bytes) /
           input_.machine.bandwidth(exchange.from, exchange.to);
  }

  [[nodiscard]] double collective_seconds(const Exchange& exchange) const {
    switch (exchange.kind) {
      case ActionKind::all_reduce:
        return all_reduce_seconds(input_.machine, exchanges_.groups[exchange.group],
                                  exchange.bytes);
      case ActionKind::reduce_scatter:
      case ActionKind::all_gather:
        return scatter_seconds(input_.machine, exchanges_.groups[exchange.group], exchange.bytes);
      case ActionKind::broadcast:
      case ActionKind::reduce:
        return chain_seconds(input_.machine, exchanges_.groups[exchange.group], exchange.bytes);
      default:
        fail(ExitCode::internal, "{} is no collective", to_string(exchange.kind));
    }
  }

  /// Calls visit(device) for all who take part.
  template <class Visit>
  void for_participants(const Exchange& exchange, Visit&& visit) const {
    if (exchange.group < 0) {
      visit(exchange.from);
      visit(exchange.to);
    } else {
      for (const int device : exchanges_.groups[exchange.group]) visit(device);
    }
  }

  /// Calls visit(port) for all that the exchange needs: 2 d sends from device d, 2 d + 1 receives.
  template <class Visit>
  void for_ports(const Exchange& exchange, Visit&& visit) const {
    for_participants(exchange, [&](int device) {
      if (exchange.group >= 0 || device == exchange.from) visit(2 * device);
      if (exchange.group >= 0 || device == exchange.to) visit(2 * device + 1);
    });
  }

  /// Begins the exchange if its ports are free, or lets it queue for the one that is free last.
  /// Only the first of every queue is among the events.
  void serve(const Event& event) {
    const double now = event.time;
    if (event.port >= 0) {
      Port& port = ports_[event.port];
      const bool first = !port.waiting.empty() && port.waiting.top().exchange == event.exchange;
      if (!first || port.free > now) return;  // another event stands for it
      port.waiting.pop();
    }
    const Exchange& exchange = exchanges_.all[event.exchange];
    int busiest = -1;
    double free = now;
    for_ports(exchange, [&](int port) {
      if (ports_[port].free <= free) return;
      free = ports_[port].free;
      busiest = port;
    });
    if (busiest >= 0) {
      EventQueue& queue = ports_[busiest].waiting;
      queue.push({0, event.ready, event.from, event.index, event.exchange, busiest});
      if (queue.top().exchange == event.exchange) announce(busiest, now);
      if (event.port >= 0) announce(event.port, now);
      return;
    }
    const double end = now + occupied_seconds(exchange);
    for_ports(exchange, [&](int port) {
      ports_[port].free = end;
      announce(port, now);
    });
    if (input_.keep_transfers) record(exchange, now, end);
    complete(event.exchange, end);
  }

  /// Makes the first of a queue an event at the time when its port is free.
  void announce(int port, double now) {
    if (ports_[port].waiting.empty()) return;
    Event event = ports_[port].waiting.top();
    event.time = std::max(now, ports_[port].free);
    events_.push(event);
  }

  /// The ports are free again; the bytes arrive one latency later. That of a collective is in its
  /// hops.
  void complete(int id, double end) {
    const Exchange& exchange = exchanges_.all[id];
    const double latency =
        exchange.group < 0 ? input_.machine.latency(exchange.from, exchange.to) : 0;
    states_[id].complete = end + latency;
    for_participants(exchange, [&](int device) {
      if (positions_[device].blocked_on != id) return;
      positions_[device].blocked_on = -1;
      resumed_.push_back(device);
    });
  }

  void record(const Exchange& exchange, double begin, double end) {
    if (exchange.group < 0) {
      result_.transfers.push_back(
          {begin, end, exchange.from, exchange.to, static_cast<double>(exchange.bytes)});
      return;
    }
    const std::vector<int>& group = exchanges_.groups[exchange.group];
    const auto p = static_cast<double>(group.size());
    const bool all = exchange.kind == ActionKind::all_reduce;
    const bool pieces =
        exchange.kind == ActionKind::reduce_scatter || exchange.kind == ActionKind::all_gather;
    const double share = all ? 2 * (p - 1) / p : pieces ? (p - 1) / p : 1;
    const double bytes = static_cast<double>(exchange.bytes) * share;
    for (std::size_t k = 0; k < group.size(); ++k) {
      const int from = group[k];
      const int to = group[(k + 1) % group.size()];
      // A chain begins or ends at its root, so that one link of the ring stays idle.
      const int idle = exchange.kind == ActionKind::broadcast ? to : from;
      if (all || pieces || idle != exchange.from)
        result_.transfers.push_back({begin, end, from, to, bytes});
    }
  }

  void check_end() const {
    for (int d = 0; d < std::ssize(positions_); ++d) {
      const std::size_t next = positions_[d].next;
      if (next < input_.lists[d].size())
        fail(ExitCode::internal, "{}: waits for ever", action_name(d, next, input_.lists[d][next]));
    }
  }

  const SimulationInput& input_;
  std::uint64_t key_;
  Exchanges exchanges_;
  std::vector<State> states_;        // [exchange]
  std::vector<Position> positions_;  // [device]
  std::vector<Port> ports_;
  EventQueue events_;
  std::vector<int> resumed_;  // devices whose wait is over
  std::map<std::int64_t, double> step_ends_;
  Simulation result_;
};

}  // namespace

Simulation simulate(const SimulationInput& input) {
  return Simulator(input).run();
}

double Simulation::seconds_per_step(std::int64_t first, std::int64_t last) const {
  const auto end_of = [&](std::int64_t step) {
    const auto found = std::ranges::lower_bound(steps, step, {}, &StepEnd::step);
    CAROUSEL_CHECK(found != steps.end() && found->step == step, "step {} has no update", step);
    return found->end;
  };
  CAROUSEL_CHECK(first < last, "no steps between {} and {}", first, last);
  return (end_of(last) - end_of(first)) / static_cast<double>(last - first);
}

Exposure exposed_communication(SimulationInput input, std::int64_t first, std::int64_t last) {
  Exposure exposure;
  exposure.step = simulate(input).seconds_per_step(first, last);
  input.machine = with_ideal_links(input.machine);
  exposure.ideal_step = simulate(input).seconds_per_step(first, last);
  return exposure;
}

}  // namespace carousel
