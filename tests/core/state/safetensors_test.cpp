// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Files of safetensors: what is written is read, and nothing that is broken is.

#include "core/state/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "core/base/check.hpp"
#include "core/base/random.hpp"

namespace carousel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Bytes = std::vector<std::byte>;

/// A file of that header and so many bytes of numbers.
Bytes file_of(const std::string& header, std::size_t numbers) {
  const std::uint64_t length = header.size();
  Bytes image(sizeof(length) + header.size() + numbers);
  std::memcpy(image.data(), &length, sizeof(length));
  std::memcpy(image.data() + sizeof(length), header.data(), header.size());
  for (std::size_t k = 0; k < numbers; ++k)
    image[sizeof(length) + header.size() + k] = static_cast<std::byte>(k);
  return image;
}

/// The line that refuses a file; empty where it is read.
std::string refusal_of(const Bytes& image) {
  try {
    static_cast<void>(read_safetensors("w.safetensors", image));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data);
    return error.what();
  }
  return "";
}

TEST(Safetensors, AreReadAsTheyAreWritten) {
  const std::vector<real> weight = {1, -2, real(0.1), 4, 5, 6};
  const std::vector<real> bias = {7};
  const std::vector<WrittenTensor> written = {{"b.weight", {2, 3}, weight}, {"a.bias", {1}, bias}};
  const Bytes image = write_safetensors(written, {{"format", "pt"}});
  EXPECT_TRUE(is_safetensors(image));
  const SafeTensors read = read_safetensors("w.safetensors", image);
  ASSERT_EQ(read.tensors.size(), 2U);
  EXPECT_EQ(read.tensors[0].name, "b.weight");
  EXPECT_THAT(read.tensors[0].shape, ElementsAre(2, 3));
  EXPECT_EQ(read.tensors[0].type, sizeof(real) == 8 ? "F64" : "F32");
  EXPECT_EQ(read.tensors[0].values(), weight);
  EXPECT_EQ(read.tensors[1].values(), bias);
  EXPECT_THAT(read.metadata, ElementsAre(std::pair("format", "pt")));
  // Where a reader maps the file, numbers lie as their type wants it.
  EXPECT_EQ((read.tensors[0].bytes.data() - image.data()) % 8, 0);
}

TEST(Safetensors, HaveNumbersOfAllLengths) {
  Bytes image = file_of(R"({"h":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},)"
                        R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[4,8]},)"
                        R"("d":{"dtype":"F64","shape":[],"data_offsets":[8,16]},)"
                        R"("i":{"dtype":"I64","shape":[1],"data_offsets":[16,24]},)"
                        R"("e":{"dtype":"F32","shape":[0,7],"data_offsets":[24,24]}})",
                        24);
  const std::array<std::uint16_t, 4> halves = {0x3E00, 0xC000, 0x3FC0, 0xC000};  // 1.5, -2 twice
  const double number = -0.25;
  std::byte* const numbers = image.data() + image.size() - 24;
  std::memcpy(numbers, halves.data(), 8);
  std::memcpy(numbers + 8, &number, 8);
  const SafeTensors read = read_safetensors("w.safetensors", image);
  ASSERT_EQ(read.tensors.size(), 5U);
  EXPECT_THAT(read.tensors[0].values(), ElementsAre(real(1.5), real(-2)));
  EXPECT_THAT(read.tensors[1].values(), ElementsAre(real(1.5), real(-2)));
  EXPECT_THAT(read.tensors[2].values(), ElementsAre(real(-0.25)));
  EXPECT_FALSE(read.tensors[3].has_reals());
  EXPECT_TRUE(read.tensors[4].values().empty());
}

TEST(Safetensors, AreRefusedWhereLengthsDoNotFit) {
  const auto of = [](const std::string& tensor, std::size_t numbers = 8) {
    return refusal_of(file_of("{\"a\":" + tensor + "}", numbers));
  };
  EXPECT_EQ(of(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"), "");
  EXPECT_THAT(of(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})", 7), HasSubstr("cut off"));
  EXPECT_THAT(of(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})", 9), HasSubstr("goes on"));
  EXPECT_THAT(of(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), HasSubstr("cut off"));
  EXPECT_THAT(of(R"({"dtype":"F32","shape":[1],"data_offsets":[0,8]})"), HasSubstr("ask for 4"));
  EXPECT_THAT(of(R"({"dtype":"F32","shape":[1099511627776,1099511627776],"data_offsets":[0,8]})"),
              HasSubstr("more numbers than the file"));
  EXPECT_THAT(of(R"({"dtype":"F32","shape":[1e300],"data_offsets":[0,8]})"), HasSubstr("2^40"));
  EXPECT_THAT(of(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), HasSubstr("2^40"));
  EXPECT_THAT(of(R"({"dtype":"F33","shape":[2],"data_offsets":[0,8]})"), HasSubstr("nobody knows"));
  EXPECT_THAT(of(R"({"dtype":"F32","shape":[2]})"), HasSubstr("data_offsets"));
  EXPECT_THAT(of(R"({"dtype":"F32","shape":[[2]],"data_offsets":[0,8]})"), HasSubstr("deeply"));
  const std::string one = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  const std::string two = R"("b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  EXPECT_THAT(refusal_of(file_of("{" + one + "," + two + "}", 8)), HasSubstr("right behind"));
  EXPECT_THAT(refusal_of(file_of("{" + one + "," + one + "}", 4)), HasSubstr("twice"));
  EXPECT_THAT(refusal_of(file_of("{" + one, 4)), HasSubstr("no JSON"));
  EXPECT_THAT(refusal_of(file_of("[" + std::string(1000, '[') + "]", 0)), HasSubstr("deeply"));
  EXPECT_THAT(refusal_of(file_of("7", 0)), HasSubstr("no table"));
  EXPECT_THAT(refusal_of(Bytes(5)), HasSubstr("shorter"));
  EXPECT_THAT(refusal_of(Bytes(100, std::byte{0xFF})), HasSubstr("cut off"));
}

// Whatever byte is another one, or missing: the file is refused or all of it lies within its bytes.
TEST(Safetensors, MutationsAreRefusedOrHarmless) {
  const std::vector<real> numbers(6, real(0.5));
  const std::vector<WrittenTensor> written = {{"layer.weight", {2, 3}, numbers},
                                              {"layer.bias", {3}, std::span(numbers).first(3)}};
  const Bytes whole = write_safetensors(written, {{"format", "pt"}});
  const std::uint64_t key = random_key(1, "mutations");
  int refused = 0;
  constexpr int mutations = 2000;
  for (std::uint64_t k = 0; k < mutations; ++k) {
    Bytes image = whole;
    const auto random = [&](std::uint64_t stream, std::size_t below) {
      return static_cast<std::size_t>(uniform01(key, stream, k) * static_cast<double>(below));
    };
    if (k % 4 == 0)
      image.resize(random(0, image.size()));
    else
      for (std::size_t n = 0; n <= k % 3; ++n)
        image[random(2 * n, image.size() - numbers.size() * sizeof(real))] =
            static_cast<std::byte>(random(2 * n + 1, 256));
    try {
      const SafeTensors read = read_safetensors("w.safetensors", image);
      for (const SafeTensor& tensor : read.tensors) {
        EXPECT_GE(tensor.bytes.data(), image.data());
        EXPECT_LE(tensor.bytes.data() + tensor.bytes.size(), image.data() + image.size());
        if (!tensor.has_reals()) continue;
        EXPECT_LE(tensor.values().size(), image.size());
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_data) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, mutations / 2);
  EXPECT_LT(refused, mutations);
}

}  // namespace
}  // namespace carousel
