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
        BadCase{{.third_class = "cat"}, "attribute class_names has 'cat' twice"},
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

/// Puts another dataset in the place of one. `values` are its first rows, as many as `written`; the
/// others never are. In chunks of `chunk` rows, or 0: in one run of bytes.
void replace(const std::string& path, const char* name, hid_t type, const hdf5::Shape& shape,
             const void* values, hsize_t written, hsize_t chunk = 0) {
  const hdf5::Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
  H5Ldelete(file.get(), name, H5P_DEFAULT);
  const auto rank = static_cast<int>(shape.size());
  const hdf5::Handle space(H5Screate_simple(rank, shape.data(), nullptr), H5Sclose);
  const hdf5::Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  hdf5::Shape part = shape;
  part[0] = chunk;
  if (chunk > 0) H5Pset_chunk(properties.get(), rank, part.data());
  const hdf5::Handle set(
      H5Dcreate2(file.get(), name, type, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT),
      H5Dclose);
  ASSERT_GE(set.get(), 0);
  if (written == 0) return;
  part[0] = written;
  const hdf5::Shape start(shape.size(), 0);
  H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, part.data(), nullptr);
  const hdf5::Handle rows(H5Screate_simple(rank, part.data(), nullptr), H5Sclose);
  ASSERT_GE(H5Dwrite(set.get(), type, rows.get(), space.get(), H5P_DEFAULT, values), 0);
}

// HDF5 reads zeros where nothing was written: black images, samples of the first class.
TEST(Dataset, WhatWasNeverWrittenIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  const std::vector<std::uint8_t> pixels(50 * 24, 1);
  const std::vector<std::uint8_t> labels(50, 1);
  const hdf5::Shape images = {50, 2, 3, 4};
  const auto refusal = [&] {
    return failure(ExitCode::bad_data, [&] { const Dataset dataset(path); });
  };
  for (const hsize_t chunk : {0, 8}) {
    SmallDataset().write(path);
    replace(path, "/train/images", H5T_NATIVE_UINT8, images, nullptr, 0, chunk);
    EXPECT_THAT(refusal(), HasSubstr("a.h5: /train/images was created but never written"));
    SmallDataset().write(path);
    replace(path, "/train/labels", H5T_NATIVE_UINT8, {50}, nullptr, 0, chunk);
    EXPECT_THAT(refusal(), HasSubstr("a.h5: /train/labels was created but never written"));
  }
  SmallDataset().write(path);
  replace(path, "/train/images", H5T_NATIVE_UINT8, images, pixels.data(), 40, 8);
  EXPECT_THAT(refusal(), HasSubstr("a.h5: only 5 of the 7 chunks of /train/images were ever"));
  SmallDataset().write(path);
  replace(path, "/train/labels", H5T_NATIVE_UINT8, {50}, labels.data(), 8, 8);
  EXPECT_THAT(refusal(), HasSubstr("a.h5: only 1 of the 7 chunks of /train/labels were ever"));
  // The last chunk is longer than what is left for it.
  replace(path, "/train/labels", H5T_NATIVE_UINT8, {50}, labels.data(), 50, 8);
  replace(path, "/train/images", H5T_NATIVE_UINT8, images, pixels.data(), 50, 8);
  EXPECT_EQ(Dataset(path).train().labels()[49], 1);
}

TEST(Dataset, LabelsMayBeIntegersOfAnyKind) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  SmallDataset().write(path);
  const hdf5::Handle answers(H5Tenum_create(H5T_NATIVE_INT8), H5Tclose);  // as h5py has bool
  const hdf5::Handle animals(H5Tenum_create(H5T_STD_I16BE), H5Tclose);
  signed char value = 0;
  for (const char* name : {"FALSE", "TRUE"}) {
    H5Tenum_insert(answers.get(), name, &value);
    ++value;
  }
  std::uint16_t big_endian = 0;
  for (const char* name : {"cat", "dog", "owl"}) {
    H5Tenum_insert(animals.get(), name, &big_endian);
    big_endian = static_cast<std::uint16_t>(big_endian + 0x100);
  }
  const std::vector<signed char> yes_or_no = {0, 1, 1, 0, 1, 0, 0};
  replace(path, "/test/labels", answers.get(), {7}, yes_or_no.data(), 7);
  EXPECT_EQ(hdf5::File::open(path).info("/test/labels").type, "bool");
  EXPECT_THAT(Dataset(path).test().labels(), ElementsAre(0, 1, 1, 0, 1, 0, 0));
  const std::vector<std::uint16_t> classes = {0, 0x100, 0x200, 0, 0, 0x200, 0x100};
  replace(path, "/test/labels", animals.get(), {7}, classes.data(), 7);
  EXPECT_EQ(hdf5::File::open(path).info("/test/labels").type, "enum");
  EXPECT_THAT(Dataset(path).test().labels(), ElementsAre(0, 1, 2, 0, 0, 2, 1));
  const std::vector<std::uint64_t> large = {2, 1, 0, 2, 1, 0, 2};
  replace(path, "/test/labels", H5T_NATIVE_UINT64, {7}, large.data(), 7);
  EXPECT_THAT(Dataset(path).test().labels(), ElementsAre(2, 1, 0, 2, 1, 0, 2));
}

// None of them wraps or is rounded.
TEST(Dataset, WrongLabelsAreToldAsTheyAre) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  SmallDataset().write(path);
  const auto refusal = [&] {
    return failure(ExitCode::bad_data, [&] { const Dataset dataset(path); });
  };
  for (const std::uint64_t wrong :
       {std::uint64_t{1} << 63, ~std::uint64_t{0}, (std::uint64_t{1} << 63) - 1}) {
    const std::vector<std::uint64_t> values = {0, 1, wrong, 0, 0, 0, 0};
    replace(path, "/test/labels", H5T_NATIVE_UINT64, {7}, values.data(), 7);
    EXPECT_THAT(refusal(), HasSubstr(fmt::format("/test/labels[2] = {} is ", wrong)));
  }
  const std::vector<signed char> negative = {0, 1, 2, 0, -1, 0, 0};
  replace(path, "/test/labels", H5T_NATIVE_INT8, {7}, negative.data(), 7);
  EXPECT_THAT(refusal(), HasSubstr("/test/labels[4] = -1 is outside 0..2"));
  constexpr const char* integers = ", not integers; labels are numbers of classes, counted from 0";
  const std::vector<float> numbers = {0, 1, 2, 0, 1, 2, 0};
  replace(path, "/test/labels", H5T_NATIVE_FLOAT, {7}, numbers.data(), 7);
  EXPECT_THAT(refusal(), HasSubstr("a.h5: /test/labels holds float32" + std::string(integers)));
  const hdf5::Handle name(H5Tcopy(H5T_C_S1), H5Tclose);
  replace(path, "/test/labels", name.get(), {7}, "abcabca", 7);
  EXPECT_THAT(refusal(), HasSubstr("a.h5: /test/labels holds string" + std::string(integers)));
  const hdf5::Handle pair(H5Tcreate(H5T_COMPOUND, 1), H5Tclose);
  H5Tinsert(pair.get(), "first", 0, H5T_NATIVE_INT8);
  replace(path, "/test/labels", pair.get(), {7}, negative.data(), 7);
  EXPECT_THAT(refusal(),
              HasSubstr("a.h5: /test/labels holds compound values" + std::string(integers)));
  replace(path, "/test/labels", H5T_STD_B8LE, {7}, negative.data(), 7);
  EXPECT_THAT(refusal(), HasSubstr("a.h5: /test/labels holds bit fields" + std::string(integers)));
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
              HasSubstr("a.h5: is no HDF5 file"));
}

}  // namespace
}  // namespace carousel
