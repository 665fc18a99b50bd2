// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The folder of one run: making it, and status.json, by which scripts and later runs know how it
// is. What goes into HDF5 is in run_file.hpp.

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/record/batch_job.hpp"

namespace carousel {

/// The name of this node.
[[nodiscard]] std::string host_name();

/// The time as files tell it: "2026-11-21T16:06:10Z".
[[nodiscard]] std::string utc_now();

/// The file names of a run; `rank` is also the number of the plan's device. A run that was gone on
/// with has files of ranks for each of its parts: "ranks/0003.h5", then "ranks/part-1/0003.h5".
[[nodiscard]] std::string rank_file_name(int rank, int part = 0);
[[nodiscard]] std::string checkpoint_file_name(std::int64_t step);  // "step-00000012.h5"
[[nodiscard]] bool is_checkpoint_file_name(std::string_view name);
/// Links to checkpoints, beside them.
inline constexpr const char* last_checkpoint = "last.h5";
inline constexpr const char* best_checkpoint = "best.h5";

/// Whether there is any file that a run would replace. Error(input_output) if it cannot be listed.
[[nodiscard]] bool holds_run(const std::filesystem::path& folder);

/// All that bears a name which a run writes, and that --overwrite would remove.
[[nodiscard]] std::vector<std::filesystem::path> files_of_run(const std::filesystem::path& folder);

/// Throws Error(usage) if the folder holds a run, or if another run is starting in it. With
/// `overwrite`, a run there is in the way only if it is alive, or may be on another host, or if its
/// files lie behind a link.
void check_run_folder(const std::filesystem::path& folder, bool overwrite);

/// Checks the folder and makes it with what a run needs in it: its folders and a status `running`
/// of this process. With `overwrite` it is freed of the files whose names a run writes, and of
/// nothing else. If several runs start in one folder, only one proceeds, provided that the file
/// system creates a file only once. A run killed meanwhile leaves "status.json.lock", which the
/// next one names.
void create_run_folder(const std::filesystem::path& folder, bool overwrite);

/// Error(usage) if the run in a folder cannot be gone on with, since it is alive, or may be.
void check_continuable(const std::filesystem::path& folder);

/// Takes a folder to go on with the run in it: refuses it if that run is alive, or may be, and
/// makes the status `running` of this process. Nothing is removed.
void continue_run_folder(const std::filesystem::path& folder, int part);

enum class RunState : std::uint8_t { running, done, stopped, failed, diverged };
[[nodiscard]] const char* to_string(RunState state);

struct RunStatus {
  RunState state = RunState::running;
  int exit_code = 0;
  std::string cause = {};  // one line, empty while all is well
  std::int64_t step = 0;   // training steps done
  // Filled in when it is written:
  std::string host = {};
  std::int64_t process = 0;
  std::int64_t process_start = 0;  // tells it from a later one of that number; 0: not known
  std::string updated = {};        // UTC
  BatchJob job = {};

  /// "HOST", or "HOST in job 1234".
  [[nodiscard]] std::string place() const;
};

/// What tells this process from others, as the status of a run does.
[[nodiscard]] std::string this_process();

/// status.json of a run as its process writes it. Threads may share it: the watchdog may write the
/// end of a run while the run itself still writes a step.
class StatusFile {
 public:
  explicit StatusFile(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Replaces the file; readers see the former or the new one. A run ends once: after any state but
  /// `running`, by whichever process, nothing more is written. If there is no room for a new file,
  /// the end of the run is written over the former one.
  void write(RunStatus status);
  /// From now on nothing is written over a file that another process has written than the one that
  /// this_process() names so: the folder was moved, and another run has begun in its place.
  void expect(std::string process);
  /// Whether a process, as this_process() gives it, has written the file.
  [[nodiscard]] bool is_of(const std::string& process) const;
  /// Error(usage) if another process has taken the folder: this job may have been started anew
  /// while the controller could not reach this node.
  void check_ours() const;

 private:
  std::filesystem::path folder_;
  mutable std::mutex mutex_;
  std::string process_;  // empty: any
  bool closed_ = false;
};

[[nodiscard]] RunStatus read_status(const std::filesystem::path& folder);

/// Whether the process of a run whose status is `running` still exists. A killed process cannot
/// change its status, and nothing is known about processes on other hosts, but for those of this
/// job before it was queued again.
enum class Life : std::uint8_t { alive, gone, unknown };
[[nodiscard]] Life life_of(const RunStatus& status);

}  // namespace carousel
