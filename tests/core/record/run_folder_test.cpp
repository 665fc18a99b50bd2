// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The run folder: never overwritten unasked, never emptied of what is not a run's.

#include "core/record/run_folder.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "tests/core/record/sample_run.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::failure;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

TEST(RunFolder, RefusesAnEarlierRunAndReplacesItWhenTold) {
  const TemporaryFolder temporary;
  const fs::path folder = temporary / "runs/one";
  testing::write_sample_run(folder, 7);
  std::ofstream(folder / "checkpoints/step-00000001.h5") << "x";
  std::ofstream(folder / "notes.txt") << "mine";
  std::ofstream(folder / "ranks/notes.txt") << "mine";
  EXPECT_THAT(failure(ExitCode::usage, [&] { create_run_folder(folder, false); }),
              HasSubstr("already holds a run"));
  EXPECT_TRUE(fs::exists(folder / "ranks/0001.h5"));

  create_run_folder(folder, true);
  EXPECT_FALSE(fs::exists(folder / "run.h5"));
  EXPECT_FALSE(fs::exists(folder / "ranks/0001.h5"));
  EXPECT_EQ(read_status(folder).state, RunState::running);
  EXPECT_TRUE(fs::is_empty(folder / "checkpoints"));
  EXPECT_TRUE(fs::exists(folder / "notes.txt"));
  EXPECT_TRUE(fs::exists(folder / "ranks/notes.txt"));
}

/// What overwriting a run makes of a file beside it.
bool is_kept(const std::string& name) {
  const TemporaryFolder temporary;
  const fs::path folder = temporary / "one";
  testing::write_sample_run(folder, 7);
  std::ofstream(folder / name) << "mine";
  create_run_folder(folder, true);
  return fs::exists(folder / name);
}

TEST(RunFolder, DeletesNoNameThatARunDoesNotWrite) {
  for (const char* name :
       {"run.log", "my.h5", "run.h5.bak", "ranks/mine.h5", "ranks/000.h5", "ranks/0000.h5.old",
        "ranks/last.h5", "checkpoints/mine.h5", "checkpoints/step-7.h5", "checkpoints/0000.h5",
        "checkpoints/step-0000000x.h5", "checkpoints/.partial"})
    EXPECT_TRUE(is_kept(name)) << name;
  for (const char* name : {"trace.json", "status.json.partial", "ranks/0007.h5",
                           "ranks/10000.h5.partial", "checkpoints/last.h5",
                           "checkpoints/step-00000007.h5", "checkpoints/step-123456789.h5.partial"})
    EXPECT_FALSE(is_kept(name)) << name;
}

TEST(RunFolder, FilesInItsFoldersAreARun) {
  for (const char* name :
       {"ranks/0000.h5", "checkpoints/last.h5", "checkpoints/step-00000001.h5"}) {
    const TemporaryFolder temporary;
    for (const char* inner : {"ranks", "checkpoints"}) fs::create_directory(temporary / inner);
    EXPECT_FALSE(holds_run(temporary.path()));
    std::ofstream(temporary / name) << "mine";
    EXPECT_THAT(failure(ExitCode::usage, [&] { create_run_folder(temporary.path(), false); }),
                HasSubstr(name));
    EXPECT_TRUE(fs::exists(temporary / name));
  }
}

TEST(RunFolder, DeletesNothingBehindALink) {
  const TemporaryFolder temporary;
  const fs::path folder = temporary / "one", store = temporary / "store";
  testing::write_sample_run(folder, 7);
  fs::remove(folder / "checkpoints");
  fs::create_directory(store);
  fs::create_directory_symlink(store, folder / "checkpoints");
  std::ofstream(store / "other-run.h5") << "mine";
  create_run_folder(folder, true);
  EXPECT_TRUE(fs::is_symlink(folder / "checkpoints"));
  EXPECT_TRUE(fs::exists(store / "other-run.h5"));

  std::ofstream(store / "step-00000003.h5") << "of another run, perhaps";
  EXPECT_THAT(failure(ExitCode::usage, [&] { create_run_folder(folder, true); }),
              HasSubstr("checkpoints: is a link"));
  EXPECT_TRUE(fs::exists(store / "step-00000003.h5"));
}

TEST(RunFolder, DeletesNothingWhereARunCannotMakeItsFolders) {
  for (const char* inner : {"ranks", "checkpoints"}) {
    for (const bool linked : {true, false}) {
      const TemporaryFolder temporary;
      testing::write_sample_run(temporary / "one", 7);
      const fs::path folder = temporary / "one", in_the_way = folder / inner;
      fs::remove_all(in_the_way);
      if (linked)
        fs::create_symlink(temporary / "nowhere", in_the_way);
      else
        std::ofstream(in_the_way) << "mine";
      for (const auto& take : {check_run_folder, create_run_folder}) {
        EXPECT_THAT(failure(ExitCode::usage, [&] { take(folder, true); }),
                    HasSubstr(fmt::format("{}: is not a folder", in_the_way.string())));
      }
      EXPECT_TRUE(fs::exists(folder / "run.h5"));
    }
  }
}

TEST(RunFolder, TakesAnExistingFolderWithoutARun) {
  const TemporaryFolder temporary;
  std::ofstream(temporary / "notes.txt") << "mine";
  create_run_folder(temporary.path(), false);
  EXPECT_TRUE(fs::is_directory(temporary / "ranks"));
}

/// Lets processes ask for a folder at the same time, each a run that lives on until all have their
/// answer: 'm' for each that made it, 'r' for each that was refused, in alphabetical order.
std::string answers_of_runs(const fs::path& folder, int runs, bool overwrite) {
  std::array<int, 2> gate = {}, answers = {};
  if (::pipe(gate.data()) != 0 || ::pipe(answers.data()) != 0) return "no pipe";
  std::vector<pid_t> children;
  for (int k = 0; k < runs; ++k) {
    const pid_t child = ::fork();
    if (child > 0) children.push_back(child);
    if (child != 0) continue;
    ::alarm(60);  // should the test be killed
    char answer = 'm';
    ::close(gate[1]);
    static_cast<void>(::read(gate[0], &answer, 1));  // returns to all once the gate is closed
    try {
      create_run_folder(folder, overwrite);
    } catch (const Error& error) {
      answer = error.code() == ExitCode::usage ? 'r' : 'x';
    }
    static_cast<void>(::write(answers[1], &answer, 1));
    for (;;) ::pause();
  }
  for (const int end : {gate[0], gate[1], answers[1]}) ::close(end);
  std::string all(children.size(), '?');
  for (char& answer : all) static_cast<void>(::read(answers[0], &answer, 1));
  ::close(answers[0]);
  for (const pid_t child : children) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  std::ranges::sort(all);
  return all;
}

TEST(RunFolder, IsForOneOfSeveralRunsThatComeAtOnce) {
  for (int round = 0; round < 100; ++round) {
    const TemporaryFolder temporary;
    ASSERT_EQ(answers_of_runs(temporary / "one", 3, false), "mrr") << round;
  }
}

TEST(RunFolder, IsReplacedByOneOfSeveralRunsThatComeAtOnce) {
  for (int round = 0; round < 200; ++round) {
    const TemporaryFolder temporary;
    for (const char* inner : {"ranks", "checkpoints"}) fs::create_directory(temporary / inner);
    for (const char* name : {"run.h5", "ranks/0000.h5", "checkpoints/last.h5"})
      std::ofstream(temporary / name) << "x";
    // Half of them had no time to leave a status, or a user has removed it.
    if (round % 2 == 0) StatusFile(temporary.path()).write({.state = RunState::done});
    ASSERT_EQ(answers_of_runs(temporary.path(), 3, true), "mrr") << round;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(temporary.path()))
      EXPECT_TRUE(entry.is_directory() || entry.path().filename() == "status.json") << entry;
    EXPECT_EQ(life_of(read_status(temporary.path())), Life::gone);
  }
}

// Whoever would be refused anyway takes no folder from the one that may have it: it makes no lock.
TEST(RunFolder, IsNotHeldByARunThatMayNotHaveIt) {
  const TemporaryFolder temporary;
  create_run_folder(temporary.path(), false);
  StatusFile(temporary.path()).write({.state = RunState::done});
  const fs::file_time_type before = fs::last_write_time(temporary.path());
  EXPECT_THAT(failure(ExitCode::usage, [&] { create_run_folder(temporary.path(), false); }),
              HasSubstr("already holds a run"));
  EXPECT_EQ(fs::last_write_time(temporary.path()), before);
}

TEST(RunFolder, TellsWhichFileAKilledRunLeft) {
  const TemporaryFolder temporary;
  const std::string lock = temporary / "status.json.lock";
  std::ofstream(lock) << "";
  const auto names_it = AllOf(HasSubstr(lock), HasSubstr("if none is, remove this file"));
  EXPECT_THAT(failure(ExitCode::usage, [&] { check_run_folder(temporary.path(), true); }),
              names_it);
  EXPECT_THAT(failure(ExitCode::usage, [&] { create_run_folder(temporary.path(), true); }),
              names_it);
  fs::remove(lock);
  create_run_folder(temporary.path(), false);
  EXPECT_FALSE(fs::exists(lock));
  EXPECT_THAT(failure(ExitCode::usage, [&] { create_run_folder(temporary.path(), false); }),
              HasSubstr("already holds a run"));
  EXPECT_FALSE(fs::exists(lock));
}

TEST(RunFolder, IsNotTakenFromAnotherHost) {
  const TemporaryFolder temporary;
  const auto write = [&](const char* state) {
    std::ofstream(temporary / "status.json") << nlohmann::json{{"state", state},
                                                               {"exit_code", 0},
                                                               {"cause", ""},
                                                               {"step", 3},
                                                               {"host", "elsewhere.example"},
                                                               {"process", 7},
                                                               {"process_start", 1}};
  };
  write("running");
  EXPECT_THAT(failure(ExitCode::usage, [&] { create_run_folder(temporary.path(), true); }),
              HasSubstr("process 7 on elsewhere.example may be still writing this run"));
  write("failed");
  create_run_folder(temporary.path(), true);
  EXPECT_EQ(read_status(temporary.path()).process, ::getpid());
}

TEST(RunFolder, UnwritablePlaceNamesTheReason) {
  const TemporaryFolder temporary;
  std::ofstream(temporary / "file") << "x";
  EXPECT_THAT(
      failure(ExitCode::input_output, [&] { create_run_folder(temporary / "file/run", false); }),
      HasSubstr("file"));
  EXPECT_THAT(failure(ExitCode::input_output, [&] { create_run_folder("/proc", false); }),
              HasSubstr("or set run.output to another folder"));
  const std::string name(300, 'x');
  EXPECT_THAT(failure(ExitCode::input_output, [&] { check_run_folder(temporary / name, false); }),
              HasSubstr("File name too long; set run.output"));
  fs::create_symlink("loop", temporary / "loop");
  EXPECT_THAT(failure(ExitCode::input_output, [&] { (void)holds_run(temporary / "loop/run"); }),
              HasSubstr("cannot make the run folder"));
}

TEST(RunFolder, AProcessOfTheSameNumberIsNotThatOfTheRun) {
  const TemporaryFolder temporary;
  StatusFile(temporary.path()).write({});
  RunStatus status = read_status(temporary.path());
  EXPECT_EQ(life_of(status), Life::alive);
  EXPECT_THAT(failure(ExitCode::usage, [&] { check_run_folder(temporary.path(), true); }),
              HasSubstr("is still writing this run"));
  --status.process_start;
  EXPECT_EQ(life_of(status), Life::gone);
  status.process_start = 0;  // of a file that does not say
  EXPECT_EQ(life_of(status), Life::alive);
}

/// Sets variables of the environment, and takes them away again.
class Variables {
 public:
  using Variable = std::pair<const char*, const char*>;
  Variables(std::initializer_list<Variable> values) : values_(values) {
    for (const auto& [name, value] : values_) ::setenv(name, value, 1);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  ~Variables() {
    for (const auto& [name, value] : values_) ::unsetenv(name);
  }

 private:
  std::vector<Variable> values_;
};

TEST(RunFolder, AJobThatIsStartedAnewLeavesNoProcessElsewhere) {
  const TemporaryFolder temporary;
  RunStatus status;
  {
    const Variables job{{"SLURM_JOB_ID", "1234"}};
    StatusFile(temporary.path()).write({});
    status = read_status(temporary.path());
    EXPECT_EQ(status.job.id, "1234");
    status.host += "x";
    EXPECT_EQ(life_of(status), Life::unknown);  // it is of this very start
  }
  EXPECT_EQ(life_of(status), Life::unknown);
  {
    const Variables job{{"SLURM_JOB_ID", "1235"}, {"SLURM_RESTART_COUNT", "1"}};
    EXPECT_EQ(life_of(status), Life::unknown);
  }
  const Variables job{{"SLURM_JOB_ID", "1234"}, {"SLURM_RESTART_COUNT", "1"}};
  EXPECT_EQ(life_of(status), Life::gone);
  // What can be asked is believed: Slurm may have lost a node whose processes live.
  EXPECT_EQ(life_of(read_status(temporary.path())), Life::alive);
}

TEST(RunFolder, TasksOfAnArrayAreJobsOfTheirOwn) {
  const Variables job{{"SLURM_JOB_ID", "1236"},
                      {"SLURM_ARRAY_JOB_ID", "1230"},
                      {"SLURM_ARRAY_TASK_ID", "6"},
                      {"SLURM_RESTART_COUNT", "2"}};
  EXPECT_EQ(this_job().id, "1230_6");
  EXPECT_EQ(to_string(this_job()), "1230_6, restart 2");
}

TEST(RunFolder, WhoeverLostItToAnotherProcessIsTold) {
  const TemporaryFolder temporary;
  StatusFile status(temporary.path());
  status.expect(this_process());
  status.check_ours();  // no file, no other
  status.write({});
  status.check_ours();
  const pid_t child = ::fork();
  if (child == 0) {
    fs::remove(temporary / "status.json");
    StatusFile(temporary.path()).write({});
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_THAT(failure(ExitCode::usage, [&] { status.check_ours(); }),
              HasSubstr("has taken this run folder"));
}

TEST(RunFolder, AProcessThatHasEndedWritesNoMore) {
  const TemporaryFolder temporary;
  const pid_t child = ::fork();
  if (child == 0) {
    StatusFile(temporary.path()).write({});
    ::_exit(0);
  }
  siginfo_t ended = {};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(life_of(read_status(temporary.path())), Life::gone);
  ::waitpid(child, nullptr, 0);
}

TEST(RunFolder, StatusOfAnotherProcessIsNotReplaced) {
  const TemporaryFolder temporary;
  StatusFile(temporary.path()).write({.step = 3});  // of this process
  StatusFile moved(temporary.path());
  moved.expect("another process");
  moved.write({.step = 4});
  moved.write({.state = RunState::failed, .exit_code = 74});
  EXPECT_EQ(read_status(temporary.path()).step, 3);
  moved.expect(this_process());
  moved.write({.step = 5});
  EXPECT_EQ(read_status(temporary.path()).step, 5);
}

TEST(RunFolder, StatusComesBack) {
  const TemporaryFolder temporary;
  StatusFile file(temporary.path());
  file.write({RunState::running, 0, "", 3});
  file.write({RunState::diverged, 76, "loss is \"nan\"\xff", 12});
  const RunStatus status = read_status(temporary.path());
  EXPECT_EQ(status.state, RunState::diverged);
  EXPECT_EQ(status.exit_code, 76);
  EXPECT_THAT(status.cause, HasSubstr("loss is \"nan\""));
  EXPECT_EQ(status.step, 12);
  std::ofstream(temporary / "status.json") << "{";
  EXPECT_THAT(failure(ExitCode::bad_data, [&] { (void)read_status(temporary.path()); }),
              HasSubstr("status.json"));
}

TEST(RunFolder, ARunEndsOnce) {
  const TemporaryFolder temporary;
  StatusFile file(temporary.path());
  file.write({RunState::failed, 77, "rank 2 ended without a word", 3});
  file.write({RunState::running, 0, "", 4});
  EXPECT_EQ(read_status(temporary.path()).state, RunState::failed);
  EXPECT_EQ(read_status(temporary.path()).step, 3);

  // Another process of the run, which knows nothing of it.
  StatusFile other(temporary.path());
  other.write({RunState::running, 0, "", 5});
  other.write({RunState::failed, 77, "rank 1 ended without a word", 5});
  EXPECT_THAT(read_status(temporary.path()).cause, HasSubstr("rank 2"));
}

TEST(RunFolder, TheEndIsToldWhereThereIsNoRoom) {
  const TemporaryFolder temporary;
  StatusFile file(temporary.path());
  file.write({RunState::running, 0, "a cause that is longer than the one to come", 3});
  // Nothing new can be written beside the file.
  std::filesystem::create_directory(temporary / "status.json.partial");
  EXPECT_THROW(file.write({RunState::running, 0, "", 4}), Error);
  file.write({RunState::failed, 74, "no room", 5});
  const RunStatus status = read_status(temporary.path());
  EXPECT_EQ(status.state, RunState::failed);
  EXPECT_EQ(status.cause, "no room");
  EXPECT_EQ(status.step, 5);
}

}  // namespace
}  // namespace carousel
