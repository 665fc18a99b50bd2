// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// A watchdog that finds a healthy run stuck ends the process, and so fails the test. Runs that are
// not healthy are those of tests/app/faults_test.py.

#include "comm/watchdog.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <thread>

#include "comm/deadline.hpp"
#include "tests/mpi_session.hpp"

namespace carousel::test {
namespace {

constexpr double seconds = 0.5;

void sleep(double time) {
  std::this_thread::sleep_for(std::chrono::duration<double>(time));
}

/// What a rank does that is at its files for longer than a rank may be without progress, and is
/// done the moment that another asks: a watchdog that looks by itself reads the progress first.
struct SlowReader {
  std::atomic<std::uint64_t> progress = 0;
  bool looks = false;  // of the watchdog's thread
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

  bool at_files() {
    const bool asked = !looks;
    looks = false;
    if (asked && std::chrono::steady_clock::now() - begin > std::chrono::duration<double>(seconds))
      progress = 1;
    return progress == 0;
  }
};

/// Of this rank on its terminal.
void complain(const std::string& cause) {
  fmt::print(stderr, "rank {}: {}\n", session().rank(), cause);
}

/// Stops this process, mostly for longer than a watchdog takes for a hitch.
void suspend(double time) {
  const pid_t process = ::getpid();
  const pid_t waker = ::fork();
  ASSERT_GE(waker, 0);
  if (waker == 0) {
    ::kill(process, SIGSTOP);
    sleep(time);
    ::kill(process, SIGCONT);
    ::_exit(0);
  }
  ::waitpid(waker, nullptr, 0);
}

/// Of a rank that has nothing to do with files.
WatchdogSpec plain_spec(double time, const std::atomic<std::uint64_t>& progress) {
  return {.seconds = time,
          .progress = [&] { return progress.load(); },
          .at_files = [] { return false; },
          .last_words = complain,
          .write_cause = [](const std::string&) {}};
}

TEST(Watchdog, CountsNoTimeInWhichTheWholeJobWasSuspended) {
  std::atomic<std::uint64_t> progress = 0;
  const Watchdog watchdog(session(), plain_spec(4 * seconds, progress));
  progress = 1;
  // None since it last looked, when it is suspended and when it wakes up.
  sleep(seconds);
  session().together([] {});
  suspend(5 * seconds);
  sleep(seconds);
  session().together([] {});
}

TEST(Watchdog, GivesRanksTimeToWakeUpOneAfterTheOther) {
  struct Stop {
    double begin = 0;  // in units of `seconds`, as its time
    double time = 0;
  };
  // Rank 1 asks while rank 0 is stopped; rank 0 is stopped while it asks rank 1.
  constexpr std::array<std::array<Stop, 2>, 2> stops{
      {{{{0.5, 8.5}, {5.5, 6.0}}}, {{{5.0, 1.6}, {2.0, 5.2}}}}};
  for (const std::array<Stop, 2>& of_ranks : stops) {
    std::atomic<std::uint64_t> progress = 0;
    const Watchdog watchdog(session(), plain_spec(4 * seconds, progress));
    const Stop& mine = of_ranks[session().rank()];
    session().together([] {});
    progress = 1;
    sleep(mine.begin * seconds);
    suspend(mine.time * seconds);
    session().together([] {});
  }
}

TEST(Deadline, CountsNoTimeInWhichTheProcessWasSuspended) {
  std::atomic<bool> late = false;
  const Deadline limit(2 * seconds, [&] { late = true; });
  suspend(3 * seconds);
  sleep(seconds / 2);
  EXPECT_FALSE(late);
  sleep(2 * seconds);
  EXPECT_TRUE(late);
}

TEST(Watchdog, WaitsForAFileThatIsReadTheMomentSomebodyAsks) {
  SlowReader reader;
  const bool reads = session().rank() == 1;
  Watchdog watchdog(session(), {.seconds = seconds,
                                .progress =
                                    [&] {
                                      reader.looks = true;
                                      return reader.progress.load();
                                    },
                                .at_files = [&] { return reads && reader.at_files(); },
                                .last_words = complain,
                                .write_cause = [](const std::string&) {}});
  session().together([&] {
    while (reads && reader.progress == 0) sleep(0.01);
    sleep(seconds / 2);  // what was read is computed with
  });
  EXPECT_EQ(reader.progress, reads ? 1 : 0);
}

}  // namespace
}  // namespace carousel::test
