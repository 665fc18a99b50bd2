// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/block_checksums.hpp"

#include "core/base/check.hpp"
#include "core/data/checksums.hpp"

namespace carousel {

std::string checksums_of(const std::string& array) {
  return array.starts_with('/') ? "/checksums" + array : "/checksums/" + array;
}

BlockChecksums::BlockChecksums(const hdf5::File& file, const std::string& array,
                               std::int64_t offset, std::int64_t bytes)
    : name_(file.path() + ": " + array), offset_(offset), bytes_(bytes) {
  const std::string sums = checksums_of(array);
  if (!file.contains(sums)) return;
  values_ = file.read<std::uint64_t>(sums);
  if (const std::int64_t blocks = checksum_blocks(bytes); std::ssize(values_) != blocks)
    fail(ExitCode::bad_data, "{}: {} has {} checksums, not {}; import it again", file.path(), sums,
         values_.size(), blocks);
  checked_ = std::make_unique<std::atomic<bool>[]>(values_.size());
}

void BlockChecksums::check(const Descriptor& file, std::int64_t begin, std::int64_t end) const {
  if (values_.empty()) return;
  for (std::int64_t k = begin / checksum_block; k * checksum_block < end; ++k) {
    std::atomic<bool>& checked = checked_[k];
    if (checked.load(std::memory_order_relaxed)) continue;
    if (checksum(file, offset_, bytes_, k) != values_[static_cast<std::size_t>(k)])
      fail(ExitCode::bad_data, "{} is damaged in its MiB {} of {}; copy or import it again", name_,
           k + 1, values_.size());
    checked.store(true, std::memory_order_relaxed);
  }
}

}  // namespace carousel
