// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Communication queues of the devices of one process over a transport whose calls do not block: a
// thread makes them while the devices compute. What messages are for it does not know.

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/view.hpp"
#include "core/engine/queue.hpp"

namespace carousel {

/// Who calls transports: the thread that computes starts what is due and lends a hand while it has
/// nothing to compute, or it leaves all to the thread, which shows mistakes in order to tests.
enum class Helping : std::uint8_t { helped, alone };

/// What the queue of a device is made of.
struct HostCommunicationSpec {
  int device = 0;
  std::unique_ptr<Transport> transport;
  int requests = 0;  // not released, at most
  Clock clock;
  // Where positive, the transport is given host memory of so many bytes, which the plan found to be
  // enough (core/plan/staging), in place of device memory.
  std::int64_t staging_bytes = 0;
  bool staging_by_size = false;
  ExecutionSpace exec = {};  // copies from and to it
};

/// Outlives the queues it hands out.
class HostCommunication {
 public:
  explicit HostCommunication(Helping helping);
  HostCommunication(const HostCommunication&) = delete;
  HostCommunication& operator=(const HostCommunication&) = delete;
  ~HostCommunication();

  /// The queue of one device.
  [[nodiscard]] std::unique_ptr<CommunicationQueue> queue(HostCommunicationSpec spec);
  [[nodiscard]] bool is_alone() const { return helping_ == Helping::alone; }

 private:
  class End;

  void drive();
  /// Has the thread look again for something to do.
  void wake();

  Helping helping_;
  std::atomic<std::uint32_t> calls_ = 0;  // of wake()
  std::mutex mutex_;                      // of all transports of this process, and of what follows
  bool leaving_ = false;
  std::vector<End*> ends_;
  std::exception_ptr failure_;  // of the thread, for the other one to throw
  std::thread thread_;          // last, so that it finds everything else in place
};

}  // namespace carousel
