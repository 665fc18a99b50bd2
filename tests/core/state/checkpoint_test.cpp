// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Checkpoints: exact, whole or refused, and safe from full disks.

#include "core/state/checkpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <numeric>

#include "core/base/random.hpp"
#include "tests/core/record/sample_run.hpp"
#include "tests/core/support.hpp"

// HDF5 1.10 leaks where it refuses a damaged file; that is not ours to find here.
extern "C" const char* __lsan_default_suppressions() {  // NOLINT: the name is not ours
  return "leak:libhdf5";
}

namespace carousel {
namespace {

namespace fs = std::filesystem;
using testing::failure;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::TemporaryFolder;

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() {
    create_run_folder(folder_.path(), false);
    std::iota(weight_.begin(), weight_.end(), real(0.25));
  }

  void save(std::int64_t step, int keep = 2) const {
    const std::vector<NamedTensor> tensors{
        {"/parameters/0.weight", {20, 30}, weight_},
        {"/parameters/0.bias", {20}, std::span(weight_).first(20)},
        {"/previous/0.weight", {20, 30}, weight_},
        {"/optimizer/momentum/0.weight", {600}, weight_},
    };
    CheckpointWriter writer(testing::sample_info(), {step, 3, 4, 16}, {.tensors = 4});
    for (const NamedTensor& tensor : tensors) writer.add(tensor);
    writer.save(folder_.path(), keep);
  }

  [[nodiscard]] std::string last() const { return folder_ / "checkpoints/last.h5"; }

  TemporaryFolder folder_;
  std::vector<real> weight_ = std::vector<real>(600);
};

TEST_F(CheckpointTest, ComesBackBitForBit) {
  save(17);
  const Checkpoint checkpoint(last());
  EXPECT_EQ(checkpoint.place().step, 17);
  EXPECT_EQ(checkpoint.place().epoch, 3);
  EXPECT_EQ(checkpoint.place().micro_batches, 4);
  EXPECT_EQ(checkpoint.place().micro_batch_size, 16);
  EXPECT_EQ(checkpoint.info().deck, testing::sample_info().deck);
  EXPECT_THAT(checkpoint.tensors(), SizeIs(4));
  const std::vector<std::int64_t> shape{20, 30};
  const std::span<const real> values = checkpoint.values("/parameters/0.weight", shape);
  EXPECT_TRUE(std::equal(values.begin(), values.end(), weight_.begin(), weight_.end()));

  const std::vector<std::int64_t> other{30, 20};
  EXPECT_THAT(
      failure(ExitCode::bad_data, [&] { (void)checkpoint.values("/parameters/0.weight", other); }),
      HasSubstr("has shape [20, 30], the model needs [30, 20]"));
  EXPECT_THAT(failure(ExitCode::bad_data, [&] { (void)checkpoint.values("/parameters/x", other); }),
              HasSubstr("/parameters/x is missing"));
}

TEST_F(CheckpointTest, KeepsAsManyAsItIsTold) {
  for (const std::int64_t step : {1, 2, 3}) save(step, 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "checkpoints"), {}), 4);
  save(3, 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "checkpoints"), {}), 2);
  EXPECT_EQ(Checkpoint(last()).place().step, 3);
}

TEST_F(CheckpointTest, RemovesNothingButOlderOnes) {
  save(7, 0);
  fs::create_directory(folder_ / "checkpoints/step-00000009.h5");
  save(5, 1);
  EXPECT_EQ(Checkpoint(last()).place().step, 5);
  EXPECT_TRUE(fs::exists(folder_ / "checkpoints/step-00000007.h5"));
  EXPECT_TRUE(fs::exists(folder_ / "checkpoints/step-00000009.h5"));
}

TEST_F(CheckpointTest, ALinkToNowhereIsOne) {
  save(7, 0);
  const fs::path checkpoints = folder_ / "checkpoints";
  // The order in which a folder lists its files must not matter.
  for (std::int64_t step = 1; step < 7; ++step) {
    const fs::path link = checkpoints / checkpoint_file_name(step);
    fs::create_symlink("nowhere", link);
    EXPECT_THAT(checkpoints_of(folder_.path()), SizeIs(2));
    fs::remove(link);
  }
}

TEST_F(CheckpointTest, KeepsTheNewest) {
  for (const std::int64_t step : {5, 10, 15}) save(step);
  EXPECT_FALSE(fs::exists(folder_ / "checkpoints/step-00000005.h5"));
  EXPECT_TRUE(fs::exists(folder_ / "checkpoints/step-00000010.h5"));
  EXPECT_EQ(Checkpoint(last()).place().step, 15);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "checkpoints"), {}), 3);
}

TEST_F(CheckpointTest, DamageIsFoundWhereverItIs) {
  save(1);
  std::vector<std::byte> image = read_file(last());
  const std::string spoilt = folder_ / "spoilt.h5";
  int refused = 0;
  constexpr int flips = 500;
  for (int k = 0; k < flips; ++k) {
    const auto bit = static_cast<std::size_t>(uniform01(1, 2, static_cast<std::uint64_t>(k)) *
                                              static_cast<double>(8 * image.size()));
    const std::byte mask{static_cast<unsigned char>(1U << (bit % 8))};
    image[bit / 8] ^= mask;
    replace_file(spoilt, image, Durability::process);
    try {
      // What still loads was damaged in a part that holds nothing: it must be equal in all it says.
      const Checkpoint checkpoint(spoilt);
      ASSERT_EQ(checkpoint.info().deck, testing::sample_info().deck) << "bit " << bit;
      ASSERT_EQ(checkpoint.place().step, 1) << "bit " << bit;
      ASSERT_THAT(checkpoint.tensors(), SizeIs(4)) << "bit " << bit;
      for (const NamedTensor& tensor : checkpoint.tensors())
        ASSERT_TRUE(std::equal(tensor.values.begin(), tensor.values.end(), weight_.begin()))
            << "bit " << bit;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ExitCode::bad_data) << error.what();
      ASSERT_THAT(error.what(), HasSubstr(spoilt));
      ++refused;
    }
    image[bit / 8] ^= mask;
  }
  EXPECT_GT(refused, flips / 2);
}

TEST_F(CheckpointTest, TruncatedIsRefused) {
  save(1);
  save(2);
  for (const std::uintmax_t keep : {5000, 100, 0}) {
    fs::resize_file(folder_ / "checkpoints/step-00000002.h5", keep);
    EXPECT_THAT(failure(ExitCode::bad_data, [&] { const Checkpoint checkpoint(last()); }),
                HasSubstr("the file is damaged or incomplete"));
  }
}

TEST_F(CheckpointTest, MissingAndForeignFilesAreNamed) {
  EXPECT_THAT(failure(ExitCode::input_output, [&] { const Checkpoint checkpoint(last()); }),
              HasSubstr("last.h5: cannot open"));
  const std::string digits = testing::input("digits.h5");
  EXPECT_THAT(failure(ExitCode::bad_data, [&] { const Checkpoint checkpoint(digits); }),
              HasSubstr("it is no carousel checkpoint"));
}

/// Bytes that are taken from the heap now.
std::int64_t heap_in_use() {
  const auto info = ::mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

TEST_F(CheckpointTest, TakesNoMoreMemoryThanItSays) {
  for (const std::int64_t tensors : {1, 100}) {
    const std::vector<real> values(static_cast<std::size_t>(1'000'000 / tensors));
    const CheckpointSize size{.tensors = tensors,
                              .bytes = tensors * std::ssize(values) * std::int64_t{sizeof(real)}};
    const std::int64_t before = heap_in_use();
    CheckpointWriter writer(testing::sample_info(), {1, 1, 1, 1}, size);
    for (std::int64_t k = 0; k < tensors; ++k)
      writer.add({fmt::format("/parameters/{}", k), {std::ssize(values)}, values});
    EXPECT_LE(heap_in_use() - before, size.file_bytes() + CheckpointWriter::library_bytes);
    writer.save(folder_.path(), 1);
    const auto bytes = static_cast<std::int64_t>(fs::file_size(last()));
    EXPECT_GT(bytes, size.bytes);
    EXPECT_LE(bytes, size.file_bytes());
  }
}

/// Lets writes fail as on a full disk while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &former_);
    const rlimit limit{bytes, former_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &former_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit former_ = {};
  void (*handler_)(int) = nullptr;
};

TEST_F(CheckpointTest, AFullDiskLeavesTheFormerOne) {
  save(1);
  {
    const FileSizeLimit limit(4096);
    EXPECT_THAT(failure(ExitCode::input_output, [&] { save(2); }),
                HasSubstr("File too large; check free space"));
  }
  EXPECT_EQ(Checkpoint(last()).place().step, 1);
  EXPECT_FALSE(fs::exists(folder_ / "checkpoints/step-00000002.h5"));
  EXPECT_FALSE(fs::exists(folder_ / "checkpoints/step-00000002.h5.partial"));
}

TEST_F(CheckpointTest, AFullDiskLeavesTheFormerRunFile) {
  RunFile run(folder_.path(), testing::sample_info());
  run.publish();
  const auto size = fs::file_size(folder_ / "run.h5");
  {
    const FileSizeLimit limit(size);
    const std::vector<StepRecord> steps(2000);
    run.append({.steps = steps});
    EXPECT_THAT(failure(ExitCode::input_output, [&] { run.publish(); }), HasSubstr("run.h5"));
  }
  EXPECT_EQ(fs::file_size(folder_ / "run.h5"), size);
}

}  // namespace
}  // namespace carousel
