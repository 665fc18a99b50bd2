// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Data sets that are written here are read back as they were, and no byte of them changes unseen.

#include "core/data/dataset_writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numeric>
#include <thread>

#include "core/base/check.hpp"
#include "core/base/random.hpp"
#include "core/data/dataset.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;

constexpr SampleShape shape = {3, 37, 41};
constexpr int train_images = 700;  // some MiB
constexpr int test_images = 5;

std::vector<std::uint8_t> image(Half half, int number) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(shape.size()));
  const std::uint64_t key = random_key(number, half == Half::train ? "train" : "test");
  for (std::size_t k = 0; k < bytes.size(); ++k)
    bytes[k] = static_cast<std::uint8_t>(256 * uniform01(key, 0, k));
  return bytes;
}

DatasetSpec spec() {
  DatasetSpec made = {
      .shape = shape, .class_names = {"cat", "dog"}, .source = "a test", .licence = "none"};
  for (int k = 0; k < train_images; ++k) made.labels[0].push_back(k % 2);
  made.labels[1] = {1, 0, 1, 1, 0};
  return made;
}

void write(const std::string& path) {
  DatasetWriter writer(path, spec());
  std::vector<std::thread> threads;
  for (int first = 0; first < 2; ++first) {
    threads.emplace_back([&, first] {
      for (int k = first; k < train_images; k += 2)
        writer.put(Half::train, k, image(Half::train, k));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int k = 0; k < test_images; ++k) writer.put(Half::test, k, image(Half::test, k));
  writer.finish();
}

void read_all(const Dataset& dataset) {
  std::vector<std::uint8_t> sample(static_cast<std::size_t>(shape.size()));
  for (const Split* split : {&dataset.train(), &dataset.test()})
    for (std::int64_t k = 0; k < split->samples(); ++k) split->read(k, sample);
}

std::ptrdiff_t files_in(const TemporaryFolder& folder) {
  return std::distance(std::filesystem::directory_iterator(folder.path()), {});
}

TEST(DatasetWriter, IsReadBack) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  write(path);
  EXPECT_EQ(files_in(folder), 1);
  const Dataset dataset(path);
  EXPECT_EQ(dataset.shape(), shape);
  EXPECT_EQ(dataset.class_names(), spec().class_names);
  EXPECT_EQ(dataset.source(), "a test");
  EXPECT_TRUE(std::ranges::equal(dataset.train().labels(), spec().labels[0]));
  EXPECT_TRUE(std::ranges::equal(dataset.test().labels(), spec().labels[1]));
  std::vector<std::uint8_t> sample(static_cast<std::size_t>(shape.size()));
  std::array<double, 3> sum = {};
  std::array<double, 3> squares = {};
  const auto plane = static_cast<std::size_t>(shape.size() / shape.channels);
  for (int k = 0; k < train_images; ++k) {
    dataset.train().read(k, sample);
    ASSERT_EQ(sample, image(Half::train, k)) << k;
    for (std::size_t x = 0; x < sample.size(); ++x) {
      sum[x / plane] += sample[x] / 255.0;
      squares[x / plane] += sample[x] / 255.0 * sample[x] / 255.0;
    }
  }
  for (int k = 0; k < test_images; ++k) {
    dataset.test().read(k, sample);
    ASSERT_EQ(sample, image(Half::test, k)) << k;
  }
  const double values = static_cast<double>(plane) * train_images;
  for (std::size_t c = 0; c < 3; ++c) {
    const double mean = sum[c] / values;
    EXPECT_NEAR(dataset.mean()[c], mean, 1e-12);
    EXPECT_NEAR(dataset.std()[c], std::sqrt(squares[c] / values - mean * mean), 1e-9);
  }
}

TEST(DatasetWriter, LeavesNothingBehindUnlessItFinishes) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  { DatasetWriter(path, spec()).put(Half::train, 0, image(Half::train, 0)); }
  EXPECT_EQ(files_in(folder), 0);
  EXPECT_THAT(
      testing::failure(ExitCode::input_output, [&] { DatasetWriter(folder / "no/a.h5", spec()); }),
      HasSubstr("No such file"));
}

// Two that write the same file at the same time each write a whole one.
TEST(DatasetWriter, DoesNotMeetAnother) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  DatasetWriter first(path, spec());
  DatasetWriter second(path, spec());
  for (DatasetWriter* writer : {&first, &second}) {
    for (int k = 0; k < train_images; ++k) writer->put(Half::train, k, image(Half::train, k));
    for (int k = 0; k < test_images; ++k) writer->put(Half::test, k, image(Half::test, k));
  }
  std::vector<std::uint8_t> sample(static_cast<std::size_t>(shape.size()));
  for (DatasetWriter* writer : {&first, &second}) {
    writer->finish();
    const Dataset dataset(path);
    EXPECT_TRUE(std::ranges::equal(dataset.train().labels(), spec().labels[0]));
    for (int k = 0; k < train_images; k += 23) {
      dataset.train().read(k, sample);
      ASSERT_EQ(sample, image(Half::train, k)) << k;
    }
  }
  EXPECT_EQ(files_in(folder), 1);
}

// Where a byte is changed, opening or reading says so, unless nobody reads that byte.
TEST(DatasetWriter, DamageIsFound) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  write(path);
  const std::vector<std::byte> whole = read_file(path);
  const std::uint64_t key = random_key(1, "flips");
  int found = 0;
  int harmless = 0;
  for (std::uint64_t k = 0; k < 1000; ++k) {
    const auto place =
        static_cast<std::size_t>(static_cast<double>(whole.size()) * uniform01(key, 0, k));
    std::vector<std::byte> changed = whole;
    changed[place] ^= static_cast<std::byte>(1 << k % 8);
    replace_file(path, changed, Durability::process);
    try {
      const Dataset dataset(path);
      read_all(dataset);
      std::vector<std::uint8_t> sample(static_cast<std::size_t>(shape.size()));
      for (int i = 0; i < train_images; i += 7) {
        dataset.train().read(i, sample);
        ASSERT_EQ(sample, image(Half::train, i)) << "byte " << place;
      }
      ++harmless;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_data) << error.what();
      ++found;
    }
  }
  EXPECT_GT(found, 970);
  EXPECT_LT(harmless, 30);
}

}  // namespace
}  // namespace carousel
