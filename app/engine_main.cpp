// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The engine: the executable that needs Kokkos, MPI and perhaps a GPU. The front end starts it with
// a checked command line; only here are errors caught and turned into exit codes.

#include <fmt/core.h>

#include <Kokkos_Core.hpp>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/engine.hpp"
#include "app/launcher.hpp"
#include "comm/mpi_session.hpp"
#include "core/base/descriptor.hpp"

namespace carousel {
namespace {

/// One line on stderr; `rank` is named where more than one runs and only it knows of the error.
void report(const std::string& text, const MpiSession* session) {
  if (session != nullptr && session->size() > 1)
    fmt::print(stderr, "carousel: rank {}: {}\n", session->rank(), text);
  else
    fmt::print(stderr, "carousel: {}\n", text);
}

int guarded_main(int argc, char** argv) {
  RunClock clock;
  // A file that may not grow is an error of writing, with a line and an exit code; a reader of the
  // terminal's lines who has gone is none.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  std::optional<MpiSession> session;
  try {
    const EngineArguments arguments = parse_engine_arguments({argv + 1, argv + argc});
    const Launcher launcher = find_launcher([](const char* name) { return std::getenv(name); });
    if (launcher.present) {
      session.emplace(&argc, &argv);
      clock.agree(*session);
    }
    const ExitCode code = run_engine(arguments, launcher, session ? &*session : nullptr, clock);
    flush_output();
    return static_cast<int>(code);
  } catch (const AgreedError& error) {
    // Every rank is here with the same error; one speaks and all end in order.
    if (session->rank() == 0) fmt::print(stderr, "carousel: {}\n", error.what());
    return static_cast<int>(error.code());
  } catch (const Error& error) {
    report(error.what(), session ? &*session : nullptr);
    if (session && session->size() > 1) session->abort(error.code());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    report(error.what(), session ? &*session : nullptr);
    if (session && session->size() > 1) session->abort(ExitCode::internal);
    return static_cast<int>(ExitCode::internal);
  }
}

}  // namespace
}  // namespace carousel

int main(int argc, char** argv) {
  return carousel::guarded_main(argc, argv);
}
