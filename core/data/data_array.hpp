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
#include "core/data/block_checksums.hpp"
#include "core/data/chunk_reader.hpp"
#include "core/model/tensor_format.hpp"

namespace carousel {

/// n: samples or trajectories; t: time; c: channels; z, y, x: space, of two axes y and x, of one y
/// alone or x alone.
enum class ArrayAxis : std::uint8_t { n, t, c, z, y, x };
inline constexpr int array_axes = 6;

/// The axes of an array in the order that it has them, "n t y x c"; of one or two axes, where
/// nothing is said, "n" and "n c". Error(usage) that begins with `key` for others, and where an
/// array has not as many.
[[nodiscard]] std::vector<ArrayAxis> read_axes(const std::string& key, const std::string& axes,
                                               const std::string& array, const hdf5::Shape& shape);

/// What HDF5 says of an array whose numbers can be read. Error(bad_data) for what holds no numbers,
/// keeps them in another file, or was never written.
[[nodiscard]] hdf5::DatasetInfo array_info(const hdf5::File& file, const std::string& name);

/// A part of a frame: of every slice the pixels [top, top + height) x [left, left + width), from
/// right to left where it is mirrored.
struct FramePart {
  int top = 0;
  int left = 0;
  int height = 0;
  int width = 0;
  bool mirrored = false;
  int depth = 1;  // slices, which are all that the frame has

  [[nodiscard]] static FramePart whole(const SampleShape& frame) {
    return {.height = frame.height, .width = frame.width, .depth = frame.depth};
  }
  /// Of one channel.
  [[nodiscard]] std::size_t pixels() const {
    return static_cast<std::size_t>(depth) * static_cast<std::size_t>(height) *
           static_cast<std::size_t>(width);
  }
};

/// A frame of an array.
struct FramePlace {
  std::int64_t sample = 0;
  std::int64_t time = 0;
};

class DataArray;

/// What a thread needs to read arrays: bytes side by side, and the chunks of one frame.
struct ArrayRoom {
  std::int64_t run = 0;
  std::int64_t chunks = 0;
  std::int64_t chunk_bytes = 0;  // of the largest one, as stored or unpacked

  /// Of arrays that are read one after the other, such as those of one file.
  [[nodiscard]] static ArrayRoom of(std::span<const DataArray* const> arrays);
  /// Lets it serve for others, such as those of another file.
  void include(const ArrayRoom& other);
  [[nodiscard]] std::int64_t bytes() const {
    return run + (chunks > 0 ? chunks + 1 : 0) * chunk_bytes;
  }
};

/// What a thread reads arrays by.
class ArrayBuffer {
 public:
  explicit ArrayBuffer(const ArrayRoom& room);

 private:
  friend class DataArray;
  struct Chunk {
    const DataArray* array = nullptr;
    std::size_t index = 0;
    std::uint64_t used = 0;  // when it was used last
    std::vector<std::byte> bytes;
  };

  std::vector<std::byte> run_;
  std::vector<Chunk> chunks_;     // that were read last
  std::vector<std::byte> spare_;  // to unpack one
  std::uint64_t clock_ = 0;
};

class DataArray {
 public:
  /// Error(bad_data) for what holds no numbers, keeps them elsewhere, or in a way that needs a
  /// plug-in of HDF5.
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
  /// Calls visit(offset, bytes) for all runs of bytes in the file that hold its numbers.
  template <class Visit>
  void for_each_run(const Visit& visit) const {
    if (chunks_.places.empty()) return visit(offset_, size() * layout_.bytes);
    for (const hdf5::ChunkPlace& place : chunks_.places) visit(place.offset, place.bytes);
  }
  /// Pieces of at most `most` bytes that lie evenly in the file: of chunks, their begins.
  [[nodiscard]] std::int64_t pieces(std::int64_t most) const;
  [[nodiscard]] hdf5::ChunkPlace piece(std::int64_t index, std::int64_t most) const;
  /// How many numbers it has.
  [[nodiscard]] std::int64_t size() const;

  /// Reads a part of a frame to [c, depth, height, width], by a buffer that has room. Number:
  /// float, double, or std::int64_t of integers. Error(bad_data) for a damaged chunk, or a damaged
  /// MiB of what was imported.
  template <class Number>
  void read(const Descriptor& file, const FramePlace& place, const FramePart& part,
            ArrayBuffer& buffer, std::span<Number> to) const;
  /// "fields/density[3, 0, 17, 5]", number `index` of such a part.
  [[nodiscard]] std::string place_of(const FramePlace& place, const FramePart& part,
                                     std::int64_t index) const;

 private:
  friend struct ArrayRoom;
  [[nodiscard]] std::int64_t stride(ArrayAxis axis) const {
    return strides_[static_cast<std::size_t>(axis)];
  }
  /// Of a chunk, 1 along axes that the array has not.
  [[nodiscard]] std::int64_t chunk_extent(ArrayAxis axis) const {
    return chunk_extents_[static_cast<std::size_t>(axis)];
  }
  [[nodiscard]] std::int64_t run_bytes() const {
    return chunks_.places.empty() ? run_ * layout_.bytes : 0;
  }
  [[nodiscard]] std::int64_t chunk_bytes() const;
  [[nodiscard]] std::int64_t chunks_of_frame() const;
  [[nodiscard]] std::int64_t stored_chunk_bytes() const;
  void keep_chunks(const hdf5::File& file);
  [[nodiscard]] const std::byte* chunk(const Descriptor& file, std::size_t index,
                                       ArrayBuffer& buffer) const;
  template <class Number>
  void read_runs(const Descriptor& file, const FramePlace& place, const FramePart& part,
                 ArrayBuffer& buffer, std::span<Number> to) const;
  template <class Number>
  void read_chunks(const Descriptor& file, const FramePlace& place, const FramePart& part,
                   ArrayBuffer& buffer, std::span<Number> to) const;
  /// The axis along rows of a frame, and whether it has columns as well.
  [[nodiscard]] ArrayAxis down() const { return has(ArrayAxis::y) ? ArrayAxis::y : ArrayAxis::x; }
  [[nodiscard]] std::int64_t width() const { return has(ArrayAxis::y) ? extent(ArrayAxis::x) : 1; }

  std::string name_;
  std::vector<ArrayAxis> axes_;
  NumberLayout layout_;
  std::array<std::int64_t, array_axes> extents_ = {1, 1, 1, 1, 1, 1};
  std::array<std::int64_t, array_axes> strides_ = {};  // in numbers; 0: no such axis
  std::int64_t run_ = 1;                               // numbers side by side that are of one frame
  std::int64_t offset_ = 0;   // of the first byte in the file, where all lie in one piece
  BlockChecksums checksums_;  // likewise, where an import has made some
  hdf5::ChunkLayout chunks_;  // otherwise
  std::string path_;          // of the file, for errors
  std::array<std::int64_t, array_axes> chunk_extents_ = {1, 1, 1, 1, 1, 1};
  std::array<std::int64_t, array_axes> chunk_strides_ = {};  // of numbers in a chunk
  std::array<std::int64_t, array_axes> chunk_steps_ = {};    // of chunks in `places`
};

}  // namespace carousel
