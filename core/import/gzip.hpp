// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a file holds that gzip has compressed, piece by piece, with its checksums compared:
// libarchive 3.6 passes over them. It knows no archives.

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/descriptor.hpp"

namespace carousel {

class GzipFile {
 public:
  /// Throws Error(input_output) when the file cannot be read.
  explicit GzipFile(const std::string& path);
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;
  ~GzipFile();

  /// Whether a file begins as gzip's do.
  [[nodiscard]] static bool begins(std::span<const std::byte> head) {
    return head.size() >= 2 && head[0] == std::byte{0x1f} && head[1] == std::byte{0x8b};
  }

  /// The next bytes, valid until the next call; none behind the last. Files that were put together
  /// are read one after the other. Throws Error(bad_data) for what is damaged, cut off or no part
  /// of any.
  [[nodiscard]] std::span<const std::byte> next();

 private:
  /// Makes sure that there is something to read, unless the file is at its end.
  bool refill();
  /// Enters the next of the files that were put together, if there is one.
  bool enter();

  std::string path_;
  Descriptor file_;
  std::int64_t size_;
  std::int64_t offset_ = 0;  // of what was not read yet
  std::vector<std::byte> compressed_;
  std::vector<std::byte> bytes_;
  z_stream stream_ = {};
  bool is_inside_ = false;  // of one of the files
};

}  // namespace carousel
