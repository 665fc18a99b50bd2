// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/io/run_folder.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cmath>
#include <csignal>
#include <ctime>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>

#include "core/base/check.hpp"

namespace carousel {
namespace {

namespace fs = std::filesystem;

constexpr std::array run_files{"run.h5", "metrics.jsonl", "status.json", "trace.json", "run.log"};
constexpr std::array run_folders{"ranks", "checkpoints"};

/// Removes the files of a run inside one of its folders, then the folder if nothing else is in it.
void remove_run_folder(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".h5" || extension == ".partial") fs::remove(entry.path());
  }
  if (fs::is_empty(folder)) fs::remove(folder);
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name = {};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

/// One line of JSON of bounded length, on the stack.
class Line {
 public:
  explicit Line(const char* kind) { add("{{\"kind\":\"{}\"", kind); }

  void number(const char* name, std::int64_t value) { add(",\"{}\":{}", name, value); }
  void number(const char* name, double value) {
    if (std::isfinite(value))
      add(",\"{}\":{}", name, value);
    else
      add(",\"{}\":null", name);
  }
  std::span<const std::byte> finish() {
    add("}}\n");
    return std::as_bytes(std::span(text_).first(size_));
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    const std::size_t room = text_.size() - size_;
    const auto result =
        fmt::format_to_n(text_.data() + size_, room, format, std::forward<Args>(args)...);
    CAROUSEL_CHECK(result.size <= room, "a line of metrics.jsonl is too long");
    size_ += result.size;
  }

  std::array<char, 512> text_;
  std::size_t size_ = 0;
};

}  // namespace

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

std::string rank_file_name(int rank) {
  return fmt::format("ranks/{:04}.h5", rank);
}

bool holds_run(const fs::path& folder) {
  for (const char* name : run_files) {
    if (fs::exists(folder / name)) return true;
  }
  return false;
}

void check_run_folder(const fs::path& folder, bool overwrite) {
  if (!holds_run(folder)) return;
  if (!overwrite)
    fail(ExitCode::usage,
         "{}: holds a run already; set run.output to another folder, or pass "
         "--overwrite to replace that run",
         folder.string());
  if (!fs::exists(folder / "status.json")) return;
  try {
    const RunStatus status = read_status(folder);
    if (status.state != RunState::running || life_of(status) != Life::alive) return;
    fail(ExitCode::usage,
         "{}: process {} is still writing this run; end it first, or set run.output "
         "to another folder",
         folder.string(), status.process);
  } catch (const Error& error) {
    if (error.code() == ExitCode::usage) throw;  // a damaged status speaks for nobody
  }
}

void create_run_folder(const fs::path& folder, bool overwrite) {
  check_run_folder(folder, overwrite);
  try {
    if (holds_run(folder)) {
      for (const char* name : run_files) fs::remove(folder / name);
      for (const char* name : run_folders) {
        if (fs::is_directory(folder / name)) remove_run_folder(folder / name);
      }
    }
    for (const char* name : run_folders) fs::create_directories(folder / name);
  } catch (const fs::filesystem_error& error) {
    fail(ExitCode::input_output,
         "{}: cannot make the run folder: {}; set run.output to a folder "
         "you may write to",
         error.path1().string(), error.code().message());
  }
}

const char* to_string(RunState state) {
  switch (state) {
    case RunState::running:
      return "running";
    case RunState::done:
      return "done";
    case RunState::failed:
      return "failed";
    case RunState::diverged:
      return "diverged";
  }
  return "?";
}

void write_status(const fs::path& folder, RunStatus status) {
  status.host = host_name();
  status.process = getpid();
  status.updated = utc_now();
  const nlohmann::ordered_json json{{"state", to_string(status.state)},
                                    {"exit_code", status.exit_code},
                                    {"cause", status.cause},
                                    {"step", status.step},
                                    {"host", status.host},
                                    {"process", status.process},
                                    {"updated", status.updated}};
  // A cause may quote any bytes of a user's file.
  const std::string text =
      json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  replace_file((folder / "status.json").string(), std::as_bytes(std::span(text)),
               Durability::process);
}

RunStatus read_status(const fs::path& folder) {
  const std::string path = (folder / "status.json").string();
  const std::vector<std::byte> bytes = read_file(path);
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  const nlohmann::json json = nlohmann::json::parse(text, text + bytes.size(), nullptr, false);
  try {
    RunStatus status{.exit_code = json.at("exit_code"),
                     .cause = json.at("cause"),
                     .step = json.at("step"),
                     .host = json.value("host", ""),
                     .process = json.value("process", std::int64_t{0}),
                     .updated = json.value("updated", "")};
    for (const RunState state :
         {RunState::running, RunState::done, RunState::failed, RunState::diverged}) {
      if (json.at("state") == to_string(state)) status.state = state;
    }
    return status;
  } catch (const nlohmann::json::exception&) {
    fail(ExitCode::bad_data, "{}: not a status that Carousel wrote", path);
  }
}

Life life_of(const RunStatus& status) {
  if (status.host != host_name() || status.process <= 0) return Life::unknown;
  const bool exists = kill(static_cast<pid_t>(status.process), 0) == 0 || errno == EPERM;
  return exists ? Life::alive : Life::gone;
}

MetricsLog::MetricsLog(const fs::path& folder)
    : file_(Descriptor::create((folder / "metrics.jsonl").string())) {}

void MetricsLog::write(const StepRecord& step) {
  Line line("step");
  line.number("step", step.step);
  line.number("epoch", step.epoch);
  line.number("loss", step.loss);
  line.number("accuracy", step.accuracy);
  line.number("learning_rate", step.learning_rate);
  line.number("seconds", step.seconds);
  line.number("images_per_second", step.images_per_second);
  file_.write(line.finish());
}

void MetricsLog::write(const EvaluationRecord& evaluation) {
  Line line("evaluation");
  line.number("step", evaluation.step);
  line.number("epoch", evaluation.epoch);
  line.number("loss", evaluation.loss);
  line.number("accuracy", evaluation.accuracy);
  file_.write(line.finish());
}

}  // namespace carousel
