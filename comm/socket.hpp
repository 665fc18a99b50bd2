// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A TCP connection between two ranks beside MPI, which tells at once when a process is gone. Small
// messages only; no data of training comes this way.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace carousel {

/// An IPv4 address and port, in the order of bytes of the network.
struct Endpoint {
  std::uint32_t address = 0;
  std::uint16_t port = 0;
};

/// Owns a descriptor. Calls that can fail return false or throw Error(peer_lost).
class Socket {
 public:
  Socket() = default;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  /// Listens on a free port of all addresses.
  [[nodiscard]] static Socket listen();
  /// Connects within `seconds`; a socket that is not open when nobody answers.
  [[nodiscard]] static Socket connect(const Endpoint& to, double seconds);
  /// Waits for somebody to connect; not open when nobody does.
  [[nodiscard]] Socket accept(double seconds) const;

  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }
  [[nodiscard]] std::uint16_t port() const;
  void close();

  /// Whether there is something to receive, or the other end is gone.
  [[nodiscard]] bool has_input() const;
  /// All bytes or nothing counts; false when the other end is gone or takes longer than `seconds`.
  [[nodiscard]] bool send(std::span<const std::byte> bytes, double seconds) const;
  [[nodiscard]] bool receive(std::span<std::byte> bytes, double seconds) const;

 private:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  [[nodiscard]] bool ready(short events, double seconds) const;

  int descriptor_ = -1;
};

/// The addresses of this host, loopback last.
[[nodiscard]] std::vector<std::uint32_t> host_addresses();

}  // namespace carousel
