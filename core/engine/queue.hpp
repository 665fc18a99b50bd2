// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Queues of a device: what is handed to one is done in order, later, while whoever hands it over
// goes on. One queue waits for another by events; the host waits for neither.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "core/base/view.hpp"
#include "core/engine/transport.hpp"

namespace carousel {

/// How far something has come: a number that only grows, for others to look at. Whoever sees that a
/// value is reached sees, too, what was done before.
class Timeline {
 public:
  Timeline() = default;
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;
  virtual ~Timeline() = default;

  [[nodiscard]] virtual bool has_reached(std::int64_t value) const = 0;
  /// Whether what leads to a value is launched, so that nobody has to do anything more for it.
  [[nodiscard]] virtual bool is_launched(std::int64_t value) const { return has_reached(value); }
  /// Whatever is launched on `exec` from now on begins when the value is reached, which is
  /// launched.
  virtual void hold(const ExecutionSpace& /*exec*/, std::int64_t /*value*/) const {}
};

/// A timeline that a thread moves on.
class HostTimeline final : public Timeline {
 public:
  void reach(std::int64_t value) { now_.store(value, std::memory_order_release); }
  [[nodiscard]] bool has_reached(std::int64_t value) const override {
    return now_.load(std::memory_order_acquire) >= value;
  }

 private:
  std::atomic<std::int64_t> now_ = 0;
};

/// A point of a timeline, which outlives it; without one, a point that is reached.
struct Event {
  const Timeline* timeline = nullptr;
  std::int64_t value = 0;

  [[nodiscard]] bool reached() const { return timeline == nullptr || timeline->has_reached(value); }
  [[nodiscard]] bool launched() const {
    return timeline == nullptr || timeline->is_launched(value);
  }
  void hold(const ExecutionSpace& exec) const {
    if (timeline != nullptr) timeline->hold(exec, value);
  }
};

/// A call with what it captured, which a queue keeps without taking memory for it.
class Task {
 public:
  Task() = default;
  template <class Call>
  Task(const Call& call)  // NOLINT(google-explicit-constructor): a call is one
      : run_([](std::byte* self) { (*std::launder(reinterpret_cast<Call*>(self)))(); }) {
    static_assert(std::is_trivially_copyable_v<Call> && sizeof(Call) <= room &&
                  alignof(Call) <= alignof(std::max_align_t));
    new (call_.data()) Call(call);
  }
  void operator()() { run_(call_.data()); }

 private:
  static constexpr std::size_t room = 112;  // an action, who executes it, and a request

  alignas(std::max_align_t) std::array<std::byte, room> call_;
  void (*run_)(std::byte*) = nullptr;
};

/// Computes. Work of it is launched by tasks, in the order in which they are submitted.
class Queue {
 public:
  Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  virtual ~Queue() = default;

  /// Whether it has no room for all tasks of another action for now.
  [[nodiscard]] virtual bool full() const { return false; }
  /// The task does not block. Where queues share a thread, that may turn to another queue before
  /// one that `yields`.
  virtual void submit(const Task& task, bool yields = false) = 0;
  /// Tasks that are submitted from now on begin when the event is reached.
  virtual void wait(const Event& event) = 0;
  /// Reached when all that was submitted until now is done. It may be asked for as long as fewer
  /// tasks follow than the queue has room for.
  [[nodiscard]] virtual Event record() = 0;
};

/// When an operation was started, and when it was first seen complete.
struct OperationTimes {
  double started = 0;
  double completed = 0;
};

/// Messages and collectives of one device, which begin in the order in which they are handed over,
/// each when its event is reached: then is in memory what it sends, or may be overwritten what it
/// receives.
class CommunicationQueue {
 public:
  CommunicationQueue() = default;
  CommunicationQueue(const CommunicationQueue&) = delete;
  CommunicationQueue& operator=(const CommunicationQueue&) = delete;
  virtual ~CommunicationQueue() = default;

  /// A segment of training begins, and nothing is under way.
  virtual void begin_segment() {}
  [[nodiscard]] virtual bool full() const { return false; }
  virtual Request post(const Message& message, const Event& after) = 0;
  virtual Request send(const Message& message, const Event& after) = 0;
  virtual Request join(const Collective& collective, const Event& after) = 0;
  /// As in Transport.
  virtual void exchange(std::int64_t round) = 0;
  /// Reached when the operation is complete.
  [[nodiscard]] virtual Event done(Request request) const = 0;
  /// Then, until release(); in memory that host and device share.
  [[nodiscard]] virtual const OperationTimes* times(Request request) const = 0;
  /// The request names another operation soon, which begins only behind whatever waits for this
  /// one.
  virtual void release(Request request) = 0;
  /// An event that something may wait for is reached. Throws what went wrong meanwhile.
  virtual void begin_due() {}
  /// The same by somebody who has nothing to do but wait, and lends a hand.
  virtual void help() {}
  /// Memory it holds for messages beside what they name.
  [[nodiscard]] virtual std::int64_t staging_bytes() const { return 0; }
};

}  // namespace carousel
