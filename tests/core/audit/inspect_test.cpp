// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Reports: what they must say, and that lines stay within 80 columns.

#include "core/audit/inspect.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "core/base/text.hpp"
#include "tests/core/state/sample_checkpoint.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using testing::failure;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TemporaryFolder;

void expect_80_columns(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST(Inspect, TellsAboutARun) {
  const TemporaryFolder folder;
  testing::write_sample_run(folder.path(), 7);
  for (const std::string& path : {folder.path().string(), folder / "run.h5"}) {
    const std::string text = inspect(path);
    EXPECT_THAT(text, AllOf(HasSubstr("done after 2 steps"), HasSubstr("cdp-v2, N = 2"),
                            HasSubstr("replicated on 2 devices"), HasSubstr("accuracy 0.8750"),
                            HasSubstr("activations"), HasSubstr("4.0 KiB"), HasSubstr("0123abc")));
    expect_80_columns(text);
  }
}

const KeysOfRun no_keys = [](const RunSummary&) { return std::map<std::string, std::string>(); };

TEST(Inspect, TellsWhatIsMissing) {
  const TemporaryFolder folder;
  testing::write_sample_run(folder / "one", 7);
  testing::write_sample_run(folder / "two", 7);
  std::filesystem::remove(folder / "one/ranks/0001.h5");
  EXPECT_THAT(inspect(folder / "one"), AllOf(ContainsRegex("incomplete +ranks/0001.h5 is missing"),
                                             Not(HasSubstr("peak bytes"))));
  const std::vector<std::string> paths{folder / "one", folder / "two"};
  EXPECT_THAT(compare_runs(paths, no_keys),
              AllOf(HasSubstr("one: ranks/0001.h5 is missing"), ContainsRegex("measured +[?] +4.0"),
                    ContainsRegex("messages sent per step +[?] +6.0"),
                    ContainsRegex("same bits after every update +- +-")));
}

TEST(CompareRuns, RunsWithoutAStepHaveNoBits) {
  const TemporaryFolder folder;
  testing::write_sample_run(folder / "one", 7, 0);
  testing::write_sample_run(folder / "two", 7, 0);
  const std::vector<std::string> paths{folder / "one", folder / "two"};
  EXPECT_THAT(compare_runs(paths, no_keys),
              AllOf(ContainsRegex("same bits after every update +- +-"),
                    ContainsRegex("messages sent per step +- +-")));
}

TEST(Inspect, TellsWhyARunEnded) {
  const TemporaryFolder folder;
  testing::write_sample_run(folder.path(), 7);
  std::filesystem::remove(folder / "status.json");
  StatusFile(folder.path()).write({RunState::diverged, 76, "loss is nan", 1});
  EXPECT_THAT(inspect(folder.path().string()),
              AllOf(HasSubstr("diverged after 1 steps"), HasSubstr("exit code 76: loss is nan")));
}

TEST(Inspect, TellsAboutADataSet) {
  const std::string text = inspect(testing::input("digits.h5"));
  expect_80_columns(text.substr(text.find('\n')));  // less the path in the first line
  EXPECT_THAT(text, AllOf(HasSubstr("1437 train, 360 test"), HasSubstr("CC BY 4.0"),
                          HasSubstr("10: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9")));
}

TEST(Inspect, TellsAboutACheckpoint) {
  const TemporaryFolder folder;
  testing::write_sample_run(folder.path(), 8);
  EXPECT_THAT(inspect(folder.path().string()), Not(HasSubstr("checkpoints")));
  const std::vector<real> values(6);
  const std::vector<testing::NamedTensor> tensors = {{"/parameters/0.weight", {2, 3}, values}};
  testing::save_checkpoint(folder.path(), {40, 2, 0, 4, 16, 1}, tensors, 2);
  EXPECT_THAT(inspect(folder / "checkpoints/last.h5"),
              AllOf(HasSubstr("40 steps done, epoch 2, 4 micro-batches of 16"),
                    ContainsRegex("/parameters/0.weight +\\[2, 3\\]")));
  EXPECT_THAT(inspect(folder.path().string()),
              ContainsRegex("checkpoints +1; the newest is step-00000040.h5"));
}

TEST(Inspect, RefusesEverythingElse) {
  const TemporaryFolder folder;
  EXPECT_THAT(failure(ExitCode::input_output, [&] { (void)inspect(folder / "none"); }),
              HasSubstr("No such file"));
  std::ofstream(folder / "text") << "text";
  EXPECT_THAT(failure(ExitCode::bad_data, [&] { (void)inspect(folder / "text"); }),
              HasSubstr("text: is no HDF5 file"));
  hdf5::File::create(folder / "other.h5").close();
  EXPECT_THAT(failure(ExitCode::bad_data, [&] { (void)inspect(folder / "other.h5"); }),
              HasSubstr("not one of Carousel's"));
}

TEST(CompareRuns, SetsRunsSideBySide) {
  const TemporaryFolder folder;
  testing::write_sample_run(folder / "one", 7);
  testing::write_sample_run(folder / "two", 7);
  testing::write_sample_run(folder / "three", 8);
  const std::vector<std::string> paths{folder / "one", folder / "two", folder / "three/"};
  const std::string text = compare_runs(paths, no_keys);
  EXPECT_THAT(text,
              AllOf(ContainsRegex(" one +two +three"), ContainsRegex("rule +cdp-v2 +cdp-v2"),
                    ContainsRegex("test accuracy +0.8750"), ContainsRegex("measured +4.0 KiB"),
                    ContainsRegex("planned +4.0 KiB"), ContainsRegex("N A. +8.0 KiB"),
                    ContainsRegex(".A. +2.0 KiB"), ContainsRegex("messages sent per step +6.0"),
                    ContainsRegex("bytes sent per step +600 B"),
                    ContainsRegex("more by collectives, as rings +512 B +512 B"),
                    ContainsRegex("- +yes, as one +no: step 1 stage 1")));
}

TEST(CompareRuns, ManyRunsHaveALineEach) {
  const TemporaryFolder folder;
  std::vector<std::string> paths;
  for (int k = 0; k < 8; ++k) {
    paths.push_back(folder / fmt::format("{:03}", k));
    testing::write_sample_run(paths.back(), 7);
  }
  const KeysOfRun keys_of = [](const RunSummary& run) {
    return std::map<std::string, std::string>{
        {"run.seed", "7"},
        {"train.optimizer.learning_rate", "0." + run.folder.substr(run.folder.size() - 3)},
        {"train.start", std::string(60, run.folder.back())}};
  };
  const std::string text = compare_runs(paths, keys_of);
  EXPECT_THAT(text, AllOf(ContainsRegex("state +steps +test accuracy +learning_rate\n"),
                          ContainsRegex("003 +done +2 +0.8750 +0.003\n"), Not(HasSubstr("seed")),
                          HasSubstr("They also differ in train.start.\n")));
  expect_80_columns(text);
}

TEST(CompareRuns, RunsOfOtherLengthAreTheSameAsFarAsBothWent) {
  const TemporaryFolder folder;
  testing::write_sample_run(folder / "one", 7);
  testing::write_sample_run(folder / "two", 7, 1);
  const std::vector<std::string> paths{folder / "one", folder / "two"};
  EXPECT_THAT(compare_runs(paths, no_keys), ContainsRegex("- +same for 1 steps"));
}

TEST(UnsignedNan, HasNoSign) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(fmt::format("{}", unsigned_nan(std::copysign(nan, -1.0))), "nan");
  EXPECT_EQ(unsigned_nan(-1.5), -1.5);
}

TEST(HumanBytes, UsesBinaryUnits) {
  EXPECT_EQ(human_bytes(std::int64_t{512}), "512 B");
  EXPECT_EQ(human_bytes(std::int64_t{1536}), "1.5 KiB");
  EXPECT_EQ(human_bytes(std::int64_t{3} << 40), "3.0 TiB");
}

}  // namespace
}  // namespace carousel
