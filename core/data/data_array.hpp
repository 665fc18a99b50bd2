// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// An array of numbers in an HDF5 file as a user has it: which of its axes is which, where its
// numbers lie, and how a frame of it, what one sample has at one time, is read. What is done with
// the numbers is not its business.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/descriptor.hpp"
#include "core/base/hdf5.hpp"
#include "core/base/number_layout.hpp"
#include "core/base/real.hpp"
#include "core/model/tensor_format.hpp"

namespace carousel {

/// n: samples or trajectories; t: time; c: channels; y, x: space, of one axis y alone or x alone.
enum class ArrayAxis : std::uint8_t { n, t, c, y, x };
inline constexpr int array_axes = 5;

/// The axes of an array in the order that it has them, "n t y x c"; of one or two axes, where
/// nothing is said, "n" and "n c". Error(usage) that begins with `key` for others, Error(bad_data)
/// where an array has not as many.
[[nodiscard]] std::vector<ArrayAxis> read_axes(const std::string& key, const std::string& axes,
                                               const std::string& array, const hdf5::Shape& shape);

/// A part of a frame: pixels [top, top + height) x [left, left + width), from right to left where
/// it is mirrored.
struct FramePart {
  int top = 0;
  int left = 0;
  int height = 0;
  int width = 0;
  bool mirrored = false;
};

/// A frame of an array.
struct FramePlace {
  std::int64_t sample = 0;
  std::int64_t time = 0;
};

class DataArray {
 public:
  /// Error(bad_data) for what holds no numbers or keeps them elsewhere.
  DataArray(const hdf5::File& file, const std::string& name, const std::vector<ArrayAxis>& axes);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const NumberLayout& layout() const { return layout_; }
  /// 1 where the array has no such axis.
  [[nodiscard]] std::int64_t extent(ArrayAxis axis) const {
    return extents_[static_cast<std::size_t>(axis)];
  }
  [[nodiscard]] bool has(ArrayAxis axis) const { return strides_[std::size_t(axis)] > 0; }
  /// Of a frame. Where there is one axis of space, it is the height.
  [[nodiscard]] SampleShape shape() const;
  /// Bytes of what is read at once.
  [[nodiscard]] std::int64_t run_bytes() const { return run_ * layout_.bytes; }
  /// Bytes of all numbers, and where the first one lies in the file.
  [[nodiscard]] std::int64_t bytes() const;
  [[nodiscard]] std::int64_t offset() const { return offset_; }

  /// Reads a part of a frame to [c, height, width], by a buffer of run_bytes(). Number: real, or
  /// std::int64_t of integers.
  template <class Number>
  void read(const Descriptor& file, const FramePlace& place, const FramePart& part,
            std::span<std::byte> buffer, std::span<Number> to) const;
  /// "fields/density[3, 0, 17, 5]", number `index` of such a part.
  [[nodiscard]] std::string place_of(const FramePlace& place, const FramePart& part,
                                     std::int64_t index) const;

 private:
  [[nodiscard]] std::int64_t stride(ArrayAxis axis) const {
    return strides_[static_cast<std::size_t>(axis)];
  }
  [[nodiscard]] bool is_in_run(ArrayAxis axis) const { return has(axis) && stride(axis) < run_; }
  [[nodiscard]] std::int64_t width() const { return has(ArrayAxis::y) ? extent(ArrayAxis::x) : 1; }

  std::string name_;
  std::vector<ArrayAxis> axes_;
  NumberLayout layout_;
  std::array<std::int64_t, array_axes> extents_ = {1, 1, 1, 1, 1};
  std::array<std::int64_t, array_axes> strides_ = {};  // in numbers; 0: no such axis
  std::int64_t run_ = 1;                               // numbers side by side that are of one frame
  std::int64_t offset_ = 0;                            // of the first byte in the file
};

}  // namespace carousel
