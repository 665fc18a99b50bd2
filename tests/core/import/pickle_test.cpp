// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Pickles as Python 2 and 3 wrote them; whoever damages one gets a reason.

#include "core/import/pickle.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "core/base/random.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

using namespace std::string_view_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// {"labels": [6, 300, -2], "data": array([[1, 2], [3, 255]], uint8), "names": ("a",), "none": None}
// by Python 2, whose texts are bytes, protocol 2.
constexpr std::string_view python2 =
    "\x80\x02}q\x01(U\x06labelsq\x02]q\x03(K\x06M\x2c\x01J\xfe\xff\xff\xff"
    "eU\x04"
    "dataq\x04"
    "cnumpy.core.multiarray\n_reconstruct\nq\x05"
    "cnumpy\nndarray\nq\x06K\x00\x85q\x07U\x01"
    "b\x87Rq\x08(K\x01K\x02K\x02\x86"
    "cnumpy\ndtype\nq\x09U\x02u1K\x00K\x01\x87Rq\x0a(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff"
    "\xffK\x00tb\x89T\x04\x00\x00\x00\x01\x02\x03\xfftbU\x05namesU\x01"
    "a\x85U\x04noneNu."sv;

// The same data by Python 3, which writes bytes as text in latin1, and a list seen twice.
constexpr std::string_view python3 =
    "\x80\x02}q\x00(X\x04\x00\x00\x00"
    "dataq\x01"
    "c_codecs\nencode\nq\x02X\x06\x00\x00\x00\x01\x02\x03\xc3\xbf\x41q\x03X\x06\x00\x00\x00latin1q"
    "\x04\x86q\x05Rq\x06X\x01\x00\x00\x00"
    "aq\x07]q\x08K\x01"
    "aX\x01\x00\x00\x00"
    "bq\x09h\x08u."sv;

Pickled read(std::string_view text) {
  return read_pickle(std::as_bytes(std::span(text)));
}

TEST(Pickle, OfPython2) {
  const Pickled pickled = read(python2);
  ASSERT_EQ(pickled.kind, Pickled::Kind::dictionary);
  const auto& labels = pickled.entries.at("labels")->items;
  ASSERT_EQ(labels.size(), 3);
  EXPECT_EQ(labels[0]->integer, 6);
  EXPECT_EQ(labels[1]->integer, 300);
  EXPECT_EQ(labels[2]->integer, -2);
  EXPECT_THAT(bytes_of_array(*pickled.entries.at("data")), ElementsAre(1, 2, 3, 255));
  EXPECT_EQ(pickled.entries.at("names")->items.front()->text, "a");
  EXPECT_EQ(pickled.entries.at("none")->kind, Pickled::Kind::none);
}

TEST(Pickle, OfPython3) {
  const Pickled pickled = read(python3);
  EXPECT_EQ(pickled.entries.at("data")->text, "\x01\x02\x03\xff\x41");
  EXPECT_EQ(pickled.entries.at("a"), pickled.entries.at("b"));
  EXPECT_THAT(
      testing::failure(ExitCode::bad_data, [&] { (void)bytes_of_array(*pickled.entries.at("a")); }),
      HasSubstr("no array of numpy"));
}

TEST(Pickle, ArraysOfOtherTypesAreRefused) {
  std::string floats(python2);
  floats.replace(floats.find("u1K"), 2, "f4");
  const Pickled pickled = read(floats);
  EXPECT_THAT(testing::failure(ExitCode::bad_data,
                               [&] { (void)bytes_of_array(*pickled.entries.at("data")); }),
              HasSubstr("type f4, not u1"));
}

TEST(Pickle, SaysWhatItCannotRead) {
  const auto refusal = [](std::string_view text) {
    return testing::failure(ExitCode::bad_data, [&] { (void)read(text); });
  };
  EXPECT_THAT(refusal(""sv), HasSubstr("ends too early"));
  EXPECT_THAT(refusal(python2.substr(0, 60)), HasSubstr("ends too early"));
  EXPECT_THAT(refusal("\x80\x05N."sv), HasSubstr("protocol 5"));
  EXPECT_THAT(refusal("I1\n."sv), HasSubstr("0x49"));
  EXPECT_THAT(refusal("."sv), HasSubstr("not there"));
  EXPECT_THAT(refusal("NK\x01"
                      "a."sv),
              HasSubstr("no list"));
  EXPECT_THAT(refusal(std::string(2000, ']') + "."), HasSubstr("too many"));
}

TEST(Pickle, DamageIsRefusedOrRead) {
  for (const std::string_view whole : {python2, python3}) {
    for (std::uint64_t k = 0; k < 5000; ++k) {
      std::string changed(whole);
      for (std::uint64_t i = 0; i <= k % 3; ++i) {
        const auto draw = [&](std::uint64_t below) {
          return static_cast<std::size_t>(static_cast<double>(below) *
                                          uniform01(random_key(k, "damage"), below, i));
        };
        changed[draw(changed.size())] = static_cast<char>(draw(256));
      }
      try {
        const Pickled pickled = read(changed);
        for (const auto& [name, value] : pickled.entries) (void)bytes_of_array(*value);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::bad_data) << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace carousel
