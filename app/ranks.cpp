// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/ranks.hpp"

#include <fmt/core.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <span>
#include <system_error>
#include <thread>

#include "app/complaint.hpp"
#include "app/deck.hpp"
#include "comm/deadline.hpp"

namespace carousel {
namespace {

/// Counts the begin and the end of an action, however it ends.
class Turn {
 public:
  explicit Turn(std::atomic<std::uint64_t>& turns) : turns_(turns) { ++turns_; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { ++turns_; }

 private:
  std::atomic<std::uint64_t>& turns_;
};

}  // namespace

void Ranks::together(const std::function<void()>& action) const {
  if (session_ == nullptr)
    at_files(action);
  else
    session_->together([&] { at_files(action); });
}

void Ranks::at_files(const std::function<void()>& action) const {
  const Turn turn(turns_);
  try {
    action();
  } catch (const std::system_error& error) {
    fail(ExitCode::input_output, "{}", error.what());
  }
}

void Ranks::check_same(const std::string& text, double seconds) const {
  if (session_ == nullptr) return;
  const auto mine = std::hash<std::string>()(text);
  auto of_first = mine;
  const Deadline limit(seconds, [this, seconds] { give_up(session_->rank(), seconds); });
  session_->from_first(std::as_writable_bytes(std::span(&of_first, 1)));
  session_->together([&] {
    if (mine != of_first)
      fail(ExitCode::usage,
           "this rank has another deck, override, data set or program than rank 0; start all "
           "ranks with the same, in the same places");
  });
}

std::string Ranks::of_first(const std::string& text) const {
  if (session_ == nullptr) return text;
  std::array<char, 512> bytes = {};
  std::strncpy(bytes.data(), text.c_str(), bytes.size() - 1);
  session_->from_first(std::as_writable_bytes(std::span(bytes)));
  return bytes.data();
}

void give_up(int rank, double seconds) {
  complain(
      fmt::format("rank {}: not all ranks have started within {} s (run.watchdog_seconds); did one "
                  "of them end?",
                  rank, seconds));
  // A launcher may end the others as soon as one has ended; all should have spoken by then.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  std::_Exit(static_cast<int>(ExitCode::peer_lost));
}

void Witness::watch(const Activity* activity) {
  const std::lock_guard lock(mutex_);
  activity_ = activity;
}

void Witness::watch_failures(std::function<std::string()> failure) {
  const std::lock_guard lock(mutex_);
  failure_ = std::move(failure);
}

std::string Witness::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_();
}

void Witness::expect_folder(const std::string& writer) {
  const std::lock_guard lock(mutex_);
  writer_ = writer;
}

void Witness::owns_folder() {
  const std::lock_guard lock(mutex_);
  status_.expect(writer_);
  owns_folder_ = true;
}

std::uint64_t Witness::count() const {
  const std::lock_guard lock(mutex_);
  return activity_ == nullptr ? 0 : activity_->count();
}

bool Witness::is_loading() const {
  const std::lock_guard lock(mutex_);
  return activity_ != nullptr && activity_->is_loading();
}

void Witness::write_progress() const {
  std::unique_lock lock(mutex_);
  if (activity_ == nullptr) return;
  const std::int64_t steps = activity_->steps();
  lock.unlock();  // files may take their time, and the watchdog goes on looking
  try {
    status_.write({.state = RunState::running, .step = steps});
  } catch (const Error&) {
    // Whoever trains finds out, too, and can tell.
  }
}

void Witness::say_last_words(int rank, const std::string& cause, bool at_files) const {
  const std::lock_guard lock(mutex_);
  complain(fmt::format("rank {}: {}; {}{}", rank, cause, at_files ? "at its files; " : "",
                       activity_ == nullptr ? "outside training" : activity_->text()));
}

void Witness::write_failure(ExitCode code, const std::string& cause) const {
  std::unique_lock lock(mutex_);
  const std::string writer = writer_;
  const std::int64_t steps = activity_ == nullptr ? 0 : activity_->steps();
  lock.unlock();  // files may take their time, and the watchdog goes on looking
  if (!owns_folder_ && !status_.is_of(writer)) return;
  try {
    status_.write({.state = code == ExitCode::diverged ? RunState::diverged : RunState::failed,
                   .exit_code = static_cast<int>(code),
                   .cause = printable(cause),
                   .step = steps});
  } catch (const Error&) {
    // The cause itself is told on the terminal; a second failure would only hide it.
  }
}

WatchdogSpec watchdog_spec(double seconds, int rank, const Ranks& ranks, const Witness& witness) {
  return {.seconds = seconds,
          .progress = [&ranks, &witness] { return witness.count() + ranks.turns(); },
          .at_files = [&ranks, &witness] { return ranks.is_at_files() || witness.is_loading(); },
          .failure = [&witness] { return witness.failure(); },
          .last_words =
              [rank, &ranks, &witness](const std::string& cause) {
                witness.say_last_words(rank, cause, ranks.is_at_files());
              },
          .write_cause =
              [&witness](const std::string& cause) {
                witness.write_failure(ExitCode::peer_lost, cause);
              }};
}

}  // namespace carousel
