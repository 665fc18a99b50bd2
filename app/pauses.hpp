// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Why a training should pause: a signal, the end of its wall-clock time, a checkpoint that is due
// by the clock. Each rank knows its own reasons; together they act on those of all.

#include <functional>
#include <optional>
#include <string>

#include "app/ranks.hpp"
#include "app/run_config.hpp"

namespace carousel {

/// From now on SIGTERM, SIGINT and SIGUSR1 ask for the end of the training. A SIGINT more than a
/// second after the first one ends the process at once.
void listen_to_signals();

class Pauses {
 public:
  /// `seconds` tells those since the run's processes began.
  Pauses(const RunConfig& config, std::function<double()> seconds);

  /// Whether this rank has a reason. Cheap, and true until the training pauses for it.
  [[nodiscard]] bool wanted() const;

  /// What all ranks do where they pause.
  struct Decision {
    bool stop = false;
    bool save = false;
  };
  /// The same on all ranks. Collective.
  [[nodiscard]] Decision decide(const Ranks& ranks) const;

  /// A checkpoint was written just now.
  void saved() { saved_ = seconds_(); }

  /// Why this rank wants to stop: "SIGTERM"; empty where it does not.
  [[nodiscard]] std::string stop_reason() const;

 private:
  [[nodiscard]] bool is_over() const { return end_ && seconds_() >= *end_; }
  [[nodiscard]] bool save_is_due() const {
    return every_seconds_ > 0 && seconds_() - saved_ >= every_seconds_;
  }

  std::function<double()> seconds_;
  std::string wall_clock_;
  std::optional<double> end_;
  double every_seconds_;
  double saved_ = 0;
};

}  // namespace carousel
