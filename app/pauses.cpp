// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/pauses.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <utility>

namespace carousel {
namespace {

struct Stop {
  int signal;
  const char* name;
};
constexpr std::array stops{Stop{SIGTERM, "SIGTERM"}, Stop{SIGINT, "SIGINT"},
                           Stop{SIGUSR1, "SIGUSR1"}};

std::atomic<int> heard = 0;             // the first signal
std::atomic<std::int64_t> pressed = 0;  // when SIGINT first came, in nanoseconds; 0: never
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

/// May call nothing but what is safe in a signal handler.
void hear(int signal) {
  int none = 0;
  heard.compare_exchange_strong(none, signal);
  if (signal != SIGINT) return;
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const std::int64_t now = std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  std::int64_t never = 0;
  // Launchers repeat the signal that the terminal has sent to all; a person takes longer.
  if (!pressed.compare_exchange_strong(never, now) && now - never > 1'000'000'000)
    _exit(128 + SIGINT);
}

}  // namespace

void listen_to_signals() {
  struct sigaction action {};
  action.sa_handler = hear;
  action.sa_flags = SA_RESTART;  // no read or write fails for it
  sigemptyset(&action.sa_mask);
  sigset_t held;
  sigemptyset(&held);
  for (const Stop& stop : stops) {
    sigaction(stop.signal, &action, nullptr);
    sigaddset(&held, stop.signal);
  }
  sigprocmask(SIG_UNBLOCK, &held, nullptr);  // what the front end held until now comes now
}

Pauses::Pauses(const RunConfig& config, std::function<double()> seconds)
    : seconds_(std::move(seconds)),
      wall_clock_(config.run.wall_clock),
      end_(wall_clock_seconds(config.run.wall_clock)),
      every_seconds_(60 * config.checkpoint.every_minutes) {}

bool Pauses::wanted() const {
  return heard.load(std::memory_order_relaxed) != 0 || is_over() || save_is_due();
}

std::string Pauses::stop_reason() const {
  for (const Stop& stop : stops)
    if (heard.load(std::memory_order_relaxed) == stop.signal) return stop.name;
  return is_over() ? fmt::format("run.wall_clock = \"{}\"", wall_clock_) : "";
}

Pauses::Decision Pauses::decide(const Ranks& ranks) const {
  std::array<std::uint64_t, 2> reasons = {stop_reason().empty() ? 0U : 1U, save_is_due() ? 1U : 0U};
  ranks.sum(reasons);
  return {.stop = reasons[0] > 0, .save = reasons[1] > 0};
}

}  // namespace carousel
