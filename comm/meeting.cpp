// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/meeting.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <random>

namespace carousel {
namespace {

constexpr int most_addresses = 16;   // of a host
constexpr double greeting_time = 2;  // seconds in which an address answers, or never
constexpr double stranger_time = 0.4;
constexpr double look = 0.2;     // seconds in which rank 0 waits for somebody to come,
constexpr double moment = 0.01;  // or for those who came to say who they are

/// Where rank 0 can be reached; plain bytes.
struct Meeting {
  std::uint64_t nonce = 0;  // of this run
  std::array<Endpoint, most_addresses> endpoints = {};
  int count = 0;
};

/// What both ends of a connection say first; plain bytes.
struct Greeting {
  std::uint64_t nonce = 0;
  std::int64_t rank = 0;
};

template <class T>
std::span<std::byte> bytes_of(T& object) {
  return std::as_writable_bytes(std::span(&object, 1));
}

/// Rank 0 has a connection to every other; systems often give a process 1024 files unless it asks.
void allow_descriptors(int ranks) {
  constexpr rlim_t others = 256;  // files and libraries
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_max, std::max(limit.rlim_cur, ranks + others));
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Meeting arrange(const Socket& door) {
  std::random_device random;
  Meeting meeting;
  meeting.nonce = std::uint64_t{random()} << 32 | random();
  for (const std::uint32_t address : host_addresses()) {
    if (meeting.count < most_addresses) meeting.endpoints[meeting.count++] = {address, door.port()};
  }
  return meeting;
}

Socket connect_to_first(const Meeting& meeting, int rank, double seconds) {
  for (int k = 0; k < meeting.count; ++k) {
    Socket socket = Socket::connect(meeting.endpoints[k], greeting_time);
    Greeting mine{.nonce = meeting.nonce, .rank = rank};
    Greeting theirs;
    // Behind the same address on another host somebody else may listen.
    if (socket.is_open() && socket.send(bytes_of(mine), greeting_time) &&
        socket.receive(bytes_of(theirs), seconds + greeting_time) && theirs.nonce == meeting.nonce)
      return socket;
  }
  fail(ExitCode::peer_lost,
       "rank 0 is not to be reached by TCP; run.watchdog_seconds = 0 does without");
}

/// Somebody says who it is; if that is a rank of this run, it is met.
void admit(Socket visitor, std::uint64_t nonce, std::vector<Socket>& ranks) {
  Greeting theirs;
  Greeting mine{.nonce = nonce};
  if (visitor.receive(bytes_of(theirs), stranger_time) && theirs.nonce == nonce &&
      theirs.rank > 0 && theirs.rank < std::ssize(ranks) &&
      visitor.send(bytes_of(mine), greeting_time))
    ranks[theirs.rank] = std::move(visitor);
}

/// Who connects and does not say who it is keeps nobody else waiting.
void admit_all(const Socket& door, std::uint64_t nonce, double seconds, std::vector<Socket>& ranks,
               std::atomic<int>& missing) {
  std::vector<Socket> visitors;
  const auto is_closed = [](const Socket& socket) { return !socket.is_open(); };
  // What counts is how often nobody came: in between, the whole job may have been suspended.
  double left = seconds;
  while (missing > 0) {
    if (left <= 0)
      fail(ExitCode::peer_lost,
           "rank {} does not reach rank 0 by TCP within {} s; run.watchdog_seconds = 0 does "
           "without",
           missing.load(), seconds);
    const double wait = visitors.empty() ? look : moment;
    if (Socket visitor = door.accept(wait); visitor.is_open())
      visitors.push_back(std::move(visitor));
    else
      left -= wait;
    for (Socket& visitor : visitors) {
      if (visitor.has_input()) admit(std::move(visitor), nonce, ranks);
    }
    std::erase_if(visitors, is_closed);
    const auto next = std::find_if(ranks.begin() + 1, ranks.end(), is_closed);
    missing = next == ranks.end() ? -1 : static_cast<int>(next - ranks.begin());
  }
}

}  // namespace

void meet(const MpiSession& session, double seconds, std::vector<Socket>& ranks,
          std::atomic<int>& missing) {
  const bool first = session.rank() == 0;
  missing = first ? 1 : 0;
  Meeting meeting;
  Socket door;
  if (first) {
    try {
      door = Socket::listen();
      meeting = arrange(door);
    } catch (const Error&) {
      session.from_first(bytes_of(meeting));  // the others find no address
      throw;
    }
  }
  session.from_first(bytes_of(meeting));
  ranks.resize(first ? session.size() : 1);
  if (first) {
    allow_descriptors(session.size());
    admit_all(door, meeting.nonce, seconds, ranks, missing);
  } else {
    ranks[0] = connect_to_first(meeting, session.rank(), seconds);
    missing = -1;
  }
}

}  // namespace carousel
