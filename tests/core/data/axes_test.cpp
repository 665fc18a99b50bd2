// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The order of the axes of images: told by an attribute or by a shape that can be meant in one way
// only, and the same images whichever it is.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "core/data/dataset.hpp"
#include "core/data/image_source.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

using testing::failure;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

/// What a file says of its images, and the number of channels in its mean.
struct Stated {
  hdf5::Shape shape;
  std::string axes = {};  // of /
  hsize_t channels = 0;
  hdf5::Layout layout = hdf5::Layout::contiguous;
};

/// Value of a pixel, other for each of them.
std::uint8_t value_at(hsize_t sample, hsize_t channel, hsize_t y, hsize_t x) {
  return static_cast<std::uint8_t>(37 * sample + 101 * channel + 11 * y + 3 * x + x * y);
}

void write(const std::string& path, const Stated& stated) {
  hdf5::File file = hdf5::File::create(path);
  const hdf5::Shape& s = stated.shape;
  const bool last = stated.axes == "n h w c";
  std::vector<std::uint8_t> values;
  for (hsize_t n = 0; n < s[0]; ++n)
    for (hsize_t i = 0; i < s[1]; ++i)
      for (hsize_t j = 0; j < s[2]; ++j)
        for (hsize_t k = 0; k < s[3]; ++k)
          values.push_back(last ? value_at(n, k, i, j) : value_at(n, i, j, k));
  for (const std::string half : {"/train", "/test"}) {
    file.write<std::uint8_t>(half + "/images", values, s, stated.layout);
    file.write<int>(half + "/labels", std::vector<int>(s[0], 1));
  }
  file.set("/", "format", "carousel dataset");
  file.set("/", "format_version", std::int64_t{1});
  file.set_list("/", "class_names", std::vector<std::string>{"cat", "dog"});
  file.set_list("/", "mean", std::vector<double>(stated.channels, 0.5));
  file.set_list("/", "std", std::vector<double>(stated.channels, 0.25));
  if (!stated.axes.empty()) file.set("/", "axes", stated.axes);
  file.set("/", "source", "made by a test");
  file.set("/", "licence", "none");
  file.close();
}

TEST(Axes, ShapesThatCanOnlyBeMeantOtherwiseAreRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  // Colours at the end; squares of fewer channels than sides.
  for (const hdf5::Shape& shape :
       {hdf5::Shape{6, 32, 32, 3}, hdf5::Shape{6, 28, 28, 1}, hdf5::Shape{6, 24, 32, 4},
        hdf5::Shape{6, 32, 24, 2}, hdf5::Shape{6, 2, 2, 3}, hdf5::Shape{6, 16, 16, 13}}) {
    const std::string text = fmt::format(
        "{}: /train/images is [6, {}, {}, {}], which reads as {} channels of {} x {} pixels", path,
        shape[1], shape[2], shape[3], shape[1], shape[2], shape[3]);
    write(path, {.shape = shape, .channels = shape[1]});
    const std::string message = failure(ExitCode::bad_data, [&] { const Dataset dataset(path); });
    EXPECT_THAT(message, HasSubstr(text));
    EXPECT_THAT(message, HasSubstr("axes of the file to \"n h w c\" or \"n c h w\""));
    write(path, {.shape = shape, .axes = "n c h w", .channels = shape[1]});
    EXPECT_EQ(Dataset(path).shape(),
              (SampleShape{static_cast<int>(shape[1]), static_cast<int>(shape[2]),
                           static_cast<int>(shape[3])}));
    write(path, {.shape = shape, .axes = "n h w c", .channels = shape[3]});
    EXPECT_EQ(Dataset(path).shape(),
              (SampleShape{static_cast<int>(shape[3]), static_cast<int>(shape[1]),
                           static_cast<int>(shape[2])}));
  }
}

TEST(Axes, ChannelsComeFirstUnlessToldOtherwise) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  // Colours, grey, features, maps of many channels, strips.
  for (const hdf5::Shape& shape :
       {hdf5::Shape{3, 3, 32, 32}, hdf5::Shape{3, 1, 28, 28}, hdf5::Shape{3, 4, 5, 7},
        hdf5::Shape{3, 64, 1, 1}, hdf5::Shape{3, 1, 1, 4}, hdf5::Shape{3, 16, 4, 4},
        hdf5::Shape{3, 2, 3, 4}, hdf5::Shape{3, 3, 32, 3}, hdf5::Shape{3, 13, 16, 16},
        hdf5::Shape{3, 8, 8, 16}}) {
    write(path, {.shape = shape, .channels = shape[1]});
    EXPECT_EQ(Dataset(path).shape(),
              (SampleShape{static_cast<int>(shape[1]), static_cast<int>(shape[2]),
                           static_cast<int>(shape[3])}));
  }
}

TEST(Axes, AreWrittenInAnyUsualWay) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  for (const std::string axes : {"nhwc", "NHWC", "n, h, w, c"}) {
    write(path, {.shape = {6, 8, 8, 3}, .axes = axes, .channels = 3});
    EXPECT_EQ(Dataset(path).shape(), (SampleShape{3, 8, 8}));
  }
  write(path, {.shape = {6, 8, 8, 3}, .channels = 3});
  {
    const hdf5::Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    const hdf5::Handle type(H5Tcopy(H5T_C_S1), H5Tclose);  // a letter
    const hsize_t four = 4;
    const hdf5::Handle space(H5Screate_simple(1, &four, nullptr), H5Sclose);
    const hdf5::Handle attribute(
        H5Acreate2(file.get(), "axes", type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
        H5Aclose);
    ASSERT_GE(H5Awrite(attribute.get(), type.get(), "nhwc"), 0);
  }
  EXPECT_EQ(Dataset(path).shape(), (SampleShape{3, 8, 8}));
}

TEST(Axes, OthersAreRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  for (const std::string axes : {"n w h c", "h w c", "channels_last", " "}) {
    write(path, {.shape = {6, 8, 8, 3}, .axes = axes, .channels = 3});
    EXPECT_THAT(
        failure(ExitCode::bad_data, [&] { const Dataset dataset(path); }),
        HasSubstr("a.h5: attribute axes is '" + axes + "', it must be 'n c h w' or 'n h w c'"));
  }
  write(path, {.shape = {6, 3, 8, 8}, .channels = 3});
  {
    const hdf5::Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    const hdf5::Handle images(H5Dopen2(file.get(), "/test/images", H5P_DEFAULT), H5Dclose);
    const hdf5::Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    const hdf5::Handle attribute(
        H5Acreate2(images.get(), "axes", H5T_NATIVE_INT, space.get(), H5P_DEFAULT, H5P_DEFAULT),
        H5Aclose);
  }
  EXPECT_THAT(failure(ExitCode::bad_data, [&] { const Dataset dataset(path); }),
              HasSubstr("/test/images has an attribute axes; it belongs to the file, /"));
}

TEST(Axes, AreAskedForWhereStatisticsAreOfAnotherAxis) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  write(path, {.shape = {6, 20, 30, 13}, .channels = 13});
  EXPECT_THAT(failure(ExitCode::bad_data, [&] { const Dataset dataset(path); }),
              HasSubstr("attribute mean has 13 values for 20 channels of 30 x 13 pixels; if "));
  write(path, {.shape = {6, 3, 20, 30}, .axes = "n h w c", .channels = 3});
  EXPECT_THAT(failure(ExitCode::bad_data, [&] { const Dataset dataset(path); }),
              HasSubstr("attribute mean has 3 values for 30 channels of 3 x 20 pixels; "));
}

TEST(Axes, OtherOrdersOfTheSameBytesAreOtherData) {
  const TemporaryFolder folder;
  write(folder / "first.h5", {.shape = {6, 5, 5, 5}, .axes = "n c h w", .channels = 5});
  write(folder / "last.h5", {.shape = {6, 5, 5, 5}, .axes = "nhwc", .channels = 5});
  write(folder / "unstated.h5", {.shape = {6, 5, 5, 5}, .channels = 5});
  const std::uint64_t unstated = Dataset(folder / "unstated.h5").fingerprint();
  EXPECT_EQ(Dataset(folder / "first.h5").fingerprint(), unstated);
  EXPECT_NE(Dataset(folder / "last.h5").fingerprint(), unstated);
}

/// How images are shown, and their channels.
struct ShownCase {
  int channels = 0;
  AugmentConfig augment;
};

class BothOrders : public ::testing::TestWithParam<ShownCase> {};

// Training and evaluation read the same, as stored, cropped by the device or resized by readers.
TEST_P(BothOrders, GiveTheSameImages) {
  const TemporaryFolder folder;
  const auto channels = static_cast<hsize_t>(GetParam().channels);
  write(folder / "first.h5",
        {.shape = {9, channels, 10, 14}, .axes = "n c h w", .channels = channels});
  const Dataset first(folder / "first.h5");
  for (const hdf5::Layout layout : {hdf5::Layout::contiguous, hdf5::Layout::checked}) {
    write(folder / "last.h5", {.shape = {9, 10, 14, channels},
                               .axes = "n h w c",
                               .channels = channels,
                               .layout = layout});
    const Dataset last(folder / "last.h5");
    const AugmentConfig& augment = GetParam().augment;
    const ImageSource first_source(first, augment, 5);
    const ImageSource last_source(last, augment, 5);
    const SourceSpec& spec = first_source.spec();
    EXPECT_EQ(last_source.spec().input, spec.input);
    EXPECT_EQ(last_source.spec().shown, spec.shown);
    EXPECT_GE(last_source.spec().reader_bytes, 10 * 14 * GetParam().channels);
    const std::unique_ptr<SourceReader> reads_first = first_source.reader({});
    const std::unique_ptr<SourceReader> reads_last = last_source.reader({});
    std::vector<std::byte> wanted(static_cast<std::size_t>(spec.input.bytes()));
    std::vector<std::byte> found(wanted.size());
    for (const Pass pass : {Pass::training, Pass::evaluation})
      for (std::int64_t k = 0; k < 9; ++k) {
        const ShownPart part = reads_first->read_input(pass, 2, k, wanted);
        const ShownPart same = reads_last->read_input(pass, 2, k, found);
        EXPECT_EQ(found, wanted) << "sample " << k;
        EXPECT_EQ((std::array{part.top, part.left, part.mirrored}),
                  (std::array{same.top, same.left, same.mirrored}));
      }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Axes, BothOrders,
    ::testing::Values(ShownCase{3, {}}, ShownCase{1, {}}, ShownCase{13, {}},
                      ShownCase{3,
                                {.size = 8, .crop = CropKind::random, .padding = 2, .flip = 0.5}},
                      ShownCase{3, {.size = 6, .resize = 7, .flip = 0.5}},
                      ShownCase{3, {.size = 7, .crop = CropKind::resized, .flip = 0.5}}));

}  // namespace
}  // namespace carousel
