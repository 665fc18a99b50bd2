// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lets no rank wait for ever. Every rank has a thread that sends heartbeats to rank 0 by TCP, with
// a number that changes while it works. Rank 0 alone judges: a rank whose connection breaks without
// a farewell has died, one that is silent is stopped, and where no number changes one is stuck,
// unless a rank is at its files, which may take ten times as long. The others judge rank 0 by its
// answers. All ranks then end with ExitCode::peer_lost. MPI is not asked, since it may be what
// hangs.

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/mpi_session.hpp"
#include "comm/socket.hpp"

namespace carousel {

struct WatchdogSpec {
  double seconds = 0;                       // without progress, until a rank is called stuck
  std::function<std::uint64_t()> progress;  // a number that changes while this rank works
  std::function<bool()> at_files;           // whether it may be reading or writing them
  /// What has gone wrong on this rank where nobody waits for it; empty: nothing.
  std::function<std::string()> failure = [] { return std::string(); };
  /// What this rank says before it ends, with the cause, on its terminal.
  std::function<void(const std::string& cause)> last_words;
  /// Tells the cause to files, if nobody has. Called on rank 0, and where that is lost on others.
  std::function<void(const std::string& cause)> write_cause;
};

class Watchdog {
 public:
  /// Collective. Throws AgreedError(peer_lost) where ranks do not reach rank 0 by TCP, Error where
  /// MPI fails here, and ends the process where not all ranks come within `seconds`, or 30.
  Watchdog(const MpiSession& session, WatchdogSpec spec);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  /// Takes leave of the others, who then miss this rank no longer.
  ~Watchdog();

  /// Before tell_failure() of a peer that was lost: if the watchdog learns which one within a few
  /// seconds, it ends the process with that for a cause.
  void wait_for_cause() const;
  /// Tells the others that this rank ends alone, and why; they follow unless the launcher ends
  /// them.
  void tell_failure(const std::string& cause);

 private:
  struct Note;
  /// What is known of a rank. Times are counted in looks of this process, so that none passes while
  /// it is suspended.
  struct Member {
    std::uint64_t progress = 0;
    bool at_files = false;
    int heard = 0;  // the look at which its last heartbeat came
    int moved = 0;  // and the last one with another progress
  };

  void watch();
  void receive_note(std::size_t rank, const Note& mine);
  void record(Member& member, const Note& told);
  void judge();
  void stop_watching();
  void say_farewell();
  [[noreturn]] void end_all(const std::string& cause, int lost);
  [[noreturn]] void end(const std::string& cause, int lost);
  [[nodiscard]] Note note(int kind, const std::string& text = "") const;
  [[nodiscard]] Note own_heartbeat() const;
  void tell(std::size_t rank, const Note& note);
  void tell_all(const Note& note);

  WatchdogSpec spec_;
  int rank_;
  int limit_;                    // looks without progress
  std::vector<Socket> ranks_;    // rank 0: to all others; others: to it; closed: has left
  std::vector<Member> members_;  // rank 0: all ranks; others: rank 0 and themselves
  int looks_ = 0;                // so far
  int moved_ = 0;                // the look at which the progress of any member last changed
  std::atomic<bool> leaving_ = false;
  bool failed_ = false;  // and the others know
  std::mutex ending_;
  std::thread thread_;  // last, so that it finds everything else in place
};

}  // namespace carousel
