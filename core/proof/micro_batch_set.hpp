// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace carousel {

/// Micro-batches of a step, which 64 at a time are compared.
class MicroBatchSet {
 public:
  MicroBatchSet() = default;
  /// All from `first` to `last`.
  MicroBatchSet(int first, int last) : words_(last / bits + 1) {
    for (int i = first; i <= last; ++i) words_[i / bits] |= bit(i);
  }

  [[nodiscard]] bool contains(int i) const {
    return static_cast<std::size_t>(i / bits) < words_.size() && (words_[i / bits] & bit(i)) != 0;
  }
  [[nodiscard]] bool intersects(const MicroBatchSet& other) const {
    const std::size_t common = std::min(words_.size(), other.words_.size());
    for (std::size_t k = 0; k < common; ++k) {
      if ((words_[k] & other.words_[k]) != 0) return true;
    }
    return false;
  }
  void add(const MicroBatchSet& other) {
    words_.resize(std::max(words_.size(), other.words_.size()));
    for (std::size_t k = 0; k < other.words_.size(); ++k) words_[k] |= other.words_[k];
  }
  /// -1 where there is none.
  [[nodiscard]] int last() const {
    for (auto i = static_cast<int>(words_.size()) * bits - 1; i >= 0; --i) {
      if (contains(i)) return i;
    }
    return -1;
  }
  bool operator==(const MicroBatchSet&) const = default;

 private:
  static constexpr int bits = 64;
  static std::uint64_t bit(int i) { return std::uint64_t{1} << (i % bits); }

  std::vector<std::uint64_t> words_;  // the last one is not zero
};

}  // namespace carousel
