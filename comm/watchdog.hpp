// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lets no rank wait for ever. Every rank has a thread with a connection to rank 0: where it breaks
// without a farewell, a rank has died; where no rank makes progress for too long, one is stuck,
// unless one is at its files, which may take ten times as long. Either ends all ranks with
// ExitCode::peer_lost. MPI is not asked, since it may be what hangs.

#include <poll.h>

#include <atomic>
#include <chrono>
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

  /// Before tell_failure() of a peer that was lost: if the watchdog hears which one within a few
  /// seconds, it ends the process with that for a cause.
  void wait_for_cause() const;
  /// Tells the others that this rank ends alone, and why; they follow unless the launcher ends
  /// them.
  void tell_failure(const std::string& cause);

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Note;

  void leave();
  void take_leave();
  void watch();
  bool look_at(std::vector<pollfd>& peers, std::chrono::milliseconds time);
  void hear(std::size_t peer);
  void heed(std::size_t peer, const Note& theirs);
  void end_without(std::size_t peer);
  [[noreturn]] void follow(std::size_t peer, const Note& theirs);
  void inquire(int first, bool patiently);
  void check_progress();
  void be_patient();
  void oversleep(Time::duration time);
  [[nodiscard]] bool is_patient(bool at_files) const;
  [[nodiscard]] bool is_busy() const;
  [[noreturn]] void end_all(const std::string& cause, int lost);
  [[noreturn]] void end(const std::string& cause, int lost);
  [[nodiscard]] Note note(int kind, const std::string& text = "") const;
  void tell(std::size_t peer, const Note& note);
  void tell_all(const Note& note);

  WatchdogSpec spec_;
  int rank_;
  std::vector<Socket> peers_;  // rank 0: of all ranks; others: of rank 0; closed: has left
  std::uint64_t progress_ = 0;
  Time looking_since_;                // when it began to look around for the last time,
  Time looked_;                       // and ended
  Time moved_;                        // when progress was last seen
  Time asked_ = Time::max();          // when rank 0 was told that there is none
  Time patient_until_ = Time::min();  // others are busy
  Time awake_since_ = Time::min();    // when this process was found to have been stopped
  std::atomic<bool> leaving_ = false;
  bool failed_ = false;  // and the others know
  std::mutex ending_;
  std::thread thread_;  // last, so that it finds everything else in place
};

}  // namespace carousel
