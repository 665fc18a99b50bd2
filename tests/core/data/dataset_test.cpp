// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Data sets: good ones are read as stored, every kind of bad one is refused with one clear line.

#include "core/data/dataset.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "core/base/descriptor.hpp"
#include "tests/core/data/small_dataset.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

using ::testing::ElementsAre;
using testing::failure;
using ::testing::HasSubstr;
using testing::SmallDataset;
using testing::TemporaryFolder;

TEST(Dataset, ReadsTheEmbeddedDigits) {
  const Dataset digits(testing::input("digits.h5"));
  EXPECT_EQ(digits.shape(), (SampleShape{1, 8, 8}));
  EXPECT_EQ(digits.classes(), 10);
  EXPECT_EQ(digits.train().samples(), 1437);
  EXPECT_EQ(digits.test().samples(), 360);
  EXPECT_EQ(digits.licence(), "CC BY 4.0");
  EXPECT_THAT(digits.source(), HasSubstr("10.24432/C50P49"));

  std::vector<std::uint8_t> sample(64);
  double sum = 0;
  for (std::int64_t k = 0; k < digits.train().samples(); ++k) {
    digits.train().read(k, sample);
    sum += std::accumulate(sample.begin(), sample.end(), 0.0);
  }
  EXPECT_NEAR(sum / (1437.0 * 64 * 255), digits.mean()[0], 1e-12);
}

// Metadata have checksums and text lies outside of HDF5's heap, so that a damaged file is refused,
// or damaged where only numbers are, but never crashes the library or keeps it busy for ever.
TEST(Dataset, SurvivesEveryFlippedByte) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  SmallDataset{}.write(path);
  const std::vector<std::byte> whole = read_file(path);
  const std::uint64_t fingerprint = Dataset(path).fingerprint();
  int refused = 0;
  int told_apart = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::vector<std::byte> damaged = whole;
    damaged[at] ^= std::byte{1} << (at % 8);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(damaged.data()),
               static_cast<std::streamsize>(damaged.size()));
    try {
      told_apart += Dataset(path).fingerprint() != fingerprint ? 1 : 0;
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ExitCode::bad_data || error.code() == ExitCode::input_output);
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(told_apart, 20);
  SmallDataset{}.write(folder / "b.h5");
  EXPECT_EQ(Dataset(folder / "b.h5").fingerprint(), fingerprint);
}

// Wherever the images differ; in chunks they are the same data.
TEST(Dataset, TellsEveryImageApart) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  SmallDataset{.train_images = {70000, 2, 3, 4}, .train_labels = {70000}}.write(path);
  const std::uint64_t fingerprint = Dataset(path).fingerprint();
  SmallDataset{
      .train_images = {70000, 2, 3, 4}, .train_labels = {70000}, .layout = hdf5::Layout::checked}
      .write(folder / "b.h5");
  EXPECT_EQ(Dataset(folder / "b.h5").fingerprint(), fingerprint);
  const std::int64_t images = hdf5::File::open(path).info("/train/images").offset;
  for (const int at : {12345, 69999 * 24}) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(images + at);
    file.put('?');
    file.close();
    EXPECT_NE(Dataset(path).fingerprint(), fingerprint);
  }
}

TEST(Dataset, TellsTheSameBytesInAnotherShapeApart) {
  const TemporaryFolder folder;
  SmallDataset{}.write(folder / "a.h5");
  SmallDataset{.train_images = {50, 2, 4, 3}, .test_images = {7, 2, 4, 3}}.write(folder / "b.h5");
  EXPECT_NE(Dataset(folder / "a.h5").fingerprint(), Dataset(folder / "b.h5").fingerprint());
}

// As h5py writes it unless told otherwise. HDF5 crashes or hangs on some damaged ones.
TEST(Dataset, ReadsTextOfVariableLength) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  SmallDataset{}.write(path);
  {
    const hdf5::Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    H5Adelete(file.get(), "source");
    const hdf5::Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(type.get(), H5T_VARIABLE);
    const hdf5::Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    const hdf5::Handle attribute(
        H5Acreate2(file.get(), "source", type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
        H5Aclose);
    const char* text = "somewhere";
    H5Awrite(attribute.get(), type.get(), &text);
  }
  EXPECT_EQ(Dataset(path).source(), "somewhere");
  const std::vector<std::byte> whole = read_file(path);
  const auto words = std::as_bytes(std::span(std::string_view("somewhere")));
  const auto at =
      std::search(whole.begin(), whole.end(), words.begin(), words.end()) - whole.begin();
  ASSERT_LT(at, std::ssize(whole));
  int refused = 0;
  for (std::ptrdiff_t k = at - 48; k < at + 32; ++k) {  // the heap around it
    for (const int bit : {0, 5, 7}) {
      std::vector<std::byte> changed = whole;
      changed[static_cast<std::size_t>(k)] ^= static_cast<std::byte>(1 << bit);
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(changed.data()), std::ssize(changed));
      try {
        const Dataset dataset(path);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::bad_data) << error.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 10);
}

class Layouts : public ::testing::TestWithParam<hdf5::Layout> {};

TEST_P(Layouts, SamplesComeAsStored) {
  const TemporaryFolder folder;
  SmallDataset{.layout = GetParam()}.write(folder / "a.h5");
  const Dataset dataset(folder / "a.h5");
  EXPECT_EQ(dataset.shape(), (SampleShape{2, 3, 4}));
  EXPECT_THAT(dataset.class_names(), ElementsAre("cat", "dog", "owl"));
  std::vector<std::uint8_t> sample(24);
  dataset.train().read(49, sample);
  EXPECT_EQ(sample[0], 49);
  EXPECT_EQ(sample[23], 72);
  dataset.test().read(6, sample);
  EXPECT_EQ(sample[23], 29);
  EXPECT_EQ(dataset.test().labels()[5], 2);
  EXPECT_THROW(dataset.test().read(7, sample), Error);
}

INSTANTIATE_TEST_SUITE_P(Dataset, Layouts,
                         ::testing::Values(hdf5::Layout::contiguous, hdf5::Layout::checked));

/// A spoilt data set and what must be said about it.
struct BadCase {
  SmallDataset dataset;
  const char* said;
};

class BadDatasets : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadDatasets, AreRefusedByName) {
  const TemporaryFolder folder;
  GetParam().dataset.write(folder / "bad.h5");
  const std::string message =
      failure(ExitCode::bad_data, [&] { const Dataset dataset(folder / "bad.h5"); });
  EXPECT_THAT(message, HasSubstr(folder / "bad.h5"));
  EXPECT_THAT(message, HasSubstr(GetParam().said));
}

INSTANTIATE_TEST_SUITE_P(
    Dataset, BadDatasets,
    ::testing::Values(
        BadCase{{.format = "carousel checkpoint"}, "this is a 'carousel checkpoint'"},
        BadCase{{.version = 2}, "format version 2"},
        BadCase{{.with_test = false}, "/test/images is missing"},
        BadCase{{.wrong_type = "/train/images"}, "/train/images is float64 [50, 2, 3, 4]"},
        BadCase{{.wrong_type = "/test/labels"}, "/test/labels holds float64, not integers"},
        BadCase{{.train_images = {50, 2, 12}}, "/train/images is uint8 [50, 2, 12]"},
        BadCase{{.test_images = {7, 2, 4, 3}}, "/test/images holds images of"},
        BadCase{{.train_labels = {49}}, "/train/labels is [49], it must be [50]"},
        BadCase{{.test_images = {0, 2, 3, 4}, .test_labels = {0}}, "/test/images [0, 2, 3, 4] is"},
        BadCase{{.bad_label = 4}, "/test/labels[4] = 3 is outside 0..2"},
        BadCase{{.bad_label = 4, .bad_value = 4294967296}, "/test/labels[4] = 4294967296 is"},
        BadCase{{.with_mean = false}, "no attribute 'mean'"},
        BadCase{{.std = 0}, "attribute std holds 0"},
        BadCase{{.std = 64}, "attribute std holds 64; mean and std are of images scaled"}));

// Pixels are read from where HDF5 says that they lie, and that is in one file alone.
TEST(Dataset, ImagesOfAnotherFileAreRefused) {
  const TemporaryFolder folder;
  SmallDataset().write(folder / "a.h5");
  hdf5::File file = hdf5::File::create(folder / "b.h5");
  SmallDataset().write_attributes(file);
  for (const char* group : {"/train", "/test"}) file.link(group, folder / "a.h5", group);
  file.close();
  EXPECT_THAT(failure(ExitCode::bad_data, [&] { const Dataset dataset(folder / "b.h5"); }),
              HasSubstr("/train/images lies in another file"));
}

TEST(Dataset, MissingFileNamesTheReason) {
  const TemporaryFolder folder;
  EXPECT_THAT(failure(ExitCode::input_output, [&] { const Dataset dataset(folder / "none.h5"); }),
              HasSubstr("none.h5: cannot open: No such file or directory"));
}

TEST(Dataset, TruncatedAtAnyLengthIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  SmallDataset().write(path);
  const auto size = std::filesystem::file_size(path);
  for (std::uintmax_t keep :
       {size - 1, size / 2, size / 4, std::uintmax_t{100}, std::uintmax_t{0}}) {
    std::filesystem::resize_file(path, keep);
    EXPECT_THAT(failure(ExitCode::bad_data, [&] { const Dataset dataset(path); }), HasSubstr(path));
  }
}

TEST(Dataset, TextIsRefused) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a.h5") << "label,image\n3,0\n";
  EXPECT_THAT(failure(ExitCode::bad_data, [&] { const Dataset dataset(folder / "a.h5"); }),
              HasSubstr("a.h5: cannot read /"));
}

}  // namespace
}  // namespace carousel
