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
