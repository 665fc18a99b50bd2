// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Pictures are decoded to what Pillow makes of them, and what is none is refused with a reason;
// make_picture_fixtures.py drew them.

#include "core/data/picture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/check.hpp"
#include "core/base/hdf5.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

using ::testing::HasSubstr;

hdf5::File pictures() {
  return hdf5::File::open(CAROUSEL_SOURCE "/tests/reference/pictures.h5");
}

std::vector<std::byte> bytes_of(const hdf5::File& file, const std::string& name) {
  const hdf5::DatasetInfo info = file.info(name + "/file");
  if (info.shape == hdf5::Shape{0}) return {};
  const auto numbers = file.read<std::uint8_t>(name + "/file");
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

class Pictures : public ::testing::TestWithParam<std::string> {};

TEST_P(Pictures, AreThoseOfPillow) {
  const hdf5::File file = pictures();
  const std::string& name = GetParam();
  const std::vector<std::byte> bytes = bytes_of(file, name);
  Picture picture;
  picture.pixels.assign(100'000, 7);  // of an earlier, larger one
  if (file.has(name, "reason")) {
    EXPECT_THAT(testing::failure(ExitCode::bad_data, [&] { decode_picture(bytes, picture); }),
                HasSubstr(file.string(name, "reason")));
    return;
  }
  decode_picture(bytes, picture);
  const hdf5::Shape shape = file.info(name + "/pixels").shape;
  EXPECT_EQ(hdf5::Shape(shape), (hdf5::Shape{static_cast<hsize_t>(picture.size.height),
                                             static_cast<hsize_t>(picture.size.width), 3}));
  EXPECT_EQ(picture.pixels, file.read<std::uint8_t>(name + "/pixels"));
}

std::string name_of(const ::testing::TestParamInfo<std::string>& instance) {
  return instance.param;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Pictures, ::testing::ValuesIn(pictures().children("/")),
                         name_of);

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

/// Where a marker or a name is in a file, behind the beginning of it.
std::ptrdiff_t place_of(const std::vector<std::byte>& file, std::initializer_list<int> wanted) {
  const std::vector<std::byte> bytes = bytes_of(wanted);
  return std::search(file.begin(), file.end(), bytes.begin(), bytes.end()) - file.begin();
}

void put(std::vector<std::byte>& file, std::ptrdiff_t at, std::initializer_list<int> values) {
  const std::vector<std::byte> bytes = bytes_of(values);
  ASSERT_LE(at + std::ssize(bytes), std::ssize(file));
  std::copy(bytes.begin(), bytes.end(), file.begin() + at);
}

constexpr std::initializer_list<int> scan = {0xff, 0xda};  // its marker

/// The parameters of a scan, Ss, Se, Ah and Al, are the last three bytes of its header.
std::ptrdiff_t scan_parameters(const std::vector<std::byte>& file) {
  const std::ptrdiff_t at = place_of(file, scan);
  return at + 2 + static_cast<int>(file[static_cast<std::size_t>(at) + 3]) - 3;
}

/// Puts an Adobe marker with an unknown transform in the place of that of JFIF.
void mark_as_adobe(std::vector<std::byte>& file) {
  const std::ptrdiff_t at = place_of(file, {0xff, 0xe0});
  const auto length = static_cast<int>(file[static_cast<std::size_t>(at) + 3]);
  file.erase(file.begin() + at, file.begin() + at + 2 + length);
  const auto adobe = bytes_of({0xff, 0xee, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, 3});
  file.insert(file.begin() + 2, adobe.begin(), adobe.end());
}

// libjpeg warns of headers that some cameras and programs write otherwise than the standard has it,
// and decodes every pixel, as Pillow does.
TEST(Pictures, OddHeadersCostNoPixel) {
  const hdf5::File file = pictures();
  using Change = void (*)(std::vector<std::byte>&);
  const std::initializer_list<Change> changes = {
      // Samsung's cameras, of which a sequential file has no 0, 63, 0
      [](std::vector<std::byte>& bytes) {
        put(bytes, scan_parameters(bytes), {0, 0, 0});
      },
      [](std::vector<std::byte>& bytes) {
        put(bytes, scan_parameters(bytes), {1, 62, 0});
      },
      [](std::vector<std::byte>& bytes) {
        put(bytes, scan_parameters(bytes), {0, 63, 0x11});
      },
      [](std::vector<std::byte>& bytes) {  // version 2 of JFIF, after its name
        put(bytes, place_of(bytes, {'J', 'F', 'I', 'F', 0}) + 5, {2});
      },
      mark_as_adobe,
      [](std::vector<std::byte>& bytes) {  // all at once
        put(bytes, place_of(bytes, {'J', 'F', 'I', 'F', 0}) + 5, {2});
        put(bytes, scan_parameters(bytes), {0, 0, 0});
        const auto stray = bytes_of({1, 2, 3});
        bytes.insert(bytes.begin() + place_of(bytes, {0xff, 0xdb}), stray.begin(), stray.end());
      }};
  for (const std::string name : {"jpeg_420", "jpeg_422", "jpeg_444"}) {
    const auto pixels = file.read<std::uint8_t>(name + "/pixels");
    int number = 0;
    for (const Change change : changes) {
      std::vector<std::byte> bytes = bytes_of(file, name);
      change(bytes);
      ASSERT_NE(bytes, bytes_of(file, name));
      Picture picture;
      ASSERT_NO_THROW(decode_picture(bytes, picture)) << name << ", change " << number;
      EXPECT_EQ(picture.pixels, pixels) << name << ", change " << number;
      ++number;
    }
  }
}

// What is missing or makes no sense costs pixels, whatever else is odd.
TEST(Pictures, MissingDataOfOddHeadersAreRefused) {
  const hdf5::File file = pictures();
  std::vector<std::byte> odd = bytes_of(file, "jpeg_420");
  put(odd, scan_parameters(odd), {0, 0, 0});
  const std::ptrdiff_t data = scan_parameters(odd) + 3;
  const auto refuses = [](const std::vector<std::byte>& bytes) {
    Picture picture;
    return testing::failure(ExitCode::bad_data, [&] { decode_picture(bytes, picture); });
  };

  std::vector<std::byte> cut(odd.begin(), odd.begin() + (data + std::ssize(odd)) / 2);
  EXPECT_THAT(refuses(cut), HasSubstr("Premature end of JPEG file"));
  std::vector<std::byte> short_data = cut;
  const auto end = bytes_of({0xff, 0xd9});
  short_data.insert(short_data.end(), end.begin(), end.end());
  EXPECT_THAT(refuses(short_data), HasSubstr("premature end of data segment"));
  // An interval of restarts of two blocks, of which the data have none.
  std::vector<std::byte> unmarked = odd;
  const auto interval = bytes_of({0xff, 0xdd, 0, 4, 0, 2});
  unmarked.insert(unmarked.begin() + place_of(unmarked, scan), interval.begin(), interval.end());
  EXPECT_THAT(refuses(unmarked), HasSubstr("damaged JPEG: Corrupt JPEG data"));
}

// Whoever cuts or changes a file anywhere gets pixels or a reason, and nothing worse.
TEST(DamagedPictures, AreRefusedOrDecoded) {
  const hdf5::File file = pictures();
  int refused = 0;
  for (const std::string& name : file.children("/")) {
    const std::vector<std::byte> whole = bytes_of(file, name);
    for (std::size_t k = 0; k < whole.size(); k += 1 + whole.size() / 97) {
      std::vector<std::byte> changed = whole;
      changed[k] ^= static_cast<std::byte>(1 + k % 255);
      const std::span<const std::byte> cut = std::span(whole).first(k);
      for (const std::span<const std::byte> bytes : {std::span<const std::byte>(changed), cut}) {
        Picture picture;
        try {
          decode_picture(bytes, picture);
          EXPECT_EQ(std::ssize(picture.pixels),
                    std::int64_t{picture.size.height} * picture.size.width * 3);
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ExitCode::bad_data) << error.what();
          ++refused;
        }
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace carousel
