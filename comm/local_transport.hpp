// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Messages between devices of a plan that live in one process and take turns: any placement runs on
// a laptop and under a debugger without a launcher. One thread calls everything here.

#include <memory>
#include <vector>

#include "core/base/view.hpp"
#include "core/train/transport.hpp"

namespace carousel {

/// Where sends meet receives. Outlives the transports it hands out.
class LocalHub {
 public:
  /// Room for `operations` pending sends and receives of all devices together.
  LocalHub(const ExecutionSpace& exec, int devices, int operations, Clock clock);

  /// The end of one device.
  [[nodiscard]] std::unique_ptr<Transport> transport(int device);

 private:
  class End;

  enum class Kind : std::uint8_t { none, post, send, all_reduce };
  struct Operation {
    Kind kind = Kind::none;
    int device = 0;
    Message message;
    std::int64_t number = 0;  // order of start
    std::optional<double> completed = {};
  };

  Request start(Kind kind, int device, const Message& message);
  std::optional<double> test(Request request);
  void match(Operation& mine);
  void sum_all();

  ExecutionSpace exec_;
  int devices_;
  Clock clock_;
  std::int64_t started_ = 0;
  std::vector<Operation> operations_;
};

}  // namespace carousel
