// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <system_error>
#include <utility>

#include "core/base/check.hpp"

namespace carousel {
namespace {

void set(int descriptor, int level, int option, int value) {
  // Where an option is not to be had, a host that vanishes is noticed later.
  (void)::setsockopt(descriptor, level, option, &value, sizeof value);
}

/// A host that vanishes closes nothing: the kernel asks after it, or sends it again what it was
/// told, and gives up after 8 seconds.
void keep_asking(int descriptor) {
  set(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, 2);
  set(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(descriptor, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, 8000);
  set(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
}

sockaddr_in ipv4(const Endpoint& to) {
  sockaddr_in result = {};
  result.sin_family = AF_INET;
  result.sin_addr.s_addr = to.address;
  result.sin_port = to.port;
  return result;
}

}  // namespace

Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Socket::~Socket() {
  close();
}

void Socket::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

Socket Socket::listen() {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in any = ipv4({.address = htonl(INADDR_ANY)});
  const bool works =
      socket.is_open() &&
      ::bind(socket.descriptor_, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0 &&
      ::listen(socket.descriptor_, SOMAXCONN) == 0;
  if (!works)
    fail(ExitCode::peer_lost, "cannot listen for other ranks: {}",
         std::generic_category().message(errno));
  return socket;
}

Socket Socket::connect(const Endpoint& to, double seconds) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return socket;
  const sockaddr_in address = ipv4(to);
  const int code =
      ::connect(socket.descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  int error = code == 0 ? 0 : errno;
  if (error == EINPROGRESS && socket.ready(POLLOUT, seconds)) {
    socklen_t size = sizeof error;
    (void)::getsockopt(socket.descriptor_, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error != 0) return {};
  keep_asking(socket.descriptor_);
  return socket;
}

Socket Socket::accept(double seconds) const {
  if (!ready(POLLIN, seconds)) return {};
  Socket socket(::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.is_open()) keep_asking(socket.descriptor_);
  return socket;
}

std::uint16_t Socket::port() const {
  sockaddr_in address = {};
  socklen_t size = sizeof address;
  (void)::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size);
  return address.sin_port;
}

bool Socket::ready(short events, double seconds) const {
  pollfd entry{.fd = descriptor_, .events = events, .revents = 0};
  int count = 0;
  do {
    count = ::poll(&entry, 1, static_cast<int>(std::ceil(1000 * seconds)));
  } while (count < 0 && errno == EINTR);
  return count > 0;
}

bool Socket::has_input() const {
  return ready(POLLIN, 0);
}

bool Socket::send(std::span<const std::byte> bytes, double seconds) const {
  while (!bytes.empty()) {
    const ssize_t count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0)
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    else if (errno != EINTR && (errno != EAGAIN || !ready(POLLOUT, seconds)))
      return false;
  }
  return true;
}

bool Socket::receive(std::span<std::byte> bytes, double seconds) const {
  while (!bytes.empty()) {
    const ssize_t count = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
    if (count > 0)
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    else if (count == 0 || (errno != EINTR && (errno != EAGAIN || !ready(POLLIN, seconds))))
      return false;
  }
  return true;
}

std::vector<std::uint32_t> host_addresses() {
  std::vector<std::uint32_t> all;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) list = nullptr;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    const std::uint32_t address =
        reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr.s_addr;
    if (ntohl(address) >> 24 != IN_LOOPBACKNET) all.push_back(address);
  }
  if (list != nullptr) ::freeifaddrs(list);
  all.push_back(htonl(INADDR_LOOPBACK));
  return all;
}

}  // namespace carousel
