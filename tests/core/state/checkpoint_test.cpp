// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Checkpoints: exact, whole or refused, and safe from full disks.

#include "core/state/checkpoint_writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <numeric>

#include "core/base/random.hpp"
#include "tests/core/state/sample_checkpoint.hpp"
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
using testing::NamedTensor;
using ::testing::SizeIs;
using testing::TemporaryFolder;

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() {
    create_run_folder(folder_.path(), false);
    std::iota(weight_.begin(), weight_.end(), real(0.25));
  }

  void save(std::int64_t step, int keep = 2, std::int64_t most = INT64_MAX) const {
    const std::vector<NamedTensor> tensors{
        {"/parameters/0.weight", {20, 30}, small_},
        {"/parameters/0.bias", {20}, small_.first(20)},
        {"/previous/0.weight", {20, 30}, small_},
        {"/optimizer/momentum/0.weight", {6000}, weight_},
    };
    testing::save_checkpoint(folder_.path(), {step, 3, 7, 4, 16, 99}, tensors, keep, most);
  }

  [[nodiscard]] std::string last() const { return folder_ / "checkpoints/last.h5"; }

  TemporaryFolder folder_;
  std::vector<real> weight_ = std::vector<real>(6000);
  std::span<const real> small_ = std::span(weight_).first(600);
};

TEST_F(CheckpointTest, ComesBackBitForBit) {
  save(17);
  const Checkpoint checkpoint(last());
  EXPECT_EQ(checkpoint.place().step, 17);
  EXPECT_EQ(checkpoint.place().epoch, 3);
  EXPECT_EQ(checkpoint.place().position, 7);
  EXPECT_EQ(checkpoint.place().micro_batches, 4);
  EXPECT_EQ(checkpoint.place().micro_batch_size, 16);
  EXPECT_EQ(checkpoint.place().data, 99U);
  EXPECT_EQ(checkpoint.info().deck, testing::sample_info().deck);
  EXPECT_THAT(checkpoint.tensors(), SizeIs(4));
  const std::vector<std::int64_t> shape{20, 30};
  const std::vector<real> values = checkpoint.values("/parameters/0.weight", shape);
  EXPECT_TRUE(std::ranges::equal(values, small_));
  checkpoint.check();

  const std::vector<std::int64_t> other{30, 20};
  EXPECT_THAT(
      failure(ExitCode::bad_data, [&] { (void)checkpoint.values("/parameters/0.weight", other); }),
      HasSubstr("has shape [20, 30], the model needs [30, 20]"));
  EXPECT_THAT(failure(ExitCode::bad_data, [&] { (void)checkpoint.values("/parameters/x", other); }),
              HasSubstr("/parameters/x is missing"));
}

TEST_F(CheckpointTest, TheSizeOfPiecesDoesNotMatter) {
  save(17);
  const std::vector<std::byte> whole = read_file(last());
  save(17, 2, 7);
  EXPECT_EQ(read_file(last()), whole);
}

// As ranks do: one begins and finishes, each puts its own, digests are summed.
TEST_F(CheckpointTest, SeveralProcessesMakeOneFile) {
  save(17);
  const std::vector<std::byte> whole = read_file(last());
  CheckpointLayout layout;
  layout.add("/parameters/0.weight", {20, 30});
  layout.add("/parameters/0.bias", {20});
  layout.add("/previous/0.weight", {20, 30});
  layout.add("/optimizer/momentum/0.weight", {6000});
  const std::string path = folder_ / "checkpoints/step-00000099.h5";
  CheckpointWriter first(path, layout);
  CheckpointWriter second(path, layout);
  first.begin();
  first.put("/parameters/0.weight", 0, small_);
  second.put("/parameters/0.bias", 0, small_.first(20));
  second.put("/optimizer/momentum/0.weight", 0, weight_);
  first.put("/previous/0.weight", 0, small_);
  first.sync();
  second.sync();
  std::ranges::transform(first.digests(), second.digests(), first.digests().begin(), std::plus<>());
  first.finish(testing::sample_info(), {17, 3, 7, 4, 16, 99});
  EXPECT_EQ(read_file(path), whole);
}

TEST_F(CheckpointTest, TellsItsInputs) {
  save(1);
  EXPECT_FALSE(Checkpoint(last()).inputs());
  InputRecord labels{.mean = {0.1, 1.0 / 3},
                     .std = {0.2, 0.3},
                     .class_names = {"cat", ""},
                     .shape = {2, 5, 7},
                     .resize = 8,
                     .target = 2};
  InputRecord pixels = labels;
  pixels.target = TargetSpec::of_pixels(2, {1, 5, 7});
  const InputRecord numbers{.mean = {0.1, 1.0 / 3},
                            .std = {0.2, 0.3},
                            .shape = {2, 5, 7},
                            .target = TargetSpec::of_numbers({3, 1, 1}),
                            .target_mean = {1e9, 0, -1e-9},
                            .target_std = {1, 2, 1e-12}};
  for (const InputRecord& inputs : {labels, pixels, numbers}) {
    CheckpointLayout layout;
    layout.add("/parameters/x", {600});
    const std::string path = folder_ / "checkpoints/step-00000002.h5";
    CheckpointWriter writer(path, layout);
    writer.begin();
    writer.put("/parameters/x", 0, small_);
    writer.sync();
    writer.finish(testing::sample_info(), {}, inputs);
    EXPECT_EQ(Checkpoint(path).inputs(), inputs);
    EXPECT_THAT(Checkpoint(path).tensors(), SizeIs(1));
  }
}

TEST(InputRecord, NamesWhatDiffers) {
  const InputRecord inputs{.mean = {0.1}, .std = {0.2}, .class_names = {"cat", "dog"}};
  const auto words = [&](const auto& change) {
    InputRecord other = inputs;
    change(other);
    const auto found = difference(inputs, other);
    return found ? fmt::format("{}: {} | {}", found->what, found->first, found->second) : "same";
  };
  EXPECT_EQ(words([](InputRecord&) {}), "same");
  EXPECT_EQ(words([](InputRecord& r) { r.mean = {0.1 + 1e-8}; }), "same");
  EXPECT_EQ(words([](InputRecord& r) { r.mean = {0.1001}; }), "mean: [0.1] | [0.1001]");
  EXPECT_EQ(words([](InputRecord& r) { r.std = {0.2, 0.2}; }), "std: [0.2] | [0.2, 0.2]");
  EXPECT_EQ(words([](InputRecord& r) { r.class_names = {"dog", "cat"}; }), "class 0: cat | dog");
  EXPECT_EQ(words([](InputRecord& r) { r.class_names.emplace_back("cow"); }),
            "data set: 2 classes (cat, dog) | 3 classes (cat, dog, cow)");
  EXPECT_EQ(words([](InputRecord& r) { r.shape = {3, 1, 1}; }), "shape of an input: 0x1x1 | 3x1x1");
  EXPECT_EQ(words([](InputRecord& r) { r.resize = 256; }), "data.augment.resize: 0 | 256");
  EXPECT_EQ(words([](InputRecord& r) {
              r.target = TargetSpec::of_numbers({2, 1, 1});
            }),
            "kind of targets: 0 classes | targets of 2 numbers");
  EXPECT_EQ(words([](InputRecord& r) { r.target_std = {1e-9}; }), "std of targets: [] | [1e-09]");
}

TEST_F(CheckpointTest, WhatWasNotFinishedIsNotThere) {
  save(1);
  {
    CheckpointLayout layout;
    layout.add("/parameters/x", {6000});
    CheckpointWriter writer(folder_ / "checkpoints/step-00000002.h5", layout);
    writer.begin();
    writer.put("/parameters/x", 0, weight_);
    writer.sync();
    EXPECT_FALSE(fs::exists(folder_ / "checkpoints/step-00000002.h5"));
    EXPECT_THAT(
        failure(ExitCode::bad_data,
                [&] { const Checkpoint torn(folder_ / "checkpoints/step-00000002.h5.partial"); }),
        HasSubstr("the file is damaged or incomplete"));
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "checkpoints"), {}), 2);
  EXPECT_EQ(Checkpoint(last()).place().step, 1);
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
  constexpr int flips = 1000;
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
      for (const CheckpointTensor& tensor : checkpoint.tensors()) {
        const std::vector<real> values = checkpoint.values(tensor.name, tensor.shape);
        ASSERT_TRUE(std::equal(values.begin(), values.end(), weight_.begin())) << "bit " << bit;
      }
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

// Tensors just above 2^20 numbers, and many small ones.
TEST_F(CheckpointTest, HasTheSizeItSaysAndTakesNoCopy) {
  for (const std::int64_t tensors : {3, 200}) {
    const std::int64_t side = tensors > 100 ? 8 : 1030;
    const std::vector<real> values(static_cast<std::size_t>(side * side));
    CheckpointLayout layout;
    for (std::int64_t k = 0; k < tensors; ++k)
      layout.add(fmt::format("/parameters/{}", k), {side, side});
    const CheckpointPlace place{1, 1, 1, 1, 1, 1};
    const std::int64_t size = layout.file_bytes(testing::sample_info(), place);
    const std::int64_t content = tensors * side * side * std::int64_t{sizeof(real)};
    EXPECT_GE(size, content);
    EXPECT_LE(size, content + 4096 * (2 + 2 * tensors));
    const std::string path = folder_ / "checkpoints/step-00000001.h5";
    const std::int64_t before = heap_in_use();
    CheckpointWriter writer(path, layout);
    writer.begin();
    for (const CheckpointTensor& tensor : layout.tensors()) writer.put(tensor.name, 0, values);
    writer.sync();
    EXPECT_LE(heap_in_use() - before, 1 << 18);
    writer.finish(testing::sample_info(), place);
    EXPECT_EQ(static_cast<std::int64_t>(fs::file_size(path)), size);
    Checkpoint(path).check();
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
  RunFile run(folder_.path(), {testing::sample_info()}, {"accuracy"}, testing::sample_history());
  run.publish();
  const auto size = fs::file_size(folder_ / "run.h5");
  {
    const FileSizeLimit limit(size);
    const std::vector<StepRecord> steps(2000);
    run.append(steps);
    EXPECT_THAT(failure(ExitCode::input_output, [&] { run.publish(); }), HasSubstr("run.h5"));
  }
  EXPECT_EQ(fs::file_size(folder_ / "run.h5"), size);
}

}  // namespace
}  // namespace carousel
