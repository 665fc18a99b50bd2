// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/import/gzip.hpp"

#include <algorithm>
#include <new>

#include "core/base/check.hpp"

namespace carousel {
namespace {

constexpr std::size_t piece = std::size_t{1} << 20;
constexpr int gzip_window = 15 + 16;  // of any size, behind gzip's header and before its checksum

}  // namespace

GzipFile::GzipFile(const std::string& path)
    : path_(path),
      file_(Descriptor::open(path)),
      size_(file_.size()),
      compressed_(piece),
      bytes_(piece) {
  if (inflateInit2(&stream_, gzip_window) != Z_OK) throw std::bad_alloc();
}

GzipFile::~GzipFile() {
  inflateEnd(&stream_);
}

bool GzipFile::refill() {
  if (stream_.avail_in > 0) return true;
  const auto count = std::min(size_ - offset_, static_cast<std::int64_t>(piece));
  file_.read_at(offset_, std::span(compressed_).first(static_cast<std::size_t>(count)));
  offset_ += count;
  stream_.next_in = reinterpret_cast<Bytef*>(compressed_.data());
  stream_.avail_in = static_cast<uInt>(count);
  return count > 0;
}

/// Tapes fill up with zeros, which gzip passes over, too.
bool GzipFile::enter() {
  while (refill() && *stream_.next_in == 0) {
    ++stream_.next_in;
    --stream_.avail_in;
  }
  if (!refill()) return false;
  constexpr Bytef first_of_header = 0x1f;
  if (*stream_.next_in != first_of_header)
    fail(ExitCode::bad_data,
         "{}: behind what gzip has compressed lie {} bytes of something else; give them as a file "
         "of their own",
         path_, size_ - offset_ + stream_.avail_in);
  inflateReset(&stream_);
  return true;
}

std::span<const std::byte> GzipFile::next() {
  stream_.next_out = reinterpret_cast<Bytef*>(bytes_.data());
  stream_.avail_out = static_cast<uInt>(bytes_.size());
  while (stream_.avail_out > 0) {
    if (!is_inside_ && !enter()) break;
    is_inside_ = true;
    if (!refill())
      fail(ExitCode::bad_data, "{}: is cut off after {} bytes; copy it again", path_, size_);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_STREAM_END)
      is_inside_ = false;
    else if (result != Z_OK)
      fail(ExitCode::bad_data, "{}: is damaged ({}); copy it again", path_,
           stream_.msg == nullptr ? zError(result) : stream_.msg);
  }
  return std::span(bytes_).first(bytes_.size() - stream_.avail_out);
}

}  // namespace carousel
