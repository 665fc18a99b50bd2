// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/chunk_reader.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace carousel {
namespace {

/// HDF5's sum of a chunk: Fletcher's, of words of two bytes, the first one the higher.
std::uint32_t fletcher32(std::span<const std::byte> bytes) {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  const auto fold = [](std::uint32_t sum) { return (sum & 0xffff) + (sum >> 16); };
  constexpr std::size_t most = 360;  // words before a sum might overflow
  for (std::size_t at = 0; at < bytes.size();) {
    for (std::size_t word = 0; word < most && at < bytes.size(); ++word, at += 2) {
      low += std::to_integer<std::uint32_t>(bytes[at]) << 8;
      if (at + 1 < bytes.size()) low += std::to_integer<std::uint32_t>(bytes[at + 1]);
      high += low;
    }
    low = fold(low);
    high = fold(high);
  }
  return fold(high) << 16 | fold(low);
}

bool check_sum(std::vector<std::byte>& bytes) {
  std::array<std::uint8_t, 4> last = {};
  if (bytes.size() < last.size()) return false;
  const std::size_t size = bytes.size() - last.size();
  std::memcpy(last.data(), bytes.data() + size, last.size());
  bytes.resize(size);
  std::uint32_t stored = 0;
  for (std::size_t k = last.size(); k-- > 0;) stored = stored << 8 | last[k];
  return fletcher32(bytes) == stored;
}

/// Gives all of `to`, or nothing.
bool inflate_all(const std::vector<std::byte>& from, std::vector<std::byte>& to) {
  auto size = static_cast<uLongf>(to.size());
  const int result = uncompress(reinterpret_cast<Bytef*>(to.data()), &size,
                                reinterpret_cast<const Bytef*>(from.data()), from.size());
  return result == Z_OK && size == to.size();
}

/// From the first bytes of all numbers, then their second ones, ..., to number by number.
void unshuffle(int number_bytes, const std::vector<std::byte>& from, std::vector<std::byte>& to) {
  const auto width = static_cast<std::size_t>(number_bytes);
  const std::size_t count = from.size() / width;
  for (std::size_t byte = 0; byte < width; ++byte)
    for (std::size_t k = 0; k < count; ++k) to[k * width + byte] = from[byte * count + k];
  // What is left over is not shuffled.
  std::copy(from.begin() + static_cast<std::ptrdiff_t>(count * width), from.end(),
            to.begin() + static_cast<std::ptrdiff_t>(count * width));
}

}  // namespace

bool unpack_chunk(const hdf5::ChunkLayout& layout, const hdf5::ChunkPlace& place, int number_bytes,
                  std::size_t size, std::vector<std::byte>& bytes, std::vector<std::byte>& spare) {
  const auto was_done = [&](std::size_t k) { return (place.passed_filters >> k & 1) == 0; };
  bool sums = false;  // whether a sum is behind the numbers, of what was done before
  for (std::size_t k = 0; k < layout.filters.size(); ++k)
    sums = sums || (layout.filters[k] == hdf5::ChunkFilter::fletcher32 && was_done(k));
  for (std::size_t k = layout.filters.size(); k-- > 0;) {
    if (!was_done(k)) continue;
    switch (layout.filters[k]) {
      case hdf5::ChunkFilter::fletcher32:
        if (!check_sum(bytes)) return false;
        sums = false;
        break;
      case hdf5::ChunkFilter::deflate:
        spare.resize(size + (sums ? 4 : 0));
        if (!inflate_all(bytes, spare)) return false;
        bytes.swap(spare);
        break;
      case hdf5::ChunkFilter::shuffle:
        spare.resize(bytes.size());
        unshuffle(number_bytes, bytes, spare);
        bytes.swap(spare);
        break;
      case hdf5::ChunkFilter::others:
        return false;
    }
  }
  return bytes.size() == size;
}

}  // namespace carousel
