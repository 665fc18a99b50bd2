// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface between the executor and what carries its messages, which comm/ implements. It
// moves bytes between devices of a plan; what the bytes mean it does not know.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "core/base/real.hpp"

namespace carousel {

/// One message's end at this device. Between two devices, messages of one tag keep their order.
struct Message {
  int peer = 0;
  int tag = 0;
  std::byte* data = nullptr;  // untouched by others until the request is done
  std::size_t bytes = 0;
  std::int64_t round = 0;  // see Transport::exchange
};

/// What the devices of a group do together; each names the same, with memory of its own.
struct Collective {
  /// A reduce_scatter leaves with each member the sum of its part of `from`, an all_gather with all
  /// what each has in its part of `data`.
  enum class Kind : std::uint8_t { all_reduce, reduce, broadcast, reduce_scatter, all_gather };
  Kind kind = Kind::all_reduce;
  int group = 0;           // of the schedule's groups
  int root = -1;           // device that a reduce leaves the sum on and a broadcast comes from
  real* data = nullptr;    // untouched by others until the request is done
  std::size_t count = 0;   // of all parts
  std::int64_t round = 0;  // see Transport::exchange
  real* from = nullptr;    // of a reduce_scatter, likewise, and lost; may be `data`
  std::size_t own = 0;     // numbers of the own part, which a reduce_scatter leaves in `data`
  // [member of the group] numbers of its part, one behind the other: of an all_gather, bytes.
  std::span<const int> parts = {};

  [[nodiscard]] std::size_t bytes() const {
    return kind == Kind::all_gather ? count : count * sizeof(real);
  }
};

/// Names a pending operation until test() has seen it complete.
using Request = int;

/// Seconds since the run began, the same on all ranks; for any thread.
using Clock = std::function<double()>;

/// Nonblocking operations of one device, which go on while the device computes. Calls for devices
/// of one process come one at a time, from any thread. Nothing allocates after the construction.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  /// Starts a receive. It completes with exactly `bytes`, or the run ends.
  virtual Request post(const Message& message) = 0;
  /// Starts a send. It may complete only once its receive is posted.
  virtual Request send(const Message& message) = 0;
  /// Starts one's part in a collective, in place. After a reduce, only the root's numbers count.
  virtual Request join(const Collective& collective) = 0;
  /// All that this device was to start of the rounds up to this one is started. Both ends of a
  /// message, and all devices of a collective, name the same round. Whoever needs no rounds has
  /// begun long before.
  virtual void exchange(std::int64_t /*round*/) {}
  /// Looks at what is under way.
  virtual void progress() {}
  /// Whether operations go on only while somebody looks.
  [[nodiscard]] virtual bool needs_calls() const { return false; }
  /// Once the operation is complete, when progress() or another call saw that first; the request is
  /// then free.
  virtual std::optional<double> test(Request request) = 0;
};

}  // namespace carousel
