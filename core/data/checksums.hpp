// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Digests of an array in a file, one per MiB, by which a damaged data set is found. They find
// accidents, not forgers.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/base/descriptor.hpp"
#include "core/base/digest.hpp"

namespace carousel {

/// Bytes of an array that share a digest; of the last one there may be fewer.
inline constexpr std::int64_t checksum_block = std::int64_t{1} << 20;

[[nodiscard]] constexpr std::int64_t checksum_blocks(std::int64_t bytes) {
  return (bytes + checksum_block - 1) / checksum_block;
}

/// Of one block: the digest of its words of eight bytes, zeros behind the end, and of its size.
class Checksum {
 public:
  /// Adds what comes next; all parts but the last one are whole words.
  void add(std::span<const std::byte> part) {
    for (std::size_t k = 0; k < part.size(); k += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, part.data() + k, std::min(sizeof(word), part.size() - k));
      sum_ += digest_term(words_++, word);
    }
    bytes_ += part.size();
  }
  [[nodiscard]] std::uint64_t value() const { return sum_ + digest_term(words_, bytes_); }

 private:
  std::uint64_t sum_ = 0;
  std::uint64_t words_ = 0;
  std::uint64_t bytes_ = 0;
};

/// Of block `number` of an array of `bytes` that begins at `offset` of a file.
[[nodiscard]] inline std::uint64_t checksum(const Descriptor& file, std::int64_t offset,
                                            std::int64_t bytes, std::int64_t number) {
  std::array<std::byte, std::size_t{1} << 16> part;
  Checksum sum;
  const std::int64_t end = std::min((number + 1) * checksum_block, bytes);
  for (std::int64_t at = number * checksum_block; at < end; at += std::ssize(part)) {
    const auto size = static_cast<std::size_t>(std::min(std::ssize(part), end - at));
    file.read_at(offset + at, std::span(part).first(size));
    sum.add(std::span(part).first(size));
  }
  return sum.value();
}

}  // namespace carousel
