// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A text as tokens in Carousel's HDF5 format, checked when it is opened. Tokens stay in the file;
// which of them are a sample is not its business.
//
//   /train/tokens   unsigned integers [n], in one piece    /validation/tokens, /test/tokens
//   likewise,
//                                                          where there are such
//   /tokenizer/bytes  uint8 [bytes], the texts of all tokens, one behind the other
//   /tokenizer/ends   integers [vocabulary], where each ends
//
//   attributes of /: format = "carousel tokens", format_version = 1, tokenizer (a TokenizerKind),
//   vocabulary, source, licence; of /train and the others bytes, those of the text
//   /checksums/SPLIT/tokens, uint64 [MiB]

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/descriptor.hpp"
#include "core/base/hdf5.hpp"
#include "core/data/block_checksums.hpp"
#include "core/data/config.hpp"
#include "core/text/tokenizer.hpp"

namespace carousel {

inline constexpr const char* token_format = "carousel tokens";
inline constexpr std::int64_t token_format_version = 1;
/// Tokens are numbers that single precision has, and many fewer.
inline constexpr std::int64_t most_tokens = 1 << 24;

/// The tokens of one split.
class TokenRow {
 public:
  [[nodiscard]] std::int64_t size() const { return size_; }
  /// Bytes of a token as it is stored.
  [[nodiscard]] int token_bytes() const { return layout_.bytes; }
  /// Bytes of the text that they stand for; 0 where nobody knows.
  [[nodiscard]] std::int64_t text_bytes() const { return text_bytes_; }
  /// Tokens first, first + 1, ...; `room` has token_bytes() for each. Any number of threads may
  /// read. Error(bad_data) where the file is damaged or a token is none of the vocabulary.
  void read(std::int64_t first, std::span<std::int64_t> tokens, std::span<std::byte> room) const;
  /// Digests of all MiB, as an import made them, or of as many as are read for it.
  [[nodiscard]] std::vector<std::uint64_t> checksums() const;

 private:
  friend class TokenFile;
  TokenRow(const hdf5::File& file, const std::string& name, std::int64_t vocabulary);

  std::string name_;  // of file and array, for errors
  std::int64_t vocabulary_;
  Descriptor file_;
  NumberLayout layout_;
  std::int64_t offset_ = 0;
  std::int64_t size_ = 0;
  std::int64_t text_bytes_ = 0;
  BlockChecksums checksums_;
};

class TokenFile {
 public:
  /// Error(input_output) where it cannot be opened, Error(bad_data) where it does not hold what it
  /// should.
  explicit TokenFile(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int vocabulary() const { return vocabulary_; }
  [[nodiscard]] const Tokenizer& tokenizer() const { return tokenizer_; }
  [[nodiscard]] const std::string& source() const { return source_; }
  [[nodiscard]] const std::string& licence() const { return licence_; }
  [[nodiscard]] const TokenRow* row(SplitName name) const {
    const std::optional<TokenRow>& row = rows_[static_cast<std::size_t>(name)];
    return row ? &*row : nullptr;
  }

 private:
  std::string path_;
  int vocabulary_ = 0;
  Tokenizer tokenizer_;
  std::string source_;
  std::string licence_;
  std::array<std::optional<TokenRow>, 3> rows_;  // by SplitName
};

/// Makes such a file. Tokens of a split come one after the other; how many there will be nobody
/// knows before. Until it is whole, it is called FILE.partial.
class TokenWriter {
 public:
  TokenWriter(const std::string& path, std::int64_t vocabulary);
  TokenWriter(const TokenWriter&) = delete;
  TokenWriter& operator=(const TokenWriter&) = delete;
  /// Without finish(), leaves nothing behind.
  ~TokenWriter();

  /// Tokens that stand for so many bytes of text; 0 where nobody knows.
  void append(SplitName split, std::span<const Token> tokens, std::int64_t text_bytes);
  [[nodiscard]] std::int64_t size(SplitName split) const {
    return sizes_[static_cast<std::size_t>(split)];
  }
  void finish(const Tokenizer& tokenizer, const std::string& source, const std::string& licence);

 private:
  [[nodiscard]] std::string part_of(SplitName split) const;
  [[nodiscard]] std::int64_t token_bytes() const { return vocabulary_ > 1 << 16 ? 4 : 2; }

  std::string path_;
  std::int64_t vocabulary_;
  std::array<Descriptor, 3> parts_;
  std::array<std::int64_t, 3> sizes_ = {};
  std::array<std::int64_t, 3> text_bytes_ = {};
  std::vector<std::byte> buffer_;
};

}  // namespace carousel
