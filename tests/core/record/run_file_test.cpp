// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Run files: what segments add is in the file at once, and readers see one file through its links.

#include "core/record/run_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "core/audit/receipts.hpp"
#include "core/record/columns.hpp"
#include "core/record/run_reader.hpp"
#include "tests/core/record/sample_run.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using testing::failure;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

TEST(RunFile, ReadsAsOneFileThroughItsLinks) {
  const TemporaryFolder folder;
  testing::write_sample_run(folder.path(), 7);
  const hdf5::File file = hdf5::File::open(folder / "run.h5");
  EXPECT_EQ(file.string("/info", "deck"), testing::sample_info().deck);
  EXPECT_EQ(file.unsigned_integer("/info", "seed"), 42U);
  EXPECT_THAT(file.read<double>("/steps/loss"), ElementsAre(2.5, 1.5));
  EXPECT_THAT(file.read<std::int64_t>("/evaluations/step"), ElementsAre(1, 2));
  EXPECT_THAT(file.read<std::int64_t>("/plan/bytes/activations"), ElementsAre(3072, 1024));
  EXPECT_THAT(file.read<std::int64_t>("/plan/messages_per_step"), ElementsAre(3, 2));
  EXPECT_THAT(file.read_strings("/ranks/0000/actions/kind"), ElementsAre("forward", "forward"));
  EXPECT_THAT(file.read<std::int64_t>("/ranks/0000/actions/version"), ElementsAre(-1, 0));
  EXPECT_THAT(file.read_strings("/ranks/0000/messages/direction"), ElementsAre("send", "send"));
  EXPECT_THAT(file.read<std::int64_t>("/ranks/0000/memory/data"), ElementsAre(10, 10));
  EXPECT_THAT(file.read<std::int64_t>("/ranks/0001/memory/data"), ElementsAre());
  EXPECT_THAT(file.read<std::uint64_t>("/receipts/0"), ElementsAre(100, 101));
  EXPECT_THAT(file.read<std::uint64_t>("/receipts/1"), ElementsAre(200, 7));
  EXPECT_THAT(file.info("/audit/samples").shape, ElementsAre(2, 2, 2));
  EXPECT_THAT(file.info("/audit/parameters/0.weight").shape, ElementsAre(2, 2, 3));
}

/// The table of a record names the datasets of its group, all of them.
template <class Row>
void expect_columns(const hdf5::File& file, const std::string& above) {
  std::vector<std::string> names;
  const std::vector<std::string> metrics{"accuracy"};
  Columns<Row>::list(metrics, [&](const char* name, auto) { names.emplace_back(name); });
  EXPECT_THAT(file.children(above + Columns<Row>::group),
              ::testing::UnorderedElementsAreArray(names));
}

TEST(RunFile, HasTheColumnsOfTheTables) {
  const TemporaryFolder folder;
  testing::write_sample_run(folder.path(), 7);
  const hdf5::File file = hdf5::File::open(folder / "run.h5");
  expect_columns<StepRecord>(file, "");
  expect_columns<EvaluationRecord>(file, "");
  expect_columns<ActionRecord>(file, "/ranks/0000");
  expect_columns<MessageRecord>(file, "/ranks/0000");
  expect_columns<MemoryRecord>(file, "/ranks/0000");
  std::ifstream log(folder / "metrics.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(log, line));
  EXPECT_EQ(line, R"({"kind":"step","step":0,"epoch":0,"loss":2.5,"accuracy":0.5,)"
                  R"("learning_rate":0.05,"seconds":1,"images_per_second":64})");
}

TEST(RunFile, SummaryHoldsWhatWasRecorded) {
  const TemporaryFolder folder;
  testing::write_sample_run(folder.path(), 7);
  const RunSummary run = read_run(folder.path().string());
  EXPECT_EQ(run.steps, 2);
  ASSERT_TRUE(run.plan.has_value());
  EXPECT_EQ(run.plan->rule, "cdp-v2");
  EXPECT_EQ(planned_bytes(*run.plan, Category::activations), 4096);
  EXPECT_EQ(run.plan->stage_layers[1], "1 .. loss");
  EXPECT_THAT(run.plan->stage_activations, ElementsAre(1024, 1024));
  EXPECT_EQ(run.plan->collective_bytes_per_step, 512);
  EXPECT_EQ(run.plan->basis, testing::sample_plan().basis);
  EXPECT_EQ(run.measured.size(), 2U);
  EXPECT_EQ(measured_bytes(run, Category::activations), 4096);
  EXPECT_EQ(run.measured[1].bytes_sent, 600);
  EXPECT_THAT(run.measured[0].first_step_seconds, DoubleEq(0.5));
  EXPECT_THAT(run.measured[0].data_wait, DoubleEq(0.25));
  EXPECT_EQ(run.evaluations.back().metrics.front(), 0.875);
  ASSERT_TRUE(run.status.has_value());
  EXPECT_EQ(run.status->state, RunState::done);
  EXPECT_EQ(read_run(folder / "run.h5").steps, 2);
}

TEST(RunFile, ReceiptsTellTheFirstDifference) {
  const TemporaryFolder folder;
  testing::write_sample_run(folder / "a", 7);
  testing::write_sample_run(folder / "b", 7);
  testing::write_sample_run(folder / "c", 8);
  const RunSummary a = read_run(folder / "a"), b = read_run(folder / "b"),
                   c = read_run(folder / "c");
  EXPECT_TRUE(compare_receipts(a, b).equal());
  EXPECT_EQ(compare_receipts(a, b).steps, 2);
  EXPECT_EQ(compare_receipts(a, c).steps, 1);
  EXPECT_EQ(compare_receipts(a, c).stage, 1);
  RunSummary shorter = b;
  shorter.receipts[0].pop_back();
  EXPECT_FALSE(compare_receipts(a, shorter).differ());
  EXPECT_FALSE(compare_receipts(a, shorter).equal());
  EXPECT_EQ(compare_receipts(a, shorter).steps, 1);
  EXPECT_EQ(compare_receipts(a, shorter).only_a, 1);
  EXPECT_EQ(compare_receipts(shorter, a).only_b, 1);
  RunSummary cut_otherwise = b;
  cut_otherwise.receipts.pop_back();
  EXPECT_TRUE(compare_receipts(a, cut_otherwise).differ());
}

TEST(RunFile, MissingRunAndMissingRankAreNoSurprise) {
  const TemporaryFolder folder;
  EXPECT_THAT(failure(ExitCode::input_output, [&] { (void)read_run(folder / "none"); }),
              HasSubstr("run.h5: cannot open"));
  testing::write_sample_run(folder / "a", 7);
  std::filesystem::remove(folder / "a/ranks/0001.h5");
  const RunSummary run = read_run(folder / "a");
  EXPECT_THAT(run.missing, ElementsAre("ranks/0001.h5"));
  EXPECT_EQ(missing_files(run), "ranks/0001.h5 is missing");
  EXPECT_TRUE(run.measured.empty());
  EXPECT_TRUE(run.receipts[0].empty());
}

/// Goes to a folder and comes back.
class WorkingFolder {
 public:
  explicit WorkingFolder(const std::filesystem::path& folder) {
    std::filesystem::current_path(folder);
  }
  WorkingFolder(const WorkingFolder&) = delete;
  WorkingFolder& operator=(const WorkingFolder&) = delete;
  ~WorkingFolder() { std::filesystem::current_path(former_); }

 private:
  std::filesystem::path former_ = std::filesystem::current_path();
};

TEST(RunFile, AMissingRankIsNotThatOfTheCurrentFolder) {
  const TemporaryFolder folder;
  testing::write_sample_run(folder / "a", 7);
  testing::write_sample_run(folder / "b", 8);
  std::filesystem::remove(folder / "a/ranks/0000.h5");
  const WorkingFolder inside(folder / "b");
  const RunSummary run = read_run(folder / "a");
  EXPECT_THAT(run.missing, ElementsAre("ranks/0000.h5"));
  EXPECT_TRUE(run.receipts[1].empty());
  EXPECT_EQ(run.receipts[0].size(), 2U);
}

TEST(RunFile, ReceiptsNeedNoLink) {
  const TemporaryFolder folder;
  testing::write_sample_run(folder.path(), 7);
  {
    const hdf5::Handle file(H5Fopen((folder / "run.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT),
                            H5Fclose);
    ASSERT_GE(H5Ldelete(file.get(), "/receipts/0", H5P_DEFAULT), 0);
  }
  const RunSummary run = read_run(folder.path().string());
  EXPECT_EQ(run.receipts.size(), 2U);
  EXPECT_EQ(run.receipts[0].size(), 2U);
}

TEST(RunFile, ARankWithoutASegmentMeasuresNothing) {
  const TemporaryFolder folder;
  testing::write_sample_run(folder.path(), 7, 0);
  EXPECT_FALSE(hdf5::File::open(folder / "ranks/0000.h5").contains("/measured"));
  const RunSummary run = read_run(folder.path().string());
  EXPECT_TRUE(run.missing.empty());
  EXPECT_TRUE(run.measured.empty());
}

TEST(RunFile, AGivenFileIsReadAndNoOther) {
  const TemporaryFolder folder;
  testing::write_sample_run(folder.path(), 7);
  const std::string digits = testing::input("digits.h5");
  EXPECT_THAT(failure(ExitCode::bad_data, [&] { (void)read_run(digits); }),
              HasSubstr("digits.h5: has no /info"));
  EXPECT_THAT(failure(ExitCode::bad_data, [&] { (void)read_run(folder / "ranks/0000.h5"); }),
              HasSubstr("0000.h5: this is a 'carousel rank'"));
}

TEST(RunFile, AnOpenReaderDoesNotDisturbTheRun) {
  const TemporaryFolder folder;
  create_run_folder(folder.path(), false);
  RunFile run(folder.path(), {testing::sample_info()}, {"accuracy"}, testing::sample_history());
  const std::vector<StepRecord> steps(3);
  run.append(steps);
  run.publish();
  {
    const hdf5::File reader = hdf5::File::open(folder / "run.h5");
    run.append(steps);
    run.publish();
    EXPECT_EQ(reader.read<double>("/steps/loss").size(), 3U);
  }
  EXPECT_EQ(read_run(folder.path().string()).steps, 6);
}

/// Bytes that this process has written, to whatever.
std::int64_t written_bytes() {
  std::ifstream io("/proc/self/io");
  std::string name;
  std::int64_t value = 0;
  while (io >> name >> value) {
    if (name == "wchar:") return value;
  }
  return -1;
}

/// What it takes to write down a run of so many segments.
std::int64_t bytes_of_run(int segments) {
  const TemporaryFolder folder;
  create_run_folder(folder.path(), false);
  RunFile run(folder.path(), {testing::sample_info()}, {"accuracy"}, testing::sample_history());
  RankFile rank(folder.path(), 0, {testing::sample_info()});
  const std::vector<StepRecord> steps(20);
  const std::vector<std::uint64_t> digests(20);
  const std::vector<StageReceipts> receipts{{0, digests}};
  const std::vector<ActionRecord> actions(160);
  const std::int64_t before = written_bytes();
  for (int k = 0; k < segments; ++k) {
    run.append(steps);
    rank.append({.actions = actions, .receipts = receipts}, {});
    run.publish();
    rank.publish();
  }
  return written_bytes() - before;
}

TEST(RunFile, WhatARunWritesGrowsWithItsLength) {
  if (written_bytes() < 0) GTEST_SKIP() << "the system does not count what is written";
  const std::int64_t few = bytes_of_run(64), many = bytes_of_run(256);
  EXPECT_GT(static_cast<double>(many), 3.5 * static_cast<double>(few));
  // Less than half as much again is for files that moved to more room.
  EXPECT_LT(static_cast<double>(many), 6.0 * static_cast<double>(few));
}

constexpr int rows_per_segment = 100;

/// Records segments for ever, and says through a pipe how many it has published.
[[noreturn]] void record_until_killed(const std::filesystem::path& folder, int pipe) {
  RunFile run(folder, {testing::sample_info()}, {"accuracy"}, testing::sample_history());
  std::vector<StepRecord> steps(rows_per_segment);
  for (std::int64_t segment = 0;; ++segment) {
    for (int k = 0; k < rows_per_segment; ++k) {
      steps[k].step = segment * rows_per_segment + k;
      steps[k].loss = static_cast<double>(steps[k].step) / 4;
    }
    run.append(steps);
    run.publish();
    if (::write(pipe, &segment, sizeof segment) < 0) ::_exit(1);
    ::usleep(1000);  // or a reader on a busy machine would be overtaken by a hundred segments
  }
}

/// All columns are as long as each other, of whole segments, and say what was recorded.
std::int64_t segments_in(const std::filesystem::path& folder) {
  const hdf5::File file = hdf5::File::open((folder / "run.h5").string());
  const auto step = file.read<std::int64_t>("/steps/step");
  const auto loss = file.read<double>("/steps/loss");
  EXPECT_EQ(step.size() % rows_per_segment, 0U);
  EXPECT_EQ(step.size(), loss.size());
  EXPECT_EQ(step.size(), file.read<double>("/steps/images_per_second").size());
  for (std::size_t k = 0; k < std::min(step.size(), loss.size()); ++k) {
    EXPECT_EQ(step[k], static_cast<std::int64_t>(k));
    EXPECT_EQ(loss[k], static_cast<double>(k) / 4);
  }
  return std::ssize(step) / rows_per_segment;
}

TEST(RunFile, SurvivesKillAtAnyMoment) {
  for (int attempt = 0; attempt < 25; ++attempt) {
    const TemporaryFolder folder;
    create_run_folder(folder.path(), false);
    int pipe[2] = {};
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    if (child == 0) record_until_killed(folder.path(), pipe[1]);
    ::close(pipe[1]);
    while (!std::filesystem::exists(folder / "run.h5")) ::usleep(100);
    // Meanwhile anybody may look, and each sees as much as the one before or more.
    std::int64_t seen = 0;
    for (int look = 0; look < attempt; ++look) {
      const std::int64_t found = segments_in(folder.path());
      EXPECT_GE(found, seen);
      seen = found;
    }
    ::usleep(static_cast<useconds_t>(997 * attempt % 5000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    std::int64_t published = 0, segment = 0;
    while (::read(pipe[0], &segment, sizeof segment) > 0) published = segment + 1;
    ::close(pipe[0]);
    const std::int64_t found = segments_in(folder.path());
    EXPECT_GE(found, std::max<std::int64_t>(published, seen));
    EXPECT_LE(found, published + 1);
    EXPECT_EQ(read_run(folder.path().string()).steps, found * rows_per_segment);
  }
}

}  // namespace
}  // namespace carousel
