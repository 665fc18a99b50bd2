// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the ranks of a training stay together: what they do and fail at together, and what a watchdog
// asks of each. Whether there is a launcher at all is known here, so that the training need not.

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "comm/mpi_session.hpp"
#include "comm/watchdog.hpp"
#include "core/record/run_folder.hpp"
#include "core/train/activity.hpp"

namespace carousel {

/// The ranks of the run, or the one process without a launcher.
class Ranks {
 public:
  /// `session` is null without a launcher; borrowed.
  explicit Ranks(const MpiSession* session) : session_(session) {}

  [[nodiscard]] bool first() const { return session_ == nullptr || session_->rank() == 0; }
  [[nodiscard]] bool several() const { return session_ != nullptr && session_->size() > 1; }

  /// Runs an action on all ranks, usually on their files. If it fails on one of them, it fails on
  /// all.
  void together(const std::function<void()>& action) const;

  /// Runs an action that takes its time, as files do, on this rank alone.
  void at_files(const std::function<void()>& action) const;

  /// Throws Error(usage) if decks or files gave the ranks different texts: they would wait for
  /// messages that nobody sends. All ranks must call it within `seconds` (0: any time).
  void check_same(const std::string& text, double seconds) const;

  /// The text of rank 0, of up to 511 bytes, on every rank. Collective.
  [[nodiscard]] std::string of_first(const std::string& text) const;

  /// In place of each number, its sum over all ranks. Collective.
  void sum(std::span<std::uint64_t> values) const {
    if (session_ != nullptr) session_->sum(values);
  }

  /// Changes whenever this rank begins or ends one of these actions.
  [[nodiscard]] std::uint64_t turns() const { return turns_; }
  /// Whether this rank is at one itself, and does not wait for others.
  [[nodiscard]] bool is_at_files() const { return turns_ % 2 != 0; }

 private:
  const MpiSession* session_;
  mutable std::atomic<std::uint64_t> turns_ = 0;
};

/// What this rank does and where it may say so, for a watchdog that looks from before the rank's
/// device exists until after it is gone. Threads may share it.
class Witness {
 public:
  explicit Witness(StatusFile& status) : status_(status) {}

  /// The device to look at; null: none.
  void watch(const Activity* activity);
  /// Who tells what has gone wrong where nobody waits for it, an empty text while nothing has.
  void watch_failures(std::function<std::string()> failure);
  /// The run folder belongs to this run if that process, as this_process() names it, wrote its
  /// status. Set before ranks wait for the folder.
  void expect_folder(const std::string& writer);
  /// From now on the run folder belongs to this run.
  void owns_folder();

  /// Changes with every action of the device.
  [[nodiscard]] std::uint64_t count() const;
  /// What has gone wrong where nobody waits for it, or an empty text.
  [[nodiscard]] std::string failure() const;
  /// Whether the device waits for data from a file.
  [[nodiscard]] bool is_loading() const;
  /// Writes to status.json that the run goes on, and how many steps are done.
  void write_progress() const;
  /// Prints why this rank ends and what it was doing.
  void say_last_words(int rank, const std::string& cause, bool at_files) const;
  /// Writes to status.json why the run failed, unless the file already holds an end, or belongs to
  /// an earlier run.
  void write_failure(ExitCode code, const std::string& cause) const;

 private:
  StatusFile& status_;
  mutable std::mutex mutex_;
  const Activity* activity_ = nullptr;
  std::function<std::string()> failure_ = [] { return std::string(); };
  std::string writer_;  // of the run folder, once it is made
  std::atomic<bool> owns_folder_ = false;
};

/// While it lives, a witness looks for failures where nobody waits for them.
class WatchedFailures {
 public:
  WatchedFailures(Witness& witness, std::function<std::string()> failure) : witness_(witness) {
    witness_.watch_failures(std::move(failure));
  }
  WatchedFailures(const WatchedFailures&) = delete;
  WatchedFailures& operator=(const WatchedFailures&) = delete;
  ~WatchedFailures() {
    witness_.watch_failures([] { return std::string(); });
  }

 private:
  Witness& witness_;
};

/// While it lives, a witness looks at a device.
class Watched {
 public:
  Watched(Witness& witness, const Activity& activity) : witness_(witness) {
    witness_.watch(&activity);
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched() { witness_.watch(nullptr); }

 private:
  Witness& witness_;
};

/// Says that not all ranks have come within so many seconds to where they had to be, and ends.
[[noreturn]] void give_up(int rank, double seconds);

/// What the watchdog of a rank asks; borrows all.
[[nodiscard]] WatchdogSpec watchdog_spec(double seconds, int rank, const Ranks& ranks,
                                         const Witness& witness);

}  // namespace carousel
