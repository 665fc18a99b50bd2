// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/engine_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/base/check.hpp"

namespace carousel {
namespace {

/// What the dynamic loader says about the engine's libraries, without running the engine. glibc's
/// loader lists them instead of starting the program when this variable is set; ldd does the same.
/// Elsewhere the engine runs, and only prints its version.
std::string loader_report(const std::string& engine) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);

  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  std::string trace = "LD_TRACE_LOADED_OBJECTS=1";
  environment.insert(environment.end(), {trace.data(), nullptr});
  std::string program = engine;
  std::string version = "--version";
  std::array<char*, 3> arguments = {program.data(), version.data(), nullptr};
  pid_t child = -1;
  const int error =
      posix_spawn(&child, engine.c_str(), &actions, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);

  std::string report;
  std::array<char, 4096> buffer{};
  ssize_t bytes = 0;
  while (error == 0 && (bytes = read(ends[0], buffer.data(), buffer.size())) > 0)
    report.append(buffer.data(), static_cast<std::size_t>(bytes));
  close(ends[0]);
  if (error == 0) waitpid(child, nullptr, 0);
  return report;
}

/// Names of the libraries that the report calls "not found".
std::string missing_libraries(std::string_view report) {
  std::string missing;
  while (!report.empty()) {
    const std::string_view line = report.substr(0, report.find('\n'));
    report.remove_prefix(std::min(line.size() + 1, report.size()));
    const auto arrow = line.find(" => not found");
    if (arrow == std::string_view::npos) continue;
    const auto name = line.find_first_not_of(" \t");
    missing += (missing.empty() ? "" : ", ") + std::string(line.substr(name, arrow - name));
  }
  return missing;
}

}  // namespace

std::filesystem::path engine_path() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "carousel-engine";
}

void hold_signals() {
  sigset_t held;
  sigemptyset(&held);
  for (const int signal : {SIGTERM, SIGUSR1}) sigaddset(&held, signal);
  sigprocmask(SIG_BLOCK, &held, nullptr);
}

void start_engine(const std::filesystem::path& engine, const std::vector<std::string>& arguments) {
  std::string program = engine.string();
  if (access(program.c_str(), X_OK) != 0)
    fail(ExitCode::usage, "the engine {} cannot be started: {}; build or install it beside {}",
         program, std::strerror(errno), "carousel");
  if (const std::string missing = missing_libraries(loader_report(program)); !missing.empty())
    fail(ExitCode::usage,
         "the engine cannot start: this machine has no {}; plan, inspect and train --validate "
         "work here",
         missing);

  std::vector<std::string> words = arguments;
  std::vector<char*> pointers = {program.data()};
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  // UCX, below some MPI libraries, would print a backtrace for a peer that was killed; it reads
  // this when it is loaded.
  setenv("UCX_HANDLE_ERRORS", "none", 0);
  // GNU's OpenMP reads this before main(): threads that wait for each other sleep after some ten
  // microseconds, by default after milliseconds, which on a busy machine the thread that is waited
  // for would need.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "2000", 0);
  execv(program.c_str(), pointers.data());
  fail(ExitCode::usage, "the engine {} cannot be started: {}", program, std::strerror(errno));
}

}  // namespace carousel
