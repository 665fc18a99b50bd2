// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Arrays of users' files, of every type of numbers and many orders of axes, against the numbers
// that were written.

#include "core/data/data_array.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "tests/core/support.hpp"

namespace carousel {
namespace {

using testing::failure;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Writes numbers 0, 1, 2, ... less `below` as HDF5 converts them to a type.
void write_numbers(const std::string& path, hid_t type, const std::vector<hsize_t>& shape,
                   double below = 0, hid_t kept = H5P_DEFAULT) {
  const hsize_t count =
      std::accumulate(shape.begin(), shape.end(), hsize_t{1}, std::multiplies<>());
  std::vector<double> values(count);
  std::iota(values.begin(), values.end(), -below);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
  const hid_t set = H5Dcreate2(file, "/a", type, space, H5P_DEFAULT, kept, H5P_DEFAULT);
  ASSERT_GE(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  H5Dclose(set);
  H5Sclose(space);
  H5Fclose(file);
}

/// IEEE 754's binary16, which HDF5 1.10 has no name for.
hid_t half(H5T_order_t order) {
  const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(type, 15, 10, 5, 0, 10);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, 15);
  H5Tset_order(type, order);
  return type;
}

class DataArrayTest : public ::testing::Test {
 protected:
  [[nodiscard]] DataArray open(const std::string& axes) const {
    const hdf5::File file = hdf5::File::open(path_);
    return {file, "/a", read_axes("data.input.axes", axes, "/a", file.info("/a").shape)};
  }
  template <class Number>
  [[nodiscard]] std::vector<Number> read(const DataArray& array, const FramePlace& place,
                                         const FramePart& part) const {
    const DataArray* const one = &array;
    ArrayBuffer buffer(ArrayRoom::of(std::span(&one, 1)));
    std::vector<Number> numbers(static_cast<std::size_t>(array.shape().channels) * part.pixels());
    array.read(Descriptor::open(path_), place, part, buffer, std::span<Number>(numbers));
    return numbers;
  }

  const testing::TemporaryFolder folder_;
  const std::string path_ = folder_ / "a.h5";
};

TEST_F(DataArrayTest, ReadsEveryTypeOfNumbers) {
  const std::vector<hid_t> types = {
      H5T_STD_I8LE,   H5T_STD_U8BE,   H5T_STD_I16LE,  H5T_STD_I16BE,      H5T_STD_U16LE,
      H5T_STD_U16BE,  H5T_STD_I32LE,  H5T_STD_I32BE,  H5T_STD_U32LE,      H5T_STD_U32BE,
      H5T_STD_I64LE,  H5T_STD_I64BE,  H5T_STD_U64LE,  H5T_STD_U64BE,      H5T_IEEE_F32LE,
      H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_IEEE_F64BE, half(H5T_ORDER_LE), half(H5T_ORDER_BE)};
  for (const hid_t type : types) {
    const bool is_float = H5Tget_class(type) == H5T_FLOAT;
    const bool is_signed = is_float || H5Tget_sign(type) == H5T_SGN_2;
    const double below = is_signed ? 17 : 0;
    SCOPED_TRACE(fmt::format("{} bytes, float: {}, signed: {}, order {}", H5Tget_size(type),
                             is_float, is_signed, static_cast<int>(H5Tget_order(type))));
    write_numbers(path_, type, {4, 10}, below);
    const DataArray array = open("");
    for (int n = 0; n < 4; ++n) {
      std::vector<double> expected(10);
      std::iota(expected.begin(), expected.end(), 10 * n - below);
      EXPECT_EQ(read<double>(array, {n, 0}, {0, 0, 1, 1}), expected);
      const std::vector<float> floats(expected.begin(), expected.end());
      EXPECT_EQ(read<float>(array, {n, 0}, {0, 0, 1, 1}), floats);
      if (is_float) continue;
      const std::vector<std::int64_t> whole(expected.begin(), expected.end());
      EXPECT_EQ(read<std::int64_t>(array, {n, 0}, {0, 0, 1, 1}), whole);
    }
  }
}

TEST_F(DataArrayTest, ReadsHalfNumbersOfAllSizes) {
  const std::vector<std::pair<std::uint16_t, double>> known = {
      {0x0000, 0.0},     {0x3c00, 1.0},     {0xc000, -2.0},      {0x7bff, 65504.0},
      {0x0400, 0x1p-14}, {0x0001, 0x1p-24}, {0x03ff, 0x3ffp-24}, {0x3555, 0.333251953125},
      {0x8001, -0x1p-24}};
  for (const auto& [bits, value] : known) {
    double read = -1;
    decode_numbers<double>({NumberKind::floating, 2, false},
                           reinterpret_cast<const std::byte*>(&bits), 2, std::span(&read, 1));
    EXPECT_EQ(read, value) << bits;
  }
}

/// The number at given places of all axes, in the order of the array.
std::int64_t number_at(const std::vector<hsize_t>& shape, const std::vector<std::int64_t>& at) {
  std::int64_t number = 0;
  for (std::size_t k = 0; k < shape.size(); ++k)
    number = number * static_cast<std::int64_t>(shape[k]) + at[k];
  return number;
}

/// How a chunked array is kept.
hid_t in_chunks(const std::vector<hsize_t>& extents, const std::string& filters) {
  const hid_t kept = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(kept, static_cast<int>(extents.size()), extents.data());
  for (const char filter : filters) {
    if (filter == 's') H5Pset_shuffle(kept);
    if (filter == 'd') H5Pset_deflate(kept, 4);
    if (filter == 'f') H5Pset_fletcher32(kept);
  }
  return kept;
}

/// In one piece, or in chunks with filters.
class DataArrayLayouts : public DataArrayTest, public ::testing::WithParamInterface<std::string> {
 protected:
  /// Of sample 2 at time 1, against the numbers that were written; `order` has the axes' letters.
  void check_part(const DataArray& array, const std::string& order,
                  const std::vector<hsize_t>& shape, const FramePart& part) const {
    const std::vector<double> numbers = read<double>(array, {2, 1}, part);
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      auto left = static_cast<int>(k);
      const auto next = [&](int extent) { return std::exchange(left, left / extent) % extent; };
      const int x = next(part.width);
      const int y = next(part.height);
      const int z = next(part.depth);
      std::vector<std::int64_t> at;
      for (const char letter : order)
        at.push_back(letter == 'n'   ? 2
                     : letter == 't' ? 1
                     : letter == 'c' ? left
                     : letter == 'z' ? z
                     : letter == 'y' ? part.top + y
                                     : part.left + (part.mirrored ? part.width - 1 - x : x));
      ASSERT_EQ(numbers[k], number_at(shape, at)) << fmt::format("{}", fmt::join(at, " "));
      ASSERT_EQ(array.place_of({2, 1}, part, static_cast<std::int64_t>(k)),
                fmt::format("/a[{}]", fmt::join(at, ", ")));
    }
  }
};

TEST_P(DataArrayLayouts, ReadAnyOrderOfAxes) {
  const std::string letters = "ntczyx";
  const std::vector<hsize_t> extents = {3, 2, 4, 2, 5, 6};
  for (const std::string axes_of_space : {"yx", "zyx"}) {
    const int depth = axes_of_space == "zyx" ? 2 : 1;
    std::string order = "cnt" + axes_of_space;
    std::ranges::sort(order);  // the first permutation
    do {
      std::string axes;
      std::vector<hsize_t> shape;
      for (const char letter : order) {
        axes += axes.empty() ? std::string(1, letter) : std::string(" ") + letter;
        shape.push_back(extents[letters.find(letter)]);
      }
      SCOPED_TRACE(axes);
      hid_t kept = H5P_DEFAULT;
      if (GetParam() != "none") {
        std::vector<hsize_t> chunks;
        for (const char letter : order)
          chunks.push_back(letter == 't' ? 1 : letter == 'n' || letter == 'z' ? 2 : 3);
        kept = in_chunks(chunks, GetParam());
      }
      write_numbers(path_, H5T_STD_I32LE, shape, 0, kept);
      const DataArray array = open(axes);
      ASSERT_EQ(array.shape(), (SampleShape{4, 5, 6, depth}));
      for (const FramePart& part :
           {FramePart{0, 0, 5, 6, false, depth}, FramePart{1, 2, 3, 4, true, depth}})
        check_part(array, order, shape, part);
    } while (std::ranges::next_permutation(order).found);
  }
}

INSTANTIATE_TEST_SUITE_P(Kept, DataArrayLayouts,
                         ::testing::Values("none", "c", "d", "sd", "sdf", "f", "fsd"),
                         [](const auto& instance) { return instance.param; });

TEST_F(DataArrayTest, DamagedChunksAreRefused) {
  for (const char* filters : {"f", "sd", "sdf"}) {
    SCOPED_TRACE(filters);
    write_numbers(path_, H5T_STD_I32LE, {4, 50}, 0, in_chunks({2, 50}, filters));
    const DataArray array = open("");
    std::int64_t middle = 0;
    array.for_each_run(
        [&](std::int64_t offset, std::int64_t bytes) { middle = offset + bytes / 2; });
    std::vector<std::byte> byte(1);
    Descriptor file = Descriptor::update(path_);
    file.read_at(middle, byte);
    byte[0] ^= std::byte{0x10};
    file.write_at(middle, byte);
    EXPECT_EQ(read<double>(array, {1, 0}, {0, 0, 1, 1}).back(), 99);
    EXPECT_THAT(failure(ExitCode::bad_data,
                        [&] {
                          static_cast<void>(read<double>(array, {3, 0}, {0, 0, 1, 1}));
                        }),
                HasSubstr("chunk 2 of 2 of /a is damaged"));
  }
}

TEST_F(DataArrayTest, WhatNeedsAPlugInIsRefused) {
  const hid_t kept = in_chunks({2, 50}, "");
  const unsigned options[2] = {H5_SZIP_NN_OPTION_MASK, 16};   // NOLINT(modernize-avoid-c-arrays)
  H5Pset_filter(kept, 32000, H5Z_FLAG_OPTIONAL, 2, options);  // LZF, which is not there
  write_numbers(path_, H5T_STD_I32LE, {4, 50}, 0, kept);
  EXPECT_THAT(failure(ExitCode::bad_data, [this] { static_cast<void>(open("")); }),
              HasSubstr("which needs a plug-in; pack it by deflate: h5repack -f /a:GZIP=4"));
}

TEST_F(DataArrayTest, OneAxisOfSpaceGoesDown) {
  write_numbers(path_, H5T_IEEE_F32LE, {3, 7});
  const DataArray array = open("n x");
  EXPECT_EQ(array.shape(), (SampleShape{1, 7, 1}));
  EXPECT_EQ(read<double>(array, {1, 0}, {2, 0, 3, 1}), (std::vector<double>{9, 10, 11}));
  EXPECT_EQ(read<double>(array, {1, 0}, {2, 0, 3, 1, true}), (std::vector<double>{11, 10, 9}));
  EXPECT_EQ(array.place_of({1, 0}, {2, 0, 3, 1, true}, 0), "/a[1, 4]");
}

TEST_F(DataArrayTest, RefusesAxesThatDoNotFit) {
  write_numbers(path_, H5T_IEEE_F32LE, {3, 7, 2});
  const auto refusal = [this](const std::string& axes) {
    return failure(ExitCode::usage, [&] { static_cast<void>(open(axes)); });
  };
  EXPECT_THAT(refusal(""), StartsWith("data.input.axes is missing: /a has 3 axes (3 x 7 x 2)"));
  EXPECT_THAT(refusal("n c"), HasSubstr("names 2 axes, and /a has 3 (3 x 7 x 2)"));
  for (const char* axes : {"n c c", "n c w", "ncx", "n, c, x", " "})
    EXPECT_THAT(refusal(axes), HasSubstr("must name each axis once")) << axes;
  EXPECT_THAT(refusal("n z x"), HasSubstr("names z; volumes have y and x as well"));
}

TEST_F(DataArrayTest, RefusesWhatHoldsNoNumbers) {
  write_numbers(path_, H5T_NATIVE_LDOUBLE, {3, 7});
  EXPECT_THAT(failure(ExitCode::bad_data, [this] { static_cast<void>(open("")); }),
              HasSubstr("/a holds float128; integers, float16, float32 and float64 are read"));
}

}  // namespace
}  // namespace carousel
