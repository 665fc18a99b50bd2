// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A source that has no file: inputs and targets are numbers that follow from what was asked for.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "core/data/source.hpp"

namespace carousel::testing {

/// Element x of the input of a sample is 7 index + 3 epoch + x (mod 256), of its target
/// 1000 epoch + 10 index + x, of evaluations less by 5; as uint8 what is left of it.
class PatternSource final : public Source {
 public:
  PatternSource(const TensorSpec& input, const TensorSpec& target)
      : spec_{.input = input, .target = target, .shown = input.shape, .reader_bytes = 11} {}

  [[nodiscard]] const SourceSpec& spec() const override { return spec_; }
  [[nodiscard]] std::int64_t samples(Pass pass) const override {
    return pass == Pass::training ? 40 : 7;
  }
  [[nodiscard]] std::unique_ptr<SourceReader> reader(const Reads& reads) const override {
    ++readers_;
    return std::make_unique<Reader>(spec_, reads);
  }

  /// Readers that were made.
  [[nodiscard]] int readers() const { return readers_; }

  [[nodiscard]] static std::vector<std::byte> input(const TensorSpec& spec, std::int64_t epoch,
                                                    std::int64_t index) {
    return stored(spec, 7 * index + 3 * epoch);
  }
  [[nodiscard]] static std::vector<std::byte> target(const TensorSpec& spec, Pass pass,
                                                     std::int64_t epoch, std::int64_t index) {
    return stored(spec, 1000 * epoch + 10 * index - (pass == Pass::evaluation ? 5 : 0));
  }

 private:
  /// first, first + 1, ... in the type of a tensor.
  static std::vector<std::byte> stored(const TensorSpec& spec, std::int64_t first) {
    std::vector<std::byte> bytes;
    for (std::int64_t x = first; x < first + spec.shape.size(); ++x) {
      const auto number = static_cast<std::int32_t>(x);
      const auto* begin = reinterpret_cast<const std::byte*>(&number);  // little-endian
      bytes.insert(bytes.end(), begin, begin + size_of(spec.type));
    }
    return bytes;
  }

  class Reader final : public SourceReader {
   public:
    Reader(const SourceSpec& spec, const Reads& reads) : spec_(spec), reads_(reads) {}

    [[nodiscard]] ShownPart read_input(Pass /*pass*/, std::int64_t epoch, std::int64_t index,
                                       std::span<std::byte> input) override {
      EXPECT_TRUE(reads_.inputs);
      put(PatternSource::input(spec_.input, epoch, index), input);
      return {static_cast<int>(index), static_cast<int>(epoch), 1};
    }
    void read_target(Pass pass, std::int64_t epoch, std::int64_t index,
                     std::span<std::byte> target) override {
      EXPECT_TRUE(reads_.targets);
      put(PatternSource::target(spec_.target, pass, epoch, index), target);
    }

   private:
    static void put(const std::vector<std::byte>& made, std::span<std::byte> to) {
      ASSERT_EQ(made.size(), to.size());
      std::ranges::copy(made, to.begin());
    }

    const SourceSpec& spec_;
    Reads reads_;
  };

  SourceSpec spec_;
  mutable std::atomic<int> readers_ = 0;
};

}  // namespace carousel::testing
