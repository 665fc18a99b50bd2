// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Windows of tokens: which tokens are in which, that targets are a token later, and files that do
// not hold what they should.

#include "core/data/token_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <set>

#include "tests/core/support.hpp"

namespace carousel {
namespace {

using ::testing::HasSubstr;

constexpr int context = 8;

/// Tokens that count up, so that each says where it is.
void write_tokens(const std::string& path, std::int64_t train, std::int64_t validation,
                  std::int64_t vocabulary = 1000) {
  TokenWriter writer(path, vocabulary);
  for (const auto& [split, size] :
       {std::pair(SplitName::train, train), {SplitName::validation, validation}}) {
    std::vector<Token> tokens(static_cast<std::size_t>(size));
    std::iota(tokens.begin(), tokens.end(), split == SplitName::train ? 0 : 500);
    // In two parts, as importers write.
    writer.append(split, std::span(tokens).first(tokens.size() / 3), 7);
    writer.append(split, std::span(tokens).subspan(tokens.size() / 3), 5);
  }
  writer.finish({}, "a test", "none");
}

class TokenSets : public ::testing::Test {
 protected:
  [[nodiscard]] DataConfig config() const {
    DataConfig config;
    config.kind = DataKind::tokens;
    config.tokens = path_;
    config.context = context;
    return config;
  }
  template <class Number>
  static std::vector<Number> read(SourceReader& reader, Pass pass, std::int64_t epoch,
                                  std::int64_t index) {
    std::vector<Number> numbers(context);
    const auto bytes = std::as_writable_bytes(std::span(numbers));
    if constexpr (std::is_same_v<Number, std::int32_t>)
      reader.read_target(pass, epoch, index, bytes);
    else
      (void)reader.read_input(pass, epoch, index, bytes);
    return numbers;
  }

  testing::TemporaryFolder folder_;
  std::string path_ = folder_ / "tokens.h5";
};

TEST_F(TokenSets, HandOutWindowsAndTheSameATokenLater) {
  write_tokens(path_, 100, 50);
  const DataConfig deck = config();
  const TokenSet set(deck);
  EXPECT_EQ(set.samples(Pass::training), 11);   // wherever the first of them begins
  EXPECT_EQ(set.samples(Pass::evaluation), 6);  // of 49 tokens that have a next one
  EXPECT_EQ(set.target(deck).outputs(), (SampleShape{1000, context}));
  const std::unique_ptr<Source> source = set.source(deck, 7);
  EXPECT_EQ(source->spec().shown, (SampleShape{1, context}));
  const std::unique_ptr<SourceReader> reader = source->reader({});
  std::set<std::int64_t> beginnings;
  for (const std::int64_t epoch : {0, 1, 2, 3, 4}) {
    const std::int64_t first = first_window(7, epoch, context);
    EXPECT_GE(first, 0);
    EXPECT_LT(first, context);
    beginnings.insert(first);
    for (std::int64_t k = 0; k < set.samples(Pass::training); ++k) {
      const auto input = read<real>(*reader, Pass::training, epoch, k);
      const auto target = read<std::int32_t>(*reader, Pass::training, epoch, k);
      for (std::size_t t = 0; t < context; ++t) {
        EXPECT_EQ(input[t], static_cast<real>(first + k * context + std::int64_t(t)));
        EXPECT_EQ(target[t], static_cast<std::int32_t>(input[t]) + 1);
      }
    }
  }
  EXPECT_GT(beginnings.size(), 1U) << "epochs differ";
  EXPECT_EQ(read<real>(*reader, Pass::evaluation, 3, 5).front(), real(500 + 5 * context));
}

TEST_F(TokenSets, AreTheSameWhereverTheyLie) {
  write_tokens(path_, 100, 50);
  DataConfig deck = config();
  const std::uint64_t fingerprint = TokenSet(deck).fingerprint();
  std::filesystem::copy(path_, folder_ / "copy.h5");
  deck.tokens = folder_ / "copy.h5";
  EXPECT_EQ(TokenSet(deck).fingerprint(), fingerprint);
  write_tokens(deck.tokens, 101, 50);
  EXPECT_NE(TokenSet(deck).fingerprint(), fingerprint);
}

TEST_F(TokenSets, HaveTokensOfFourBytesInLargeVocabularies) {
  write_tokens(path_, 100, 50, 70'000);
  const TokenFile file(path_);
  EXPECT_EQ(file.row(SplitName::train)->token_bytes(), 4);
  EXPECT_EQ(file.row(SplitName::train)->text_bytes(), 12);
  EXPECT_EQ(file.row(SplitName::test), nullptr);
  std::vector<std::int64_t> tokens(2);
  std::vector<std::byte> room(8);
  file.row(SplitName::train)->read(98, tokens, room);
  EXPECT_EQ(tokens[1], 99);
}

TEST_F(TokenSets, RefuseWhatIsTooShortOrDamaged) {
  const auto refused = [&](ExitCode code) {
    const DataConfig deck = config();
    return testing::failure(code, [&] { const TokenSet set(deck); });
  };
  write_tokens(path_, 15, 50);
  EXPECT_THAT(refused(ExitCode::usage), HasSubstr("/train/tokens of"));
  write_tokens(path_, 100, 8);
  EXPECT_THAT(refused(ExitCode::usage), HasSubstr("are 8; 9 are needed"));
}

TEST_F(TokenSets, NameTheTokenThatIsNone) {
  write_tokens(path_, 100, 50);
  const DataConfig deck = config();
  {
    // One bit of token 17, and then its checksum says so.
    const hdf5::DatasetInfo info = hdf5::File::open(path_).info("/train/tokens");
    Descriptor file = Descriptor::update(path_);
    const std::uint16_t wrong = 17 + (1 << 14);
    file.write_at(info.offset + 34, std::as_bytes(std::span(&wrong, 1)));
  }
  const TokenSet set(deck);
  const std::unique_ptr<SourceReader> reader = set.source(deck, 1)->reader({});
  EXPECT_THAT(testing::failure(ExitCode::bad_data,
                               [&] { (void)read<real>(*reader, Pass::training, 0, 1); }),
              HasSubstr("is damaged in its MiB 1 of 1"));
}

}  // namespace
}  // namespace carousel
