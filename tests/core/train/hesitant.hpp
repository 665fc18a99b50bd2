// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Kernels and messages that are late at random, for tests of order.

#include <Kokkos_Core.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <thread>

#include "core/engine/transport.hpp"

namespace carousel::test {

/// Sleeps now and then.
inline void hesitate(std::mt19937& random) {
  if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
}

/// While it lives, the executor hesitates at random before it computes: it opens a region of Kokkos
/// Tools for every such action. One at a time, since their callbacks have no room for an argument.
class HesitantExecutor {
 public:
  explicit HesitantExecutor(unsigned seed) {
    random_.seed(seed);
    actions_ = 0;
    Kokkos::Tools::Experimental::set_push_region_callback([](const char*) {
      ++actions_;
      hesitate(random_);
    });
  }
  HesitantExecutor(const HesitantExecutor&) = delete;
  HesitantExecutor& operator=(const HesitantExecutor&) = delete;
  ~HesitantExecutor() { Kokkos::Tools::Experimental::set_push_region_callback(nullptr); }

  [[nodiscard]] int actions() const { return actions_; }

 private:
  static inline std::mt19937 random_;
  static inline int actions_ = 0;
};

/// A transport that hesitates at random before every call, and to say that something is complete.
class Hesitant final : public Transport {
 public:
  Hesitant(std::unique_ptr<Transport> inner, unsigned seed)
      : inner_(std::move(inner)), random_(seed) {}

  Request post(const Message& message) override {
    hesitate(random_);
    return inner_->post(message);
  }
  Request send(const Message& message) override {
    hesitate(random_);
    return inner_->send(message);
  }
  Request join(const Collective& collective) override {
    hesitate(random_);
    return inner_->join(collective);
  }
  void progress() override { inner_->progress(); }
  [[nodiscard]] bool needs_calls() const override { return inner_->needs_calls(); }
  std::optional<double> test(Request request) override {
    if (random_() % 4 == 0) return std::nullopt;
    return inner_->test(request);
  }

 private:
  std::unique_ptr<Transport> inner_;
  std::mt19937 random_;
};

}  // namespace carousel::test
