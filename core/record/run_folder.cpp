// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/record/run_folder.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <system_error>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/descriptor.hpp"

namespace carousel {
namespace {

namespace fs = std::filesystem;

constexpr std::array run_files{
    "run.h5",         "metrics.jsonl",       "status.json",       "trace.json",
    "run.h5.partial", "status.json.partial", "trace.json.partial"};
constexpr std::array run_folders{"ranks", "checkpoints"};

/// Whether a name is `prefix`, at least so many digits, and ".h5".
bool is_numbered(std::string_view name, std::string_view prefix, std::size_t digits) {
  constexpr std::string_view end = ".h5";
  if (!name.starts_with(prefix) || !name.ends_with(end)) return false;
  name.remove_prefix(prefix.size());
  return name.size() >= digits + end.size() &&
         name.find_first_not_of("0123456789") == name.size() - end.size();
}

constexpr std::string_view part_prefix = "part-";

/// Whether a run writes files of this name into this folder of its own.
bool is_written(std::string_view name, std::string_view folder) {
  constexpr std::string_view partial = ".partial";  // while it was being replaced
  if (name.ends_with(partial)) name.remove_suffix(partial.size());
  if (folder == "ranks") return is_numbered(name, "", 4);
  return name == last_checkpoint || name == best_checkpoint || is_checkpoint_file_name(name);
}

/// The folders in ranks/ of parts that went on with a run.
std::vector<fs::path> folders_of_parts(const fs::path& folder) {
  std::vector<fs::path> parts;
  const fs::path ranks = folder / "ranks";
  if (!fs::is_directory(ranks)) return parts;
  for (const fs::directory_entry& entry : fs::directory_iterator(ranks)) {
    std::string_view name = entry.path().filename().native();
    if (!name.starts_with(part_prefix) || !fs::is_directory(entry.symlink_status())) continue;
    name.remove_prefix(part_prefix.size());
    if (!name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos)
      parts.push_back(entry.path());
  }
  return parts;
}

/// All that bears a name which a run writes.
std::vector<fs::path> places_of_run(const fs::path& folder) {
  std::vector<fs::path> places;
  for (const char* name : run_files) {
    if (fs::exists(fs::symlink_status(folder / name))) places.push_back(folder / name);
  }
  const auto add = [&places](const fs::path& inner, const char* kind) {
    for (const fs::directory_entry& entry : fs::directory_iterator(inner)) {
      if (is_written(entry.path().filename().native(), kind)) places.push_back(entry.path());
    }
  };
  for (const char* inner : run_folders) {
    if (fs::is_directory(folder / inner)) add(folder / inner, inner);
  }
  for (const fs::path& part : folders_of_parts(folder)) add(part, "ranks");
  return places;
}

bool is_file(const fs::path& path) {
  const fs::file_status status = fs::symlink_status(path);
  return fs::is_symlink(status) || fs::is_regular_file(status);
}

/// Runs `function`; what the system refuses it becomes an error that says what to do.
template <class Function>
auto on_run_folder(Function&& function) {
  try {
    return function();
  } catch (const fs::filesystem_error& error) {
    fail(ExitCode::input_output,
         "{}: cannot make the run folder: {}; set run.output to a folder you may write to",
         error.path1().string(), error.code().message());
  }
}

/// When a process began, in ticks since its node did; 0 where the system does not say, -1 of one
/// that has ended and that only its parent keeps in the list.
std::int64_t start_of(std::int64_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text);
  // The program's name, in parentheses, may hold anything; the start is the 20th word after it.
  std::istringstream words(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string word;
  for (int k = 0; k < 19; ++k) {
    words >> word;
    if (k == 0 && word == "Z") return -1;
  }
  std::int64_t start = 0;
  words >> start;
  return start;
}

/// Who is still writing a run, or may be; "" when nobody is.
std::string writer_of(const fs::path& folder) {
  try {
    const RunStatus status = read_status(folder);
    if (status.state != RunState::running) return "";
    const Life life = life_of(status);
    if (life == Life::alive) return fmt::format("process {} is", status.process);
    if (life == Life::gone || status.host.empty() || status.host == host_name()) return "";
    return fmt::format("process {} on {} may be", status.process, status.place());
  } catch (const Error&) {
    return "";  // a damaged status speaks for nobody
  }
}

/// Fills in that this process writes the status.
void sign(RunStatus& status) {
  status.host = host_name();
  status.process = getpid();
  status.process_start = start_of(status.process);
  status.job = this_job();
}

/// Who wrote a status, at whatever time; writer_of() says for people who still may.
std::string process_of(const RunStatus& status) {
  return fmt::format("{} {} {}", status.process, status.process_start, status.host);
}

/// Whether the end of a run stands in its folder.
bool is_told(const fs::path& folder) {
  try {
    return read_status(folder).state != RunState::running;
  } catch (const Error&) {
    return false;
  }
}

/// Whether the folder holds the run of another process than the one named, if one is. Where that
/// cannot be read it is not known.
bool is_taken(const fs::path& folder, const std::string& process) {
  try {
    return !process.empty() && process_of(read_status(folder)) != process;
  } catch (const Error&) {
    return false;
  }
}

/// What status.json says, now and of this process.
std::string status_text(RunStatus status) {
  sign(status);
  status.updated = utc_now();
  const nlohmann::ordered_json json{{"state", to_string(status.state)},
                                    {"exit_code", status.exit_code},
                                    {"cause", status.cause},
                                    {"step", status.step},
                                    {"host", status.host},
                                    {"process", status.process},
                                    {"process_start", status.process_start},
                                    {"job", status.job.id},
                                    {"restarts", status.job.restarts},
                                    {"updated", status.updated}};
  // A cause may quote any bytes of a user's file.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

/// A file that exists while a run takes a folder. If several runs start in one folder, only one
/// makes the file and proceeds. The others do not wait: they are refused.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder) : path_(path_in(folder)) {
    bool made = false;
    try {
      made = make_file(path_);
    } catch (const Error& error) {
      fail(error.code(),
           "{}; check free space, quota and permissions, or set run.output to another folder",
           error.what());
    }
    if (!made) refuse(path_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }

  /// Refuses a folder that a run is taking, or was when it was killed.
  static void check(const fs::path& folder) {
    const fs::path path = path_in(folder);
    if (on_run_folder([&] { return fs::exists(fs::symlink_status(path)); })) refuse(path.string());
  }

 private:
  static fs::path path_in(const fs::path& folder) { return folder / "status.json.lock"; }
  [[noreturn]] static void refuse(const std::string& path) {
    fail(ExitCode::usage,
         "{}: another run is starting in this folder; set run.output to another one; if none is, "
         "remove this file",
         path);
  }

  std::string path_;
};

/// Refuses a folder that would have to be made inside something that is not a folder.
void check_place(const fs::path& folder) {
  on_run_folder([&] {
    fs::path place = fs::absolute(folder);
    // A link that leads nowhere is in the way, too.
    while (!fs::exists(fs::symlink_status(place)) && place.has_relative_path())
      place = place.parent_path();
    if (!fs::is_directory(place))
      throw fs::filesystem_error("", place, std::make_error_code(std::errc::not_a_directory));
    if (::access(place.c_str(), W_OK | X_OK) != 0)
      throw fs::filesystem_error("", place, {errno, std::generic_category()});
  });
}

/// Refuses a folder that somebody else writes a run into.
void check_alone(const fs::path& folder) {
  if (const std::string writer = writer_of(folder); !writer.empty())
    fail(
        ExitCode::usage,
        "{}: {} still writing this run; end it first, or set run.output to another folder; if its "
        "launcher was killed, its ranks end by themselves, within run.watchdog_seconds (300 unless "
        "the deck says otherwise): try again then; if it has ended, or that process is not "
        "Carousel's, remove status.json",
        folder.string(), writer);
}

/// What check_run_folder() says of the files and folders of runs.
void check_contents(const fs::path& folder, bool overwrite) {
  for (const char* inner : run_folders) {
    const bool in_the_way = on_run_folder([&] {
      return fs::exists(fs::symlink_status(folder / inner)) && !fs::is_directory(folder / inner);
    });
    if (in_the_way)
      fail(ExitCode::usage, "{}: is not a folder, but a run makes one of this name; remove it",
           (folder / inner).string());
  }
  const std::vector<fs::path> files = files_of_run(folder);
  for (const fs::path& file : files) {
    if (!on_run_folder([&] { return is_file(file); }))
      fail(ExitCode::usage, "{}: is not a file, but a run writes one of this name; remove it",
           file.string());
  }
  if (files.empty()) return;
  if (!overwrite)
    fail(ExitCode::usage,
         "{}: already holds a run, {}; set run.output to another folder, or pass --overwrite to "
         "replace that run",
         folder.string(), files.front().lexically_relative(folder).string());
  for (const fs::path& file : files) {
    const fs::path inner = file.lexically_relative(folder).parent_path();
    if (!inner.empty() && on_run_folder([&] { return fs::is_symlink(folder / inner); }))
      fail(ExitCode::usage,
           "{}: is a link, and --overwrite deletes nothing behind links; remove {} and the rest of "
           "that run yourself, or set run.output to another folder",
           (folder / inner).string(), file.filename().string());
  }
  check_alone(folder);
}

}  // namespace

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name = {};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

std::string rank_file_name(int rank, int part) {
  if (part == 0) return fmt::format("ranks/{:04}.h5", rank);
  return fmt::format("ranks/{}{}/{:04}.h5", part_prefix, part, rank);
}

std::string checkpoint_file_name(std::int64_t step) {
  return fmt::format("step-{:08}.h5", step);
}

bool is_checkpoint_file_name(std::string_view name) {
  return is_numbered(name, "step-", 8);
}

bool holds_run(const fs::path& folder) {
  return !files_of_run(folder).empty();
}

std::vector<fs::path> files_of_run(const fs::path& folder) {
  return on_run_folder([&] { return places_of_run(folder); });
}

void check_run_folder(const fs::path& folder, bool overwrite) {
  check_place(folder);
  FolderLock::check(folder);
  check_contents(folder, overwrite);
}

void create_run_folder(const fs::path& folder, bool overwrite) {
  // A run that may not have the folder must not lock out another one.
  check_run_folder(folder, overwrite);
  on_run_folder([&] { fs::create_directories(folder); });
  const FolderLock lock(folder);
  check_contents(folder, overwrite);
  on_run_folder([&] {
    for (const fs::path& file : places_of_run(folder)) fs::remove(file);
    std::error_code unknown;  // a folder in which somebody has a file of his own
    for (const fs::path& part : folders_of_parts(folder)) fs::remove(part, unknown);
    for (const char* name : run_folders) fs::create_directories(folder / name);
  });
  StatusFile(folder).write({});
}

void check_continuable(const fs::path& folder) {
  check_place(folder);
  FolderLock::check(folder);
  check_alone(folder);
}

void continue_run_folder(const fs::path& folder, int part) {
  check_continuable(folder);
  const FolderLock lock(folder);
  check_alone(folder);
  on_run_folder([&] {
    for (const char* name : run_folders) fs::create_directories(folder / name);
    fs::create_directories((folder / rank_file_name(0, part)).parent_path());
    fs::remove(folder / "status.json");  // which tells how the part before it ended
  });
  StatusFile(folder).write({});
}

std::string RunStatus::place() const {
  return job.id.empty() ? host : fmt::format("{} in job {}", host, job.id);
}

const char* to_string(RunState state) {
  switch (state) {
    case RunState::running:
      return "running";
    case RunState::done:
      return "done";
    case RunState::stopped:
      return "stopped";
    case RunState::failed:
      return "failed";
    case RunState::diverged:
      return "diverged";
  }
  return "?";
}

void StatusFile::write(RunStatus status) {
  const std::lock_guard lock(mutex_);
  if (closed_ || is_told(folder_) || is_taken(folder_, process_)) return;
  closed_ = status.state != RunState::running;
  std::string text = status_text(std::move(status));
  const std::string path = (folder_ / "status.json").string();
  try {
    replace_file(path, std::as_bytes(std::span(text)), Durability::process);
  } catch (const Error&) {
    if (!closed_) throw;
    // A file of a few hundred bytes has a block to itself.
    Descriptor former = Descriptor::overwrite(path);
    text.resize(std::max(text.size(), static_cast<std::size_t>(former.size())), '\n');
    former.write(std::as_bytes(std::span(text)));
  }
}

void StatusFile::expect(std::string process) {
  const std::lock_guard lock(mutex_);
  process_ = std::move(process);
}

bool StatusFile::is_of(const std::string& process) const {
  try {
    return process_of(read_status(folder_)) == process;
  } catch (const Error&) {
    return false;
  }
}

void StatusFile::check_ours() const {
  const std::lock_guard lock(mutex_);
  if (is_taken(folder_, process_))
    fail(ExitCode::usage,
         "{}: status.json is of another process now, which has taken this run folder; this one "
         "ends and leaves the folder to it",
         folder_.string());
}

std::string this_process() {
  RunStatus status;
  sign(status);
  return process_of(status);
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
                     .process_start = json.value("process_start", std::int64_t{0}),
                     .updated = json.value("updated", ""),
                     .job = {json.value("job", ""), json.value("restarts", 0)}};
    for (const RunState state : {RunState::running, RunState::done, RunState::stopped,
                                 RunState::failed, RunState::diverged}) {
      if (json.at("state") == to_string(state)) status.state = state;
    }
    return status;
  } catch (const nlohmann::json::exception&) {
    fail(ExitCode::bad_data, "{}: not a status that Carousel wrote", path);
  }
}

Life life_of(const RunStatus& status) {
  if (status.host != host_name() || status.process <= 0)
    return status.job.is_before(this_job()) ? Life::gone : Life::unknown;
  const bool exists = kill(static_cast<pid_t>(status.process), 0) == 0 || errno == EPERM;
  const std::int64_t start = start_of(status.process);
  const bool other = status.process_start != 0 && start != 0 && start != status.process_start;
  return exists && !other ? Life::alive : Life::gone;
}

}  // namespace carousel
