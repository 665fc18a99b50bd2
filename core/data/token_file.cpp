// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/token_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/base/check.hpp"
#include "core/data/checksums.hpp"

namespace carousel {
namespace {

std::string group_of(SplitName split) {
  return fmt::format("/{}", to_string(split));
}
std::string array_of(SplitName split) {
  return group_of(split) + "/tokens";
}

Tokenizer read_tokenizer(const hdf5::File& file, int vocabulary) {
  const std::string word = file.string("/", "tokenizer");
  const auto kind = find_value<TokenizerKind>(word);
  if (!kind) fail(ExitCode::bad_data, "{}: tokenizer {} is not known", file.path(), word);
  if (*kind == TokenizerKind::none) return {};
  const std::vector<std::int64_t> ends = file.read<std::int64_t>("/tokenizer/ends");
  const std::vector<std::uint8_t> bytes = file.read<std::uint8_t>("/tokenizer/bytes");
  if (std::ssize(ends) != vocabulary)
    fail(ExitCode::bad_data, "{}: /tokenizer/ends has {} numbers for {} tokens", file.path(),
         ends.size(), vocabulary);
  std::vector<std::string> pieces;
  std::int64_t begin = 0;
  for (const std::int64_t end : ends) {
    if (end <= begin || end > std::ssize(bytes))
      fail(ExitCode::bad_data, "{}: /tokenizer/ends[{}] = {} is no end of a text", file.path(),
           pieces.size(), end);
    pieces.emplace_back(bytes.begin() + begin, bytes.begin() + end);
    begin = end;
  }
  return {*kind, std::move(pieces)};
}

}  // namespace

TokenRow::TokenRow(const hdf5::File& file, const std::string& name, std::int64_t vocabulary)
    : name_(file.path() + ": " + name), vocabulary_(vocabulary) {
  file.require_written(name);
  const hdf5::DatasetInfo info = file.info(name);
  const bool integers = info.numbers && info.numbers->is_integer();
  if (!integers || info.shape.size() != 1 || info.shape[0] == 0 || !info.contiguous ||
      info.offset < 0 || info.file != file.path())
    fail(ExitCode::bad_data, "{} must be integers [n] in one piece; it is {} of {} axes", name_,
         info.type, info.shape.size());
  layout_ = *info.numbers;
  offset_ = info.offset;
  size_ = static_cast<std::int64_t>(info.shape[0]);
  file_ = Descriptor::open(file.path());
  const std::int64_t bytes = size_ * layout_.bytes;
  if (offset_ + bytes > file_.size())
    fail(ExitCode::bad_data,
         "{}: truncated: it ends at byte {}, the file at byte {}; copy it again", name_,
         offset_ + bytes, file_.size());
  checksums_ = BlockChecksums(file, name, offset_, bytes);
}

void TokenRow::read(std::int64_t first, std::span<std::int64_t> tokens,
                    std::span<std::byte> room) const {
  const std::int64_t bytes = std::ssize(tokens) * layout_.bytes;
  CAROUSEL_CHECK(first >= 0 && first + std::ssize(tokens) <= size_ && std::ssize(room) >= bytes,
                 "{} tokens from {} of {}, room for {} bytes", tokens.size(), first, size_,
                 room.size());
  const std::int64_t begin = first * layout_.bytes;
  checksums_.check(file_, begin, begin + bytes);
  file_.read_at(offset_ + begin, room.first(static_cast<std::size_t>(bytes)));
  decode_numbers(layout_, room.data(), layout_.bytes, tokens);
  for (std::size_t k = 0; k < tokens.size(); ++k)
    if (tokens[k] < 0 || tokens[k] >= vocabulary_)
      fail(ExitCode::bad_data, "{}[{}] = {} is no token of {}", name_,
           first + static_cast<std::int64_t>(k), tokens[k], vocabulary_);
}

std::vector<std::uint64_t> TokenRow::checksums() const {
  constexpr std::int64_t most = 1024;  // MiB that are read for it
  if (!checksums_.empty()) return {checksums_.values().begin(), checksums_.values().end()};
  const std::int64_t bytes = size_ * layout_.bytes;
  const std::int64_t blocks = checksum_blocks(bytes);
  const std::int64_t looks = std::min(blocks, most);
  std::vector<std::uint64_t> sums;
  for (std::int64_t k = 0; k < looks; ++k)
    sums.push_back(checksum(file_, offset_, bytes, k * blocks / looks));
  return sums;
}

TokenFile::TokenFile(const std::string& path) : path_(path) {
  const hdf5::File file = hdf5::File::open_with_reason(path);
  if (const std::string format = file.string("/", "format"); format != token_format)
    fail(ExitCode::bad_data, "{}: this is a '{}', not '{}'; `carousel import tokens` makes such",
         path, format, token_format);
  if (const std::int64_t version = file.integer("/", "format_version");
      version != token_format_version)
    fail(ExitCode::bad_data, "{}: format version {}, this program reads version {}", path, version,
         token_format_version);
  const std::int64_t vocabulary = file.integer("/", "vocabulary");
  if (vocabulary < 1 || vocabulary > most_tokens)
    fail(ExitCode::bad_data, "{}: a vocabulary of {}; it may be 1 to {}", path, vocabulary,
         most_tokens);
  vocabulary_ = static_cast<int>(vocabulary);
  try {
    tokenizer_ = read_tokenizer(file, vocabulary_);
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with(path)) throw;
    fail(error.code(), "{}: /tokenizer: {}", path, error.what());
  }
  for (const SplitName split : {SplitName::train, SplitName::validation, SplitName::test}) {
    const std::string name = array_of(split);
    if (!file.contains(name)) continue;
    std::optional<TokenRow>& row = rows_[static_cast<std::size_t>(split)];
    row = TokenRow(file, name, vocabulary);
    if (file.has(group_of(split), "bytes"))
      row->text_bytes_ = file.integer(group_of(split), "bytes");
  }
  source_ = file.string("/", "source");
  licence_ = file.string("/", "licence");
  if (row(SplitName::train) == nullptr)
    fail(ExitCode::bad_data, "{}: /train/tokens is missing", path);
}

TokenWriter::TokenWriter(const std::string& path, std::int64_t vocabulary)
    : path_(path), vocabulary_(vocabulary) {}

TokenWriter::~TokenWriter() {
  std::error_code unknown;
  for (const SplitName split : {SplitName::train, SplitName::validation, SplitName::test})
    if (size(split) > 0) std::filesystem::remove(part_of(split), unknown);
}

std::string TokenWriter::part_of(SplitName split) const {
  return fmt::format("{}.{}.{}.partial", path_, getpid(), to_string(split));
}

void TokenWriter::append(SplitName split, std::span<const Token> tokens, std::int64_t text_bytes) {
  if (tokens.empty()) return;
  const auto k = static_cast<std::size_t>(split);
  text_bytes_[k] += text_bytes;
  if (sizes_[k] == 0) {
    static_cast<void>(Descriptor::create(part_of(split)));
    parts_[k] = Descriptor::update(part_of(split));
  }
  const std::int64_t bytes = token_bytes();
  buffer_.resize(tokens.size() * static_cast<std::size_t>(bytes));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    CAROUSEL_CHECK(tokens[i] < vocabulary_, "token {} of {}", tokens[i], vocabulary_);
    const auto small = static_cast<std::uint16_t>(tokens[i]);
    if (bytes == 2)
      std::memcpy(buffer_.data() + 2 * i, &small, 2);
    else
      std::memcpy(buffer_.data() + 4 * i, &tokens[i], 4);
  }
  parts_[k].write_at(sizes_[k] * bytes, buffer_);
  sizes_[k] += std::ssize(tokens);
}

void TokenWriter::finish(const Tokenizer& tokenizer, const std::string& source,
                         const std::string& licence) {
  replacing(path_, [&](const std::string& made) {
    hdf5::File file = hdf5::File::create(made);
    file.set("/", "format", token_format);
    file.set("/", "format_version", token_format_version);
    file.set("/", "tokenizer", to_string(tokenizer.kind()));
    file.set("/", "vocabulary", vocabulary_);
    file.set("/", "source", source);
    file.set("/", "licence", licence);
    if (tokenizer.kind() != TokenizerKind::none) {
      std::vector<std::uint8_t> bytes;
      std::vector<std::int64_t> ends;
      for (const std::string& piece : tokenizer.pieces()) {
        bytes.insert(bytes.end(), piece.begin(), piece.end());
        ends.push_back(std::ssize(bytes));
      }
      file.write<std::uint8_t>("/tokenizer/bytes", bytes, {bytes.size()}, hdf5::Layout::checked);
      file.write<std::int64_t>("/tokenizer/ends", ends, {ends.size()}, hdf5::Layout::checked);
    }
    std::array<std::int64_t, 3> offsets = {};
    for (const SplitName split : {SplitName::train, SplitName::validation, SplitName::test}) {
      const auto k = static_cast<std::size_t>(split);
      if (sizes_[k] == 0) continue;
      const hdf5::Shape shape = {static_cast<hsize_t>(sizes_[k])};
      offsets[k] = token_bytes() == 2 ? file.reserve<std::uint16_t>(array_of(split), shape)
                                      : file.reserve<std::uint32_t>(array_of(split), shape);
      // From the part, which has the same bytes.
      const std::int64_t all = sizes_[k] * token_bytes();
      std::vector<std::uint64_t> sums;
      for (std::int64_t block = 0; block < checksum_blocks(all); ++block)
        sums.push_back(checksum(parts_[k], 0, all, block));
      file.write(checksums_of(array_of(split)), sums);
      if (text_bytes_[k] > 0) file.set(group_of(split), "bytes", text_bytes_[k]);
    }
    file.close();
    Descriptor to = Descriptor::update(made);
    for (std::size_t k = 0; k < sizes_.size(); ++k) {
      const std::int64_t all = sizes_[k] * token_bytes();
      for (std::int64_t at = 0; at < all; at += checksum_block) {
        buffer_.resize(static_cast<std::size_t>(std::min(checksum_block, all - at)));
        parts_[k].read_at(at, buffer_);
        to.write_at(offsets[k] + at, buffer_);
      }
    }
    to.sync();
    to.close();
  });
}

}  // namespace carousel
