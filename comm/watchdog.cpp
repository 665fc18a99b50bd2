// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/watchdog.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "comm/deadline.hpp"
#include "comm/meeting.hpp"

namespace carousel {
namespace {

enum Kind : int {
  farewell,
  no_progress,  // where there should be some
  overdue,      // at files for too long
  are_you_there,
  here_i_am,
  patience_please,
  fault,
  failure  // of a rank that says so itself
};

constexpr double patience = 2;       // seconds that a message may take, or a look around
constexpr double hitch = 0.4;        // seconds by which it may be late on a busy machine
constexpr double all_speak = 1;      // seconds in which all ranks say their last words
constexpr double file_factor = 10;   // of the seconds that a rank may be at its files
constexpr double meeting_time = 30;  // seconds in which all ranks connect, at most
constexpr auto look = std::chrono::milliseconds(200);
constexpr auto answer_time = std::chrono::seconds(1);     // a process answers that is not stopped
constexpr auto moment = std::chrono::seconds(1);          // until somebody is asked again
constexpr auto waking = std::chrono::milliseconds(1500);  // of all whom a scheduler lets go on

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

double seconds_between(std::chrono::steady_clock::time_point from,
                       std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

template <class T>
std::span<std::byte> bytes_of(T& object) {
  return std::as_writable_bytes(std::span(&object, 1));
}

}  // namespace

/// What ranks tell each other; plain bytes.
struct Watchdog::Note {
  int kind = 0;
  int rank = 0;  // who tells; of a fault, who was lost, or -1
  int busy = 0;
  std::array<char, 240> text = {};
};

Watchdog::Watchdog(const MpiSession& session, WatchdogSpec spec)
    : spec_(std::move(spec)), rank_(session.rank()) {
  const double seconds = std::clamp(spec_.seconds, patience, meeting_time);
  try {
    // A rank may be lost on the way here, where the others wait for it inside MPI.
    std::atomic<int> missing = -1;
    const Deadline limit(seconds + patience, [&] {
      const int lost = missing;
      end(lost < 0 ? fmt::format("not all ranks have met within {} s", seconds)
                   : fmt::format("rank {} was not met within {} s", lost, seconds),
          lost);
    });
    session.together([&] {
      meet(session, seconds, peers_, missing);
      // From here on it is seen when a rank dies. Before all have met, the limit judges the rest.
      moved_ =
          std::chrono::steady_clock::now() + std::chrono::duration_cast<Time::duration>(
                                                 std::chrono::duration<double>(seconds + patience));
      std::signal(SIGABRT, abort_later);
      // nvcc 13 takes a pointer to a member for device code where it stands in a lambda.
      thread_ = std::thread([this] { watch(); });
    });
  } catch (const AgreedError&) {
    take_leave();
    throw;
  } catch (const Error& error) {
    // Of MPI, perhaps since a rank has died.
    wait_for_cause();
    tell_failure(error.what());
    throw;
  }
}

Watchdog::~Watchdog() {
  take_leave();
}

void Watchdog::take_leave() {
  leave();
  std::signal(SIGABRT, SIG_DFL);
  if (!failed_) tell_all(note(farewell));
}

void Watchdog::leave() {
  leaving_ = true;
  if (thread_.joinable()) thread_.join();
}

void Watchdog::wait_for_cause() const {
  std::this_thread::sleep_for(std::chrono::duration<double>(patience));
}

void Watchdog::tell_failure(const std::string& cause) {
  leave();
  failed_ = true;
  tell_all(note(failure, fmt::format("rank {} failed: {}", rank_, cause)));
}

Watchdog::Note Watchdog::note(int kind, const std::string& text) const {
  Note result{.kind = kind, .rank = rank_, .busy = is_busy()};
  std::strncpy(result.text.data(), text.c_str(), result.text.size() - 1);
  return result;
}

void Watchdog::tell(std::size_t peer, const Note& note) {
  // Whether it was heard shows when the connection is read.
  if (peers_[peer].is_open()) (void)peers_[peer].send(std::as_bytes(std::span(&note, 1)), patience);
}

void Watchdog::tell_all(const Note& note) {
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) tell(peer, note);
}

void Watchdog::watch() {
  std::vector<pollfd> entries(peers_.size());
  while (!leaving_) {
    for (std::size_t k = 0; k < peers_.size(); ++k)
      entries[k] = {.fd = peers_[k].descriptor(), .events = POLLIN, .revents = 0};
    if (look_at(entries, look)) {
      // What one tells may lead to what others answer or to their leave, so that each is looked at
      // anew.
      for (std::size_t k = 0; k < entries.size(); ++k) {
        if (entries[k].revents == 0) continue;
        entries[k].fd = peers_[k].descriptor();  // -1: poll passes it over
        if (::poll(&entries[k], 1, 0) > 0) hear(k);
      }
    }
    check_progress();
  }
}

/// Waits until somebody has told something, or for `time`; true if somebody has.
bool Watchdog::look_at(std::vector<pollfd>& peers, std::chrono::milliseconds time) {
  looking_since_ = std::chrono::steady_clock::now();
  const int told = ::poll(peers.data(), peers.size(), static_cast<int>(time.count()));
  looked_ = std::chrono::steady_clock::now();
  const Time::duration taken = looked_ - looking_since_;
  if (taken > time + std::chrono::duration<double>(hitch)) oversleep(taken);
  return told > 0;
}

/// Reads what a peer tells.
void Watchdog::hear(std::size_t peer) {
  Note theirs;
  if (!peers_[peer].receive(bytes_of(theirs), patience)) return end_without(peer);
  heed(peer, theirs);
  switch (theirs.kind) {
    case no_progress:
    case overdue:
      if (is_patient(theirs.kind == overdue))
        tell(peer, note(patience_please));
      else
        inquire(theirs.rank, theirs.kind == no_progress);
      break;
    case patience_please:
      be_patient();
      break;
    case are_you_there:
      tell(peer, note(here_i_am));
      break;
    default:
      break;
  }
}

/// A peer leaves, knows of a fault, or fails.
void Watchdog::heed(std::size_t peer, const Note& theirs) {
  if (theirs.kind == farewell) peers_[peer].close();
  if (theirs.kind == fault) end(theirs.text.data(), theirs.rank);
  if (theirs.kind == failure) follow(peer, theirs);
}

/// A peer's connection broke: it has died, unless this rank is over, too.
void Watchdog::end_without(std::size_t peer) {
  peers_[peer].close();
  if (leaving_) return;
  const auto lost = static_cast<int>(peer);
  end_all(fmt::format("rank {} ended without a word", lost), lost);
}

/// A rank fails alone and has said so. Its launcher mostly ends the others, too, who then have
/// nothing to add.
void Watchdog::follow(std::size_t peer, const Note& theirs) {
  peers_[peer].close();
  tell_all(theirs);
  std::this_thread::sleep_for(std::chrono::duration<double>(patience));
  end(theirs.text.data(), theirs.rank);
}

/// A rank that makes no progress, first seen on rank `first`, mostly waits for one that is stuck,
/// or patiently for one that is busy. A process that is stopped does not answer.
void Watchdog::inquire(int first, bool patiently) {
  tell_all(note(are_you_there));
  bool busy = is_busy();
  // Peers that have not answered; the system passes over those whose descriptor is -1.
  std::vector<pollfd> silent;
  for (const Socket& peer : peers_)
    silent.push_back({.fd = peer.descriptor(), .events = POLLIN, .revents = 0});
  const auto is_silent = [](const pollfd& entry) { return entry.fd >= 0; };
  Time::duration left = answer_time;
  while (left.count() > 0 && std::ranges::any_of(silent, is_silent)) {
    const Time awake_since = awake_since_;
    const bool told = look_at(silent, look);
    // Others may have been stopped with this process, and all ask anew.
    if (awake_since_ != awake_since) return tell_all(note(patience_please));
    left -= looked_ - looking_since_;
    if (!told) continue;
    for (std::size_t k = 0; k < peers_.size(); ++k) {
      Note theirs;
      if (!is_silent(silent[k]) || silent[k].revents == 0) continue;
      if (!peers_[k].receive(bytes_of(theirs), patience)) return end_without(k);
      heed(k, theirs);
      if (theirs.kind != farewell && theirs.kind != here_i_am)
        continue;  // what it asks for, all are told below
      busy = busy || (theirs.kind == here_i_am && theirs.busy != 0);
      silent[k].fd = -1;
    }
  }
  const auto found = std::ranges::find_if(silent, is_silent);
  const int stuck = found == silent.end() ? -1 : static_cast<int>(found - silent.begin());
  if (stuck < 0 && patiently && busy) {
    tell_all(note(patience_please));
    return be_patient();
  }
  const double seconds = spec_.seconds * (patiently ? 1 : file_factor);
  end_all(stuck > 0
              ? fmt::format("rank {} does not answer and nothing moved for {} s", stuck, seconds)
              : fmt::format("nothing moved for {} s, first seen by rank {}", seconds, first),
          stuck);
}

/// Whether this rank has done something lately, if only since the last look, or is where it may
/// take longer. One that aborts is missed when it has ended.
bool Watchdog::is_busy() const {
  return aborts || spec_.at_files() || spec_.progress() != progress_ ||
         seconds_between(moved_, looked_) < spec_.seconds;
}

/// Asks again in a moment; this rank's own time goes on.
void Watchdog::be_patient() {
  asked_ = Time::max();
  patient_until_ = std::max<Time>(patient_until_, std::chrono::steady_clock::now() + moment);
}

/// This process was stopped as a whole, by a debugger or a scheduler; that time does not count, and
/// the others may have been stopped with it and come back later.
void Watchdog::oversleep(Time::duration time) {
  moved_ += time;
  if (asked_ != Time::max()) asked_ += time;
  awake_since_ = looked_;
  patient_until_ = awake_since_ + waking;
}

/// Whether to ask nobody about a rank yet: all were told so a moment ago, or it is no time to
/// judge.
bool Watchdog::is_patient(bool at_files) const {
  return std::chrono::steady_clock::now() < (at_files ? awake_since_ + waking : patient_until_);
}

void Watchdog::check_progress() {
  if (const std::uint64_t now = spec_.progress(); now != progress_) {
    progress_ = now;
    moved_ = std::chrono::steady_clock::now();
    asked_ = Time::max();
    return;
  }
  const bool at_files = spec_.at_files();
  if (seconds_between(moved_, looked_) < spec_.seconds * (at_files ? file_factor : 1)) return;
  if (is_patient(at_files)) return;
  if (rank_ == 0) return inquire(0, !at_files);
  if (asked_ == Time::max()) {
    asked_ = std::chrono::steady_clock::now();
    tell(0, note(at_files ? overdue : no_progress));
  } else if (seconds_between(asked_, looked_) > patience) {
    // Rank 0 hears of it should it come back.
    end_all(fmt::format("rank 0 does not answer and nothing moved for {} s", spec_.seconds), 0);
  }
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
    std::this_thread::sleep_for(std::chrono::duration<double>(patience));
    std::_Exit(static_cast<int>(ExitCode::peer_lost));
  }).detach();
  spec_.last_words(cause);
  // A launcher may end the others as soon as one has ended; all should have spoken by then. Where
  // rank 0 is lost the lowest of the others writes, and those behind it only if nobody has.
  const double turn = lost == 0 ? std::min(0.1 * (rank_ - 1), all_speak) : 0;
  std::this_thread::sleep_for(std::chrono::duration<double>(turn));
  if (rank_ == 0 || lost == 0) spec_.write_cause(cause);
  std::this_thread::sleep_for(std::chrono::duration<double>(all_speak - turn));
  // The main thread may be inside MPI, which knows no way out.
  std::_Exit(static_cast<int>(ExitCode::peer_lost));
}

}  // namespace carousel
