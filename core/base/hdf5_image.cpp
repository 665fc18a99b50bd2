// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// HDF5 files that live in memory, so that own writes bring them to disk: on a full disk HDF5 1.10.8
// reports success and may crash later.

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/check.hpp"
#include "core/base/hdf5.hpp"

namespace carousel::hdf5 {
namespace {

/// HDF5's checksum of metadata: lookup3 by Bob Jenkins (2006, public domain), here for whole words.
std::uint32_t lookup3(std::span<const std::uint32_t> words) {
  std::uint32_t a = 0xdeadbeef + 4 * static_cast<std::uint32_t>(words.size());
  std::uint32_t b = a, c = a;
  while (words.size() > 3) {
    a += words[0], b += words[1], c += words[2];
    a -= c, a ^= std::rotl(c, 4), c += b;
    b -= a, b ^= std::rotl(a, 6), a += c;
    c -= b, c ^= std::rotl(b, 8), b += a;
    a -= c, a ^= std::rotl(c, 16), c += b;
    b -= a, b ^= std::rotl(a, 19), a += c;
    c -= b, c ^= std::rotl(b, 4), b += a;
    words = words.subspan(3);
  }
  if (words.size() > 2) c += words[2];
  if (words.size() > 1) b += words[1];
  if (!words.empty()) a += words[0];
  c ^= b, c -= std::rotl(b, 14);
  a ^= c, a -= std::rotl(c, 11);
  b ^= a, b -= std::rotl(a, 25);
  c ^= b, c -= std::rotl(b, 16);
  a ^= c, a -= std::rotl(c, 4);
  b ^= a, b -= std::rotl(a, 14);
  c ^= b, c -= std::rotl(b, 24);
  return c;
}

/// H5Fget_file_image clears the flag "open for writing" in the superblock, but leaves the checksum
/// that includes it (1.10.8), so that nobody can open the image. Right again by computing it anew,
/// which changes nothing where HDF5 did so itself.
void renew_superblock_checksum(std::span<std::byte> image) {
  constexpr std::size_t version_at = 8, covered = 44;  // bytes; the checksum follows
  static_assert(std::endian::native == std::endian::little);
  if (image.size() < covered + 4 || image[version_at] != std::byte{3}) return;
  std::uint32_t words[covered / 4];
  std::memcpy(words, image.data(), covered);
  const std::uint32_t checksum = lookup3(words);
  std::memcpy(image.data() + covered, &checksum, sizeof checksum);
}

}  // namespace

File File::create_in_memory(const std::string& path) {
  constexpr std::size_t growth = std::size_t{1} << 16;  // bytes at a time
  quiet_library();
  const Handle access = latest_format();
  H5Pset_fapl_core(access.get(), growth, false);
  return create_with(path, access);
}

File File::open_image(const std::string& path, std::span<const std::byte> image) {
  quiet_library();
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access.get(), std::max<std::size_t>(image.size(), 1), false);
  // HDF5 copies the bytes, so that they may be const here.
  H5Pset_file_image(access.get(), const_cast<std::byte*>(image.data()), image.size());
  // To HDF5, two files in memory with one name are one file.
  const std::string name = fmt::format("{}@{}", path, static_cast<const void*>(image.data()));
  return {path, H5Fopen(name.c_str(), H5F_ACC_RDONLY, access.get()), false};
}

std::vector<std::byte> File::image() const {
  check(H5Fflush(id_.get(), H5F_SCOPE_GLOBAL), "H5Fflush", "/");
  const ssize_t size = check(H5Fget_file_image(id_.get(), nullptr, 0), "H5Fget_file_image", "/");
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  check(H5Fget_file_image(id_.get(), bytes.data(), bytes.size()), "H5Fget_file_image", "/");
  renew_superblock_checksum(bytes);
  return bytes;
}

}  // namespace carousel::hdf5
