// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/import/tokens.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/descriptor.hpp"
#include "core/base/text.hpp"
#include "core/data/token_file.hpp"
#include "core/text/characters.hpp"

namespace carousel {
namespace {

constexpr std::int64_t block = std::int64_t{4} << 20;  // bytes that are read at once

/// A run of a file's bytes.
struct Piece {
  std::string path;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  int token_bytes = 0;     // of a file of tokens
  std::int64_t first = 0;  // where its tokens begin
};

/// How llm.c's files begin: 256 numbers, of which the third counts the tokens.
struct TokenHeader {
  std::int32_t magic;
  std::int32_t version;
  int token_bytes;
};
constexpr std::array headers = {TokenHeader{20240520, 1, 2}, TokenHeader{20240801, 7, 4}};
constexpr std::int64_t header_bytes = 256 * std::int64_t{sizeof(std::int32_t)};

Piece whole_file(const std::string& path, TextForm form) {
  const Descriptor file = Descriptor::open(path);
  Piece piece{.path = path, .end = file.size()};
  if (form != TextForm::tokens) return piece;
  piece.token_bytes = 2;
  if (piece.end >= header_bytes) {
    std::array<std::int32_t, 3> start = {};
    file.read_at(0, std::as_writable_bytes(std::span(start)));
    for (const TokenHeader& header : headers) {
      if (start[0] != header.magic) continue;
      if (start[1] != header.version)
        fail(ExitCode::bad_data, "{}: tokens of llm.c in version {}; version {} is known", path,
             start[1], header.version);
      piece.token_bytes = header.token_bytes;
      piece.begin = piece.first = header_bytes;
      const std::int64_t wanted = header_bytes + std::int64_t{start[2]} * header.token_bytes;
      if (start[2] < 0 || wanted != piece.end)
        fail(ExitCode::bad_data, "{}: says that it has {} tokens, {} bytes, and has {}", path,
             start[2], wanted, piece.end);
      return piece;
    }
  }
  if (piece.end % piece.token_bytes != 0)
    fail(ExitCode::bad_data, "{}: {} bytes are no whole number of tokens of {}", path, piece.end,
         piece.token_bytes);
  return piece;
}

/// The last place up to `at` at which a character of a text begins.
std::int64_t begin_of_character(const std::string& path, std::int64_t at) {
  const Descriptor file = Descriptor::open(path);
  for (std::int64_t k = at; k > 0 && k > at - 4 && k < file.size(); --k) {
    std::byte byte = {};
    file.read_at(k, std::span(&byte, 1));
    if ((byte & std::byte{0xC0}) != std::byte{0x80}) return k;
  }
  return at;
}

/// What each split is made of.
struct Splits {
  std::vector<Piece> train;
  std::vector<Piece> validation;

  [[nodiscard]] std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const auto* pieces : {&train, &validation})
      for (const Piece& piece : *pieces) sum += piece.end - piece.begin;
    return sum;
  }
};

Splits divide(const TokenImport& import) {
  Splits splits;
  std::int64_t all = 0;
  for (const std::string& path : import.paths) {
    splits.train.push_back(whole_file(path, import.form));
    all += splits.train.back().end - splits.train.back().begin;
  }
  for (const std::string& path : import.validation)
    splits.validation.push_back(whole_file(path, import.form));
  if (!import.validation.empty() || import.validation_fraction == 0) return splits;
  auto left = static_cast<std::int64_t>(static_cast<double>(all) *
                                        (1 - import.validation_fraction));  // for training
  std::vector<Piece> pieces = std::exchange(splits.train, {});
  for (const Piece& piece : pieces) {
    std::int64_t cut = piece.begin + std::clamp<std::int64_t>(left, 0, piece.end - piece.begin);
    if (piece.token_bytes > 0)
      cut -= (cut - piece.first) % piece.token_bytes;
    else
      cut = begin_of_character(piece.path, cut);
    left -= piece.end - piece.begin;
    const auto add = [&](std::vector<Piece>& to, std::int64_t begin, std::int64_t end) {
      if (begin == end) return;
      to.push_back(piece);
      to.back().begin = begin;
      to.back().end = end;
    };
    add(splits.train, piece.begin, cut);
    add(splits.validation, cut, piece.end);
  }
  return splits;
}

class Importer {
 public:
  Importer(const TokenImport& import, const TokenProgress& progress)
      : import_(import), progress_(progress), splits_(divide(import)) {
    all_ = splits_.bytes() * (import.form == TextForm::characters ? 2 : 1);
    choose_tokenizer();
  }

  TokenCounts run(const std::string& path) {
    TokenWriter writer(path, vocabulary_);
    write(writer, SplitName::train, splits_.train);
    write(writer, SplitName::validation, splits_.validation);
    const TokenCounts counts = {writer.size(SplitName::train), writer.size(SplitName::validation),
                                vocabulary_};
    if (counts.train == 0) fail(ExitCode::bad_data, "{}: has no tokens", import_.paths.front());
    writer.finish(tokenizer_, import_.source, import_.licence);
    return counts;
  }

 private:
  void choose_tokenizer() {
    switch (import_.form) {
      case TextForm::bytes:
        tokenizer_ = Tokenizer::of_bytes();
        break;
      case TextForm::characters:
        tokenizer_ = Tokenizer::of_characters(characters());
        break;
      case TextForm::gpt2:
      case TextForm::tokens:
        if (!import_.gpt2_tokens.empty())
          tokenizer_ = Tokenizer::gpt2(import_.gpt2_tokens, import_.gpt2_pairs);
        break;
    }
    vocabulary_ = import_.vocabulary > 0 ? import_.vocabulary : tokenizer_.size();
  }

  /// Calls take(text, place of its first byte in the file) for what fits the memory, cut where
  /// `cut` lets it be. Returns nothing of an empty piece.
  template <class Cut, class Take>
  void read_text(const Piece& piece, const Cut& cut, const Take& take) {
    const Descriptor file = Descriptor::open(piece.path);
    std::string text;
    std::int64_t begin = piece.begin;  // of `text`
    for (std::int64_t at = piece.begin; at < piece.end;) {
      const auto size = static_cast<std::size_t>(std::min(block, piece.end - at));
      const std::size_t before = text.size();
      text.resize(before + size);
      file.read_at(at, std::as_writable_bytes(std::span(text).subspan(before)));
      at += static_cast<std::int64_t>(size);
      done_ += static_cast<std::int64_t>(size);
      progress_(done_, all_);
      const std::size_t end = at < piece.end ? cut(text) : text.size();
      if (end == 0) continue;
      take(std::string_view(text).substr(0, end), begin);
      begin += static_cast<std::int64_t>(end);
      text.erase(0, end);
    }
  }

  /// All that the texts have.
  std::vector<std::int32_t> characters() {
    std::set<std::int32_t> found;
    const Tokenizer cuts(TokenizerKind::characters, {});
    for (const auto* pieces : {&splits_.train, &splits_.validation}) {
      for (const Piece& piece : *pieces) {
        read_text(
            piece, [&](std::string_view text) { return cuts.place_to_cut(text); },
            [&](std::string_view text, std::int64_t begin) {
              for (std::size_t at = 0; at < text.size();) {
                const Character next = character_at(text, at);
                if (next.code < 0)
                  fail(ExitCode::bad_data, "{}: byte {} is not UTF-8; --as bytes takes any file",
                       piece.path, begin + static_cast<std::int64_t>(at));
                found.insert(next.code);
                at += next.bytes;
              }
            });
      }
    }
    return {found.begin(), found.end()};
  }

  void write(TokenWriter& writer, SplitName split, const std::vector<Piece>& pieces) {
    std::vector<Token> tokens;
    for (std::size_t k = 0; k < pieces.size(); ++k) {
      if (k > 0 && import_.form == TextForm::gpt2 && tokenizer_.end_of_text_token() >= 0) {
        tokens = {static_cast<Token>(tokenizer_.end_of_text_token())};
        writer.append(split, tokens, 0);
      }
      if (import_.form == TextForm::tokens) {
        copy_tokens(writer, split, pieces[k]);
        continue;
      }
      read_text(
          pieces[k], [&](std::string_view text) { return tokenizer_.place_to_cut(text); },
          [&](std::string_view text, std::int64_t) {
            tokens.clear();
            tokenizer_.encode(text, tokens);
            writer.append(split, tokens, static_cast<std::int64_t>(text.size()));
          });
    }
  }

  void copy_tokens(TokenWriter& writer, SplitName split, const Piece& piece) {
    const Descriptor file = Descriptor::open(piece.path);
    std::vector<std::byte> bytes;
    std::vector<Token> tokens;
    const std::int64_t each = piece.token_bytes;
    for (std::int64_t at = piece.begin; at < piece.end; at += std::ssize(bytes)) {
      bytes.resize(static_cast<std::size_t>(std::min(block, piece.end - at)));
      file.read_at(at, bytes);
      tokens.resize(bytes.size() / static_cast<std::size_t>(each));
      std::int64_t text_bytes = 0;
      for (std::size_t k = 0; k < tokens.size(); ++k) {
        tokens[k] = 0;
        std::memcpy(&tokens[k], bytes.data() + k * static_cast<std::size_t>(each),
                    static_cast<std::size_t>(each));
        if (tokens[k] >= vocabulary_)
          fail(ExitCode::bad_data, "{}: token {} is {}, and the vocabulary has {}", piece.path,
               (at - piece.first) / each + static_cast<std::int64_t>(k), tokens[k], vocabulary_);
        if (tokenizer_.size() > 0 && tokens[k] != tokenizer_.end_of_text_token())
          text_bytes += std::ssize(tokenizer_.pieces()[tokens[k]]);
      }
      writer.append(split, tokens, text_bytes);
      done_ += std::ssize(bytes);
      progress_(done_, all_);
    }
  }

  const TokenImport& import_;
  const TokenProgress& progress_;
  Splits splits_;
  Tokenizer tokenizer_;
  std::int64_t vocabulary_ = 0;
  std::int64_t all_ = 0;
  std::int64_t done_ = 0;
};

}  // namespace

TokenCounts import_tokens(const TokenImport& import, const std::string& path,
                          const TokenProgress& progress) {
  const bool has_tokenizer = !import.gpt2_tokens.empty();
  if (import.form == TextForm::gpt2 && !has_tokenizer)
    fail(ExitCode::usage, "--as gpt2 needs the files of its tokenizer, --bpe TOKENS,PAIRS");
  if (import.form == TextForm::tokens && !has_tokenizer && import.vocabulary == 0)
    fail(ExitCode::usage,
         "--as tokens needs --vocabulary N, or --bpe TOKENS,PAIRS of GPT-2's tokenizer");
  const bool takes_tokenizer = import.form == TextForm::gpt2 || import.form == TextForm::tokens;
  if (has_tokenizer && !takes_tokenizer)
    fail(ExitCode::usage, "--bpe is for --as gpt2 and --as tokens, not for --as {}",
         to_string(import.form));
  if (import.vocabulary > 0 && (has_tokenizer || import.form != TextForm::tokens))
    fail(ExitCode::usage, "--vocabulary is for --as tokens without --bpe; otherwise it is known");
  return Importer(import, progress).run(path);
}

}  // namespace carousel
