// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How Carousel fails: one exception type that carries the exit code of the process, and one macro
// for invariants. Only main catches; nothing here prints or exits.

#include <fmt/core.h>

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

namespace carousel {

/// Exit codes of every Carousel program; a job script may act on them.
enum class ExitCode : int {
  done = 0,
  usage = 2,
  differ = 3,
  incomplete = 4,
  bad_data = 65,
  internal = 70,
  input_output = 74,
  requeue = 75,
  diverged = 76,
  peer_lost = 77,
};

struct ExitCodeMeaning {
  ExitCode code;
  const char* meaning;
};

/// What `carousel help exit-codes` says, and the only place that says it.
inline constexpr std::array exit_code_meanings = {
    ExitCodeMeaning{ExitCode::done, "done"},
    ExitCodeMeaning{ExitCode::usage, "a mistake in the command line or the deck"},
    ExitCodeMeaning{ExitCode::differ, "diff: the two runs are not the same"},
    ExitCodeMeaning{ExitCode::incomplete, "verify: the run is incomplete; what is there is right"},
    ExitCodeMeaning{ExitCode::bad_data, "a file does not hold what it should"},
    ExitCodeMeaning{ExitCode::internal, "a bug in Carousel; please report it"},
    ExitCodeMeaning{ExitCode::input_output, "the system refused to read or write"},
    ExitCodeMeaning{ExitCode::requeue,
                    "train: stopped behind a checkpoint; `carousel train RUNFOLDER` goes on"},
    ExitCodeMeaning{ExitCode::diverged, "the loss is no longer a finite number"},
    ExitCodeMeaning{ExitCode::peer_lost, "another rank died or is stuck"},
};

/// Thrown for everything that ends a run. `what()` is one line that says where and what to do.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// Throws an Error with a formatted message.
template <class... Args>
[[noreturn]] void fail(ExitCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

namespace detail {
[[noreturn]] void check_failed(const char* condition, const char* file, int line,
                               const std::string& message);
}  // namespace detail

}  // namespace carousel

/// Ends the run with exit code 70 when an invariant of Carousel itself is broken. The message is a
/// format string with arguments, built only on failure. For mistakes of a user, call fail().
#define CAROUSEL_CHECK(condition, ...)                                 \
  do {                                                                 \
    if (!(condition)) [[unlikely]]                                     \
      ::carousel::detail::check_failed(#condition, __FILE__, __LINE__, \
                                       ::fmt::format(__VA_ARGS__));    \
  } while (false)
