// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where samples come from: what a training needs of a data set, whatever it holds. Order, threads
// and buffers are the prefetcher's business, and classes and statistics those of the data set.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/real.hpp"
#include "core/base/words.hpp"
#include "core/model/target.hpp"
#include "core/model/tensor_format.hpp"

namespace carousel {

/// Training reads /train in the order of an epoch's permutation, evaluation /test in file order.
enum class Pass : std::uint8_t { training, evaluation };

/// What a source stores numbers as.
enum class NumberType : std::uint8_t { uint8, int32, float32, float64 };
constexpr auto words_of(NumberType) {
  return all_words<NumberType>("uint8", "int32", "float32", "float64");
}
[[nodiscard]] constexpr std::int64_t size_of(NumberType type) {
  if (type == NumberType::uint8) return 1;
  return type == NumberType::float64 ? 8 : 4;
}
/// Of numbers that kernels read as they are.
[[nodiscard]] constexpr NumberType full_numbers(std::int64_t real_bytes = sizeof(real)) {
  return real_bytes == 8 ? NumberType::float64 : NumberType::float32;
}

/// A tensor of one sample, [c, h, w], without gaps.
struct TensorSpec {
  NumberType type = NumberType::uint8;
  SampleShape shape;

  [[nodiscard]] std::int64_t bytes() const { return shape.size() * size_of(type); }
  bool operator==(const TensorSpec&) const = default;
};
[[nodiscard]] std::string to_string(const TensorSpec& tensor);

/// A target that is the number of a class.
inline constexpr TensorSpec label_spec = {NumberType::int32, {1, 1, 1}};
/// Of any target, for kernels of so many bytes in a number.
[[nodiscard]] inline TensorSpec tensor_of(const TargetSpec& target,
                                          std::int64_t real_bytes = sizeof(real)) {
  return {target.has_labels() ? NumberType::int32 : full_numbers(real_bytes), target.shape};
}

/// How samples come to the model and to its loss.
struct SourceSpec {
  TensorSpec input;                      // as readers hand it out
  TensorSpec target;                     // what the loss compares with
  SampleShape shown;                     // the input as the model sees it
  std::int64_t reader_bytes = 0;         // that a reader of inputs holds
  std::int64_t target_reader_bytes = 0;  // that a reader of targets holds

  /// Whether devices show the model what was read as it is; otherwise it is an image, which they
  /// crop, mirror and normalise.
  [[nodiscard]] bool is_shown_as_read() const { return input.type != NumberType::uint8; }
  bool operator==(const SourceSpec&) const = default;
};

/// What the device does with an input that was read: pixel (y, x) of what the model sees is pixel
/// (top + y, left + x), of a mirrored one (top + y, left + width - 1 - x), and zero where there is
/// none.
struct ShownPart {
  int top = 0;
  int left = 0;
  int mirrored = 0;
};

/// What is read of samples: inputs where the first stage is, targets where the last one is.
struct Reads {
  bool inputs = true;
  bool targets = true;

  [[nodiscard]] bool any() const { return inputs || targets; }
};

/// Reads samples for one thread.
class SourceReader {
 public:
  SourceReader() = default;
  SourceReader(const SourceReader&) = delete;
  SourceReader& operator=(const SourceReader&) = delete;
  virtual ~SourceReader() = default;

  /// Sample `index` of a pass as an epoch shows it; `input` has the bytes of SourceSpec::input.
  /// Error(bad_data) where it is damaged.
  [[nodiscard]] virtual ShownPart read_input(Pass pass, std::int64_t epoch, std::int64_t index,
                                             std::span<std::byte> input) = 0;
  /// Likewise, of SourceSpec::target.
  virtual void read_target(Pass pass, std::int64_t epoch, std::int64_t index,
                           std::span<std::byte> target) = 0;
};

/// Hands out samples, each an input and a target. A sample is a pure function of its pass, epoch
/// and number, so that every device and thread reads the same. Any number of threads may call it.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  [[nodiscard]] virtual const SourceSpec& spec() const = 0;
  [[nodiscard]] virtual std::int64_t samples(Pass pass) const = 0;
  /// A reader that allocates here all it needs for what it will read, but for what decoders take
  /// while they decode: of inputs SourceSpec::reader_bytes, of targets target_reader_bytes. The
  /// source outlives it.
  [[nodiscard]] virtual std::unique_ptr<SourceReader> reader(const Reads& reads) const = 0;
};

}  // namespace carousel
