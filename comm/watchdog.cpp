// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/watchdog.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>

#include "comm/deadline.hpp"
#include "comm/meeting.hpp"

namespace carousel {
namespace {

enum Kind : int {
  heartbeat,
  farewell,
  fault,   // that ends all ranks
  failure  // of a rank that says so itself
};

constexpr double look = 0.2;          // seconds between two looks at all members
constexpr int silent_looks = 5;       // after which one of those that are stuck is called stopped
constexpr int file_factor = 10;       // of the looks that files may take
constexpr double patience = 2;        // seconds that a message may take
constexpr double all_speak = 1;       // seconds in which all ranks say their last words
constexpr double meeting_time = 30;   // seconds in which all ranks connect, at most
constexpr double agreement_time = 1;  // seconds in which all then agree on who is missing
constexpr double longest_job = 1e7;   // seconds
constexpr int never = std::numeric_limits<int>::max();  // a look

std::atomic<bool> aborts = false;  // this process, in a moment

/// Below some MPI libraries, whoever notices first that a peer is gone aborts the process. That is
/// soon enough when the watchdog has spoken. The second signal waits for the end of this function.
extern "C" void abort_later(int /*signal*/) {
  aborts = true;
  const timespec time{.tv_sec = static_cast<time_t>(patience + all_speak), .tv_nsec = 0};
  ::nanosleep(&time, nullptr);
  std::signal(SIGABRT, SIG_DFL);
  std::raise(SIGABRT);
}

void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

int looks_in(double seconds) {
  return static_cast<int>(std::ceil(std::min(seconds, longest_job) / look));
}

template <class T>
std::span<std::byte> bytes_of(T& object) {
  return std::as_writable_bytes(std::span(&object, 1));
}

}  // namespace

/// What ranks tell each other; plain bytes.
struct Watchdog::Note {
  std::uint64_t progress = 0;
  int kind = 0;
  int rank = 0;  // who tells; of a fault, who was lost, or -1
  int at_files = 0;
  std::array<char, 244> text = {};
};

Watchdog::Watchdog(const MpiSession& session, WatchdogSpec spec)
    : spec_(std::move(spec)), rank_(session.rank()), limit_(looks_in(spec_.seconds)) {
  const double seconds = std::clamp(spec_.seconds, patience, meeting_time);
  try {
    // A rank may be lost on the way here, where the others wait for it inside MPI.
    std::atomic<int> missing = -1;
    const Deadline limit(seconds + agreement_time, [&] {
      const int lost = missing;
      end(lost < 0 ? fmt::format("not all ranks have met within {} s", seconds)
                   : fmt::format("rank {} was not met within {} s", lost, seconds),
          lost);
    });
    session.together([&] {
      meet(session, seconds, ranks_, missing);
      members_.resize(rank_ == 0 ? ranks_.size() : 2);
      // Rank 0 answers when it has met all others.
      if (rank_ != 0) members_.front().heard = looks_in(seconds + patience);
      std::signal(SIGABRT, abort_later);
      // nvcc 13 takes a pointer to a member for device code where it stands in a lambda.
      thread_ = std::thread([this] { watch(); });
    });
  } catch (const AgreedError&) {
    say_farewell();
    throw;
  } catch (const Error& error) {
    // Of MPI, perhaps since a rank has died.
    wait_for_cause();
    tell_failure(error.what());
    throw;
  }
}

Watchdog::~Watchdog() {
  say_farewell();
}

void Watchdog::say_farewell() {
  stop_watching();
  std::signal(SIGABRT, SIG_DFL);
  if (!failed_) tell_all(note(farewell));
}

void Watchdog::stop_watching() {
  leaving_ = true;
  if (thread_.joinable()) thread_.join();
}

void Watchdog::wait_for_cause() const {
  sleep_for(patience);
}

void Watchdog::tell_failure(const std::string& cause) {
  stop_watching();
  failed_ = true;
  tell_all(note(failure, fmt::format("rank {} failed: {}", rank_, cause)));
}

Watchdog::Note Watchdog::note(int kind, const std::string& text) const {
  Note result{.kind = kind, .rank = rank_};
  std::strncpy(result.text.data(), text.c_str(), result.text.size() - 1);
  return result;
}

/// A rank that aborts may take its time, too; it is missed when it has ended.
Watchdog::Note Watchdog::own_heartbeat() const {
  Note result = note(heartbeat);
  // In this order: whoever is no longer at its files has made progress.
  result.at_files = aborts || spec_.at_files() ? 1 : 0;
  result.progress = spec_.progress();
  return result;
}

void Watchdog::tell(std::size_t rank, const Note& note) {
  // Whether it arrives shows when the connection is read.
  if (ranks_[rank].is_open()) (void)ranks_[rank].send(std::as_bytes(std::span(&note, 1)), patience);
}

void Watchdog::tell_all(const Note& note) {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) tell(rank, note);
}

/// Between rank 0 and each other there is one heartbeat at a time, which both send back when they
/// look: none pile up where a process is stopped, and no send has to wait.
void Watchdog::watch() {
  Member& self = rank_ == 0 ? members_.front() : members_.back();
  if (rank_ != 0) tell(0, own_heartbeat());
  while (!leaving_) {
    sleep_for(look);
    ++looks_;
    const Note mine = own_heartbeat();
    record(self, mine);
    const std::string failed = spec_.failure();
    if (!failed.empty()) end_all(fmt::format("rank {}: {}", rank_, failed), -1);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      while (ranks_[rank].has_input()) receive_note(rank, mine);
    }
    judge();
  }
}

/// Reads what a rank tells, and answers its heartbeat with that of this one.
void Watchdog::receive_note(std::size_t rank, const Note& mine) {
  Note theirs;
  const bool told = ranks_[rank].receive(bytes_of(theirs), patience);
  if (told && theirs.kind == heartbeat) {
    record(members_[rank], theirs);
    return tell(rank, mine);
  }
  ranks_[rank].close();
  members_[rank] = {.heard = never, .moved = never};
  if (told && theirs.kind == farewell) return;
  if (told) {
    tell_all(theirs);
    // The launcher mostly ends all when one fails by itself, and then they have nothing to add.
    if (theirs.kind == failure) sleep_for(patience);
    end(theirs.text.data(), theirs.rank);
  }
  // It has died, unless this rank is over, too.
  const auto lost = static_cast<int>(rank);
  if (!leaving_) end_all(fmt::format("rank {} ended without a word", lost), lost);
}

void Watchdog::record(Member& member, const Note& told) {
  member.heard = looks_;
  member.at_files = told.at_files != 0;
  if (told.progress == member.progress) return;
  member.progress = told.progress;
  member.moved = moved_ = looks_;
}

/// Nothing has moved for too long where a rank is stopped, which rank 0 finds of all others and
/// they of rank 0, or where one is stuck, which only rank 0 can tell.
void Watchdog::judge() {
  const int still = looks_ - moved_;
  if (still < limit_) return;
  const auto reader = std::ranges::find_if(members_, &Member::at_files);
  const bool at_files = reader != members_.end();
  const bool stuck = rank_ == 0 && still >= limit_ * (at_files ? file_factor : 1);
  const auto quiet = std::ranges::min_element(members_, {}, &Member::heard);
  if (looks_ - quiet->heard >= (stuck ? silent_looks : limit_)) {
    const auto lost = static_cast<int>(quiet - members_.begin());
    end_all(fmt::format("rank {} does not answer and nothing moved for {} s", lost, spec_.seconds),
            lost);
  }
  if (!stuck) return;
  if (at_files)
    end_all(fmt::format("nothing moved for {} s while rank {} was at its files",
                        file_factor * spec_.seconds, reader - members_.begin()),
            -1);
  // The others mostly wait for the one that came to a stand first, if that can be told.
  const auto first = std::ranges::min_element(members_, {}, &Member::moved);
  const bool alone = std::ranges::count(members_, first->moved, &Member::moved) == 1;
  end_all(fmt::format("nothing moved for {} s", spec_.seconds) +
              (alone ? fmt::format(", longest on rank {}", first - members_.begin()) : ""),
          -1);
}

void Watchdog::end_all(const std::string& cause, int lost) {
  Note told = note(fault, cause);
  told.rank = lost;
  tell_all(told);
  end(cause, lost);
}

void Watchdog::end(const std::string& cause, int lost) {
  ending_.lock();  // for good: whoever is second has nothing to add
  // The last words go to files, and the file system may be what hangs.
  std::thread([] {
    sleep_for(patience);
    std::_Exit(static_cast<int>(ExitCode::peer_lost));
  }).detach();
  spec_.last_words(cause);
  // A launcher may end the others as soon as one has ended; all should have spoken by then. Where
  // rank 0 is lost the lowest of the others writes, and those behind it only if nobody has.
  const double turn = lost == 0 ? std::min(0.1 * (rank_ - 1), all_speak) : 0;
  sleep_for(turn);
  if (rank_ == 0 || lost == 0) spec_.write_cause(cause);
  sleep_for(all_speak - turn);
  // The main thread may be inside MPI, which knows no way out.
  std::_Exit(static_cast<int>(ExitCode::peer_lost));
}

}  // namespace carousel
