// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Messages between devices of a plan that live in one process and take turns: any placement runs on
// a laptop and under a debugger without a launcher. One call at a time, from any thread.

#include <memory>
#include <vector>

#include "core/base/view.hpp"
#include "core/engine/launch_timeline.hpp"
#include "core/engine/transport.hpp"

namespace carousel {

/// Where sends meet receives. Outlives the transports it hands out.
class LocalHub {
 public:
  /// Room for `operations` pending sends and receives of all devices together; groups of devices
  /// have collectives.
  LocalHub(const ExecutionSpace& exec, std::vector<std::vector<int>> groups, int operations,
           Clock clock);

  /// The end of one device.
  [[nodiscard]] std::unique_ptr<Transport> transport(int device);

 private:
  class End;

  enum class Kind : std::uint8_t { none, post, send, collective };
  struct Operation {
    Kind kind = Kind::none;
    int device = 0;
    Message message = {};
    Collective collective = {};
    std::int64_t number = 0;  // order of start
    std::int64_t mark = 0;    // behind the copies that complete it; 0: none yet
    std::optional<double> completed = {};
  };

  Operation& take(Kind kind, int device);
  Request start(Kind kind, int device, const Message& message);
  Request join(int device, const Collective& collective);
  std::optional<double> test(Request request);
  void complete(Operation& operation, std::int64_t mark);
  void match(Operation& mine);
  void meet(int group);
  void exchange_all(const std::vector<int>& group);
  void exchange_parts();

  ExecutionSpace exec_;
  LaunchTimeline copies_;
  std::vector<std::vector<int>> groups_;
  Clock clock_;
  std::int64_t started_ = 0;
  std::vector<Operation> operations_;
  std::vector<Operation*> met_;  // of a collective, in the order of its group
};

}  // namespace carousel
