// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The digests that an import has made of an array, one per MiB, and which of them were found right.
// How they are computed, core/data/checksums.hpp says.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/descriptor.hpp"
#include "core/base/hdf5.hpp"

namespace carousel {

/// The dataset that has those of an array: "/checksums/fields/density".
[[nodiscard]] std::string checksums_of(const std::string& array);

class BlockChecksums {
 public:
  /// There are none.
  BlockChecksums() = default;
  /// Those of an array of `bytes` that begins at `offset` of the file, which may have none.
  /// Error(bad_data) where they are of another number of bytes.
  BlockChecksums(const hdf5::File& file, const std::string& array, std::int64_t offset,
                 std::int64_t bytes);

  [[nodiscard]] bool empty() const { return values_.empty(); }
  [[nodiscard]] std::span<const std::uint64_t> values() const { return values_; }
  /// Compares with the file what bytes begin .. end - 1 of the array lie in, each block once.
  /// Error(bad_data) where it is damaged. Threads that ask for the same block at the same time
  /// check it both.
  void check(const Descriptor& file, std::int64_t begin, std::int64_t end) const;

 private:
  std::string name_;  // of file and array, for errors
  std::int64_t offset_ = 0;
  std::int64_t bytes_ = 0;
  std::vector<std::uint64_t> values_;
  std::shared_ptr<std::atomic<bool>[]> checked_;  // by all copies
};

}  // namespace carousel
