// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// A watchdog that finds a healthy run stuck ends the process, and so fails the test. Runs that are
// not healthy are those of tests/app/faults_test.py.

#include "comm/watchdog.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

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

/// Of this rank on its terminal.
void complain(const std::string& cause) {
  fmt::print(stderr, "rank {}: {}\n", session().rank(), cause);
}

/// Stops this process for a time.
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

WatchdogSpec spec(double time, const std::atomic<std::uint64_t>& progress,
                  std::function<bool()> at_files) {
  return {.seconds = time,
          .progress = [&] { return progress.load(); },
          .at_files = std::move(at_files),
          .last_words = complain,
          .write_cause = [](const std::string&) {}};
}

bool never() {
  return false;
}

TEST(Watchdog, LetsAJobGoOnThatWasSuspendedAsAWhole) {
  std::atomic<std::uint64_t> progress = 0;
  const Watchdog watchdog(session(), spec(4 * seconds, progress, never));
  progress = 1;
  // No progress since the last look, when it is suspended and when it wakes up.
  sleep(seconds);
  session().together([] {});
  suspend(5 * seconds);
  sleep(seconds);
  session().together([] {});
}

TEST(Watchdog, LetsRanksWaitForOneThatWorks) {
  std::atomic<std::uint64_t> progress = 0;
  const Watchdog watchdog(session(), spec(2 * seconds, progress, never));
  for (int rank = 0; rank < session().size(); ++rank) {
    session().together([&] {
      for (int k = 0; k < 4 && rank == session().rank(); ++k) {
        sleep(seconds);
        ++progress;
      }
    });
  }
}

TEST(Watchdog, DoesNotMissARankThatHasLeft) {
  for (int rank = 0; rank < session().size(); ++rank) {
    std::atomic<std::uint64_t> progress = 0;
    const bool leaves = rank == session().rank();
    {
      const Watchdog watchdog(session(), spec(2 * seconds, progress, never));
      for (int k = 0; k < 4 && !leaves; ++k) {
        sleep(seconds);
        ++progress;
      }
    }
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

TEST(Watchdog, WaitsForAFileThatIsReadWhileItAsks) {
  // Rank 1 is done between the two questions of its watchdog.
  std::atomic<std::uint64_t> progress = 0;
  std::atomic<bool> nearly = false;
  const bool reads = session().rank() == 1;
  const Watchdog watchdog(session(), spec(2 * seconds, progress, [&] {
                            if (nearly) progress = 1;
                            return reads && progress == 0;
                          }));
  session().together([&] {
    if (!reads) return;
    sleep(4 * seconds);
    nearly = true;
    sleep(seconds);  // what was read is computed with
    EXPECT_EQ(progress, 1);
  });
}

}  // namespace
}  // namespace carousel::test
