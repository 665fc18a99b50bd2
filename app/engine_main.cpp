// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The engine: the executable that needs Kokkos, MPI and perhaps a GPU. The front end starts it with
// a checked command line; only here are errors caught and turned into exit codes.

#include <fmt/core.h>
#include <malloc.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "app/complaint.hpp"
#include "app/engine.hpp"
#include "app/launcher.hpp"
#include "app/pauses.hpp"
#include "app/ranks.hpp"
#include "comm/deadline.hpp"
#include "comm/mpi_session.hpp"
#include "core/base/descriptor.hpp"

namespace carousel {
namespace {

/// Says what went wrong and ends this rank, and with it all others, who know nothing of it. `rank`
/// is named where more than one runs.
int end(ExitCode code, const char* text, const std::optional<MpiSession>& session) {
  const bool several = session && session->size() > 1;
  complain(several ? fmt::format("rank {}: {}", session->rank(), text) : text);
  if (several) session->abort(code);
  return static_cast<int>(code);
}

int guarded_main(int argc, char** argv) {
  RunClock clock;
  // Before anything calls CUDA, as MPI may. It would load a kernel when that is first launched, and
  // wait with it for all that the GPU is at: for a receive, too, that waits for another rank.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  // If a file may not grow, writing to it is an error with a line and an exit code. It is no error
  // if nobody reads what the terminal shows.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  // The memory of a checkpoint goes back to the system, not into glibc's reserves.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  std::optional<MpiSession> session;
  double end_seconds = 20;  // that the end of MPI may take
  try {
    const EngineArguments arguments = parse_engine_arguments({argv + 1, argv + argc});
    end_seconds = std::min(end_seconds, arguments.watchdog_seconds);
    if (arguments.command == "train") listen_to_signals();
    const Launcher launcher = find_launcher([](const char* name) { return std::getenv(name); });
    if (launcher.present) {
      const Deadline start(arguments.watchdog_seconds, [&] {
        give_up(launcher.rank, arguments.watchdog_seconds);  // MPI would wait for ever
      });
      session.emplace(&argc, &argv);
      clock.begin_at(session->least(clock.began_nanoseconds()));
    }
    const ExitCode code = run_engine(arguments, launcher, session ? &*session : nullptr, clock);
    flush_output();
    if (session) session->will_end(code, end_seconds);
    return static_cast<int>(code);
  } catch (const AgreedError& error) {
    // Every rank is here with the same error; one speaks and all end in order.
    if (session->rank() == 0) complain(error.what());
    session->will_end(error.code(), end_seconds);
    return static_cast<int>(error.code());
  } catch (const Error& error) {
    return end(error.code(), error.what(), session);
  } catch (const std::system_error& error) {
    return end(ExitCode::input_output, error.what(), session);
  } catch (const std::exception& error) {
    return end(ExitCode::internal, error.what(), session);
  }
}

}  // namespace
}  // namespace carousel

int main(int argc, char** argv) {
  carousel::hold_standard_descriptors();
  return carousel::guarded_main(argc, argv);
}
