// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Files that grow by rows: what was published is there for every reader, and costs what it holds.

#include "core/base/row_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <numeric>

#include "tests/core/support.hpp"

namespace carousel {
namespace {

using ::testing::ElementsAre;
using testing::failure;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

/// The rest of a file.
void write_title(hdf5::File& file) {
  file.create_group("/info");
  file.set("/info", "title", "numbers");
}

/// Adds so many rows, which go on counting, and publishes them.
class Numbers {
 public:
  explicit Numbers(const std::string& path) : file_(path) {}

  void add(int rows) {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(rows));
    std::iota(numbers.begin(), numbers.end(), rows_);
    std::vector<double> pairs;
    for (const std::int64_t number : numbers) pairs.insert(pairs.end(), {number / 2.0, -1.0});
    const std::vector<const char*> words(numbers.size(), "a text of more than 16");
    file_.append<std::int64_t>("/deep/number", numbers);
    file_.append<double>("/pair", pairs, {2});
    file_.append_strings("/word", words);
    file_.append<int>("/none", {});
    rows_ += rows;
  }
  void publish() { file_.publish(write_title); }
  void finish() { file_.finish(write_title); }
  [[nodiscard]] std::int64_t rows() const { return rows_; }

 private:
  hdf5::RowFile file_;
  std::int64_t rows_ = 0;
};

void expect_rows(const hdf5::File& file, std::int64_t rows) {
  const auto numbers = file.read<std::int64_t>("/deep/number");
  const auto pairs = file.read<double>("/pair");
  const auto words = file.read_strings("/word");
  ASSERT_EQ(std::ssize(numbers), rows);
  EXPECT_THAT(file.info("/pair").shape, ElementsAre(rows, 2));
  ASSERT_EQ(std::ssize(words), rows);
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    ASSERT_EQ(numbers[k], static_cast<std::int64_t>(k));
    ASSERT_EQ(pairs[2 * k], static_cast<double>(k) / 2);
    ASSERT_EQ(words[k], "a text of more t");
  }
  EXPECT_TRUE(file.read<int>("/none").empty());
  EXPECT_EQ(file.string("/info", "title"), "numbers");
}

TEST(RowFile, HasAllThatWasPublished) {
  const TemporaryFolder folder;
  Numbers numbers(folder / "a.h5");
  EXPECT_FALSE(std::filesystem::exists(folder / "a.h5"));
  for (const int rows : {0, 3, 700, 1, 20000, 0, 5}) {
    numbers.add(rows);
    numbers.publish();
    expect_rows(hdf5::File::open(folder / "a.h5"), numbers.rows());
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "a.h5.partial"));
}

TEST(RowFile, ReadersSeeWhatTheyOpened) {
  const TemporaryFolder folder;
  Numbers numbers(folder / "a.h5");
  numbers.add(10);
  numbers.publish();
  const hdf5::File reader = hdf5::File::open(folder / "a.h5");
  for (int k = 0; k < 50; ++k) {
    numbers.add(500);
    numbers.publish();
  }
  expect_rows(reader, 10);
  numbers.finish();
  expect_rows(hdf5::File::open(folder / "a.h5"), 25010);
}

TEST(RowFile, AFinishedOneIsCompactAndChecked) {
  const TemporaryFolder folder;
  Numbers numbers(folder / "a.h5");
  for (int k = 0; k < 40; ++k) {
    numbers.add(k == 39 ? 300000 : 7);  // more than is copied at once
    numbers.publish();
  }
  const auto loose = std::filesystem::file_size(folder / "a.h5");
  EXPECT_TRUE(hdf5::File::open(folder / "a.h5").info("/pair").contiguous);
  numbers.finish();
  const hdf5::File file = hdf5::File::open(folder / "a.h5");
  expect_rows(file, numbers.rows());
  EXPECT_FALSE(file.info("/pair").contiguous);
  const auto content = static_cast<std::uintmax_t>(numbers.rows()) * (8 + 16 + 16);
  EXPECT_LT(std::filesystem::file_size(folder / "a.h5"), content + content / 10);
  EXPECT_GT(loose, content);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.h5.partial"));
}

// A run folder was moved, and another run has begun in its place.
TEST(RowFile, TouchesNoFileThatIsNotItsOwn) {
  const TemporaryFolder folder;
  Numbers moved(folder / "a.h5");
  moved.add(10);
  moved.publish();
  std::filesystem::rename(folder / "a.h5", folder / "b.h5");
  Numbers numbers(folder / "a.h5");
  numbers.add(20);
  numbers.publish();
  for (const int rows : {1, 100000}) {
    moved.add(rows);
    EXPECT_THAT(failure(ExitCode::input_output, [&] { moved.publish(); }),
                HasSubstr("a.h5: is another file than this process made"));
  }
  EXPECT_THAT(failure(ExitCode::input_output, [&] { moved.finish(); }), HasSubstr("another file"));
  expect_rows(hdf5::File::open(folder / "a.h5"), 20);
  expect_rows(hdf5::File::open(folder / "b.h5"), 10);
}

TEST(RowFile, AFullDiskLeavesWhatWasPublished) {
  const TemporaryFolder folder;
  Numbers numbers(folder / "a.h5");
  numbers.add(10);
  numbers.publish();
  rlimit former = {};
  ::getrlimit(RLIMIT_FSIZE, &former);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{512 * 1024, former.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  numbers.add(100000);
  EXPECT_THAT(failure(ExitCode::input_output, [&] { numbers.publish(); }),
              HasSubstr("a.h5.partial: cannot write: File too large; check free space"));
  ::setrlimit(RLIMIT_FSIZE, &former);
  ::signal(SIGXFSZ, handler);
  expect_rows(hdf5::File::open(folder / "a.h5"), 10);
  numbers.publish();  // once there is room
  expect_rows(hdf5::File::open(folder / "a.h5"), 100010);
}

TEST(RowFile, AFullDiskLeavesTheLooseFile) {
  const TemporaryFolder folder;
  Numbers numbers(folder / "a.h5");
  numbers.add(100000);
  numbers.publish();
  rlimit former = {};
  ::getrlimit(RLIMIT_FSIZE, &former);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{1024 * 1024, former.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  EXPECT_THAT(failure(ExitCode::input_output, [&] { numbers.finish(); }),
              HasSubstr("a.h5.partial: cannot write: File too large; check free space"));
  ::setrlimit(RLIMIT_FSIZE, &former);
  ::signal(SIGXFSZ, handler);
  expect_rows(hdf5::File::open(folder / "a.h5"), 100000);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.h5.partial"));
}

}  // namespace
}  // namespace carousel
