// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/data_array.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <climits>
#include <sstream>

#include "core/base/check.hpp"
#include "core/base/text.hpp"

namespace carousel {
namespace {

constexpr std::string_view axis_letters = "ntczyx";

[[noreturn]] void wrong_axes(const std::string& key, const std::string& axes) {
  fail(ExitCode::usage,
       "{} = {} must name each axis once, by n (samples), t (time), c (channels), z, y and x, with "
       "a blank between two, as in \"n t y x c\"",
       key, in_quotes(axes));
}

}  // namespace

std::vector<ArrayAxis> read_axes(const std::string& key, const std::string& axes,
                                 const std::string& array, const hdf5::Shape& shape) {
  std::string text = axes;
  if (text.empty()) {
    if (shape.size() > 2)
      fail(ExitCode::usage,
           "{} is missing: {} has {} axes ({}), and nothing says which is which; as in \"n c y x\"",
           key, array, shape.size(), fmt::join(shape, " x "));
    text = shape.size() == 2 ? "n c" : "n";
  }
  std::vector<ArrayAxis> result;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t at = word.size() == 1 ? axis_letters.find(word) : std::string::npos;
    if (at == std::string::npos) wrong_axes(key, text);
    const auto axis = static_cast<ArrayAxis>(at);
    if (std::ranges::find(result, axis) != result.end()) wrong_axes(key, text);
    result.push_back(axis);
  }
  if (result.empty()) wrong_axes(key, text);
  if (result.size() != shape.size())
    fail(ExitCode::usage, "{} = {} names {} axes, and {} has {} ({})", key, in_quotes(text),
         result.size(), array, shape.size(), fmt::join(shape, " x "));
  const auto has = [&](ArrayAxis axis) { return std::ranges::find(result, axis) != result.end(); };
  if (has(ArrayAxis::z) && !(has(ArrayAxis::y) && has(ArrayAxis::x)))
    fail(ExitCode::usage, "{} = {} names z; volumes have y and x as well", key, in_quotes(text));
  return result;
}

hdf5::DatasetInfo array_info(const hdf5::File& file, const std::string& name) {
  hdf5::DatasetInfo info = file.info(name);
  if (!info.numbers)
    fail(ExitCode::bad_data, "{}: {} holds {}; integers, float16, float32 and float64 are read",
         file.path(), name, info.type);
  if (info.file != file.path())
    fail(ExitCode::bad_data, "{}: {} lies in another file, {}; name that one", file.path(), name,
         info.file);
  file.require_written(name);
  return info;
}

DataArray::DataArray(const hdf5::File& file, const std::string& name,
                     const std::vector<ArrayAxis>& axes)
    : name_(name), axes_(axes), path_(file.path()) {
  const hdf5::DatasetInfo info = array_info(file, name);
  layout_ = *info.numbers;
  CAROUSEL_CHECK(info.shape.size() == axes.size(), "{} axes of {}", axes.size(), name);
  constexpr std::int64_t most = std::int64_t{1} << 50;  // numbers, which no file has
  std::int64_t count = 1;
  for (std::size_t k = axes.size(); k-- > 0;) {
    const auto at = static_cast<std::size_t>(axes[k]);
    if (info.shape[k] == 0 || info.shape[k] > std::size_t{INT_MAX} ||
        static_cast<std::int64_t>(info.shape[k]) > most / count)
      fail(ExitCode::bad_data, "{}: {} is of {}", file.path(), name, fmt::join(info.shape, " x "));
    extents_[at] = static_cast<std::int64_t>(info.shape[k]);
    strides_[at] = count;
    count *= extents_[at];
  }
  for (std::size_t k = axes.size(); k-- > 0;) {
    if (axes[k] == ArrayAxis::n || axes[k] == ArrayAxis::t) break;
    run_ *= extent(axes[k]);
  }
  if (info.contiguous)
    offset_ = info.offset;
  else
    keep_chunks(file);
  const std::int64_t file_bytes = Descriptor::open(file.path()).size();
  for_each_run([&](std::int64_t offset, std::int64_t bytes) {
    if (offset < 0 || bytes < 0 || offset > file_bytes || bytes > file_bytes - offset)
      fail(ExitCode::bad_data,
           "{}: truncated: {} goes on to byte {}, the file ends at byte {}; copy it again",
           file.path(), name, offset + bytes, file_bytes);
  });
  if (info.contiguous) checksums_ = BlockChecksums(file, name, offset_, size() * layout_.bytes);
}

void DataArray::keep_chunks(const hdf5::File& file) {
  chunks_ = file.chunks(name_);
  if (!chunks_.other_filter.empty())
    fail(ExitCode::bad_data,
         "{}: {} is packed by {}, which needs a plug-in; pack it by deflate: h5repack -f "
         "{}:GZIP=4 {} NEW",
         file.path(), name_, chunks_.other_filter, name_, file.path());
  std::int64_t numbers = 1;
  std::int64_t chunks = 1;
  for (std::size_t k = axes_.size(); k-- > 0;) {
    const auto at = static_cast<std::size_t>(axes_[k]);
    chunk_extents_[at] = static_cast<std::int64_t>(chunks_.extents[k]);
    chunk_strides_[at] = numbers;
    chunk_steps_[at] = chunks;
    numbers *= chunk_extents_[at];
    chunks *= (extents_[at] + chunk_extents_[at] - 1) / chunk_extents_[at];
  }
  CAROUSEL_CHECK(chunks == std::ssize(chunks_.places), "{} chunks of {}", chunks, name_);
}

SampleShape DataArray::shape() const {
  return {static_cast<int>(extent(ArrayAxis::c)), static_cast<int>(extent(down())),
          static_cast<int>(width()), static_cast<int>(extent(ArrayAxis::z))};
}

std::int64_t DataArray::size() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents_) count *= extent;
  return count;
}

std::int64_t DataArray::pieces(std::int64_t most) const {
  return chunks_.places.empty() ? (size() * layout_.bytes + most - 1) / most
                                : std::ssize(chunks_.places);
}

hdf5::ChunkPlace DataArray::piece(std::int64_t index, std::int64_t most) const {
  hdf5::ChunkPlace place{.offset = offset_ + index * most,
                         .bytes = size() * layout_.bytes - index * most};
  if (!chunks_.places.empty()) place = chunks_.places[static_cast<std::size_t>(index)];
  place.bytes = std::min(place.bytes, most);
  return place;
}

std::int64_t DataArray::chunk_bytes() const {
  std::int64_t bytes = layout_.bytes;
  for (const std::int64_t extent : chunk_extents_) bytes *= extent;
  return bytes;
}

/// That a whole frame lies in.
std::int64_t DataArray::chunks_of_frame() const {
  std::int64_t count = 1;
  for (const ArrayAxis axis : {ArrayAxis::c, ArrayAxis::z, ArrayAxis::y, ArrayAxis::x})
    count *= (extent(axis) + chunk_extent(axis) - 1) / chunk_extent(axis);
  return count;
}

/// Of the largest one, as stored or as it is while it is unpacked.
std::int64_t DataArray::stored_chunk_bytes() const {
  std::int64_t most = chunk_bytes() + 4;
  for (const hdf5::ChunkPlace& place : chunks_.places) most = std::max(most, place.bytes);
  return most;
}

ArrayRoom ArrayRoom::of(std::span<const DataArray* const> arrays) {
  ArrayRoom room;
  for (const DataArray* array : arrays) {
    room.run = std::max(room.run, array->run_bytes());
    if (array->chunks_.places.empty()) continue;
    room.chunks += array->chunks_of_frame();
    room.chunk_bytes = std::max(room.chunk_bytes, array->stored_chunk_bytes());
  }
  return room;
}

void ArrayRoom::include(const ArrayRoom& other) {
  run = std::max(run, other.run);
  chunks = std::max(chunks, other.chunks);
  chunk_bytes = std::max(chunk_bytes, other.chunk_bytes);
}

ArrayBuffer::ArrayBuffer(const ArrayRoom& room)
    : run_(static_cast<std::size_t>(room.run)), chunks_(static_cast<std::size_t>(room.chunks)) {
  if (room.chunks > 0) spare_.reserve(static_cast<std::size_t>(room.chunk_bytes));
  for (Chunk& chunk : chunks_) chunk.bytes.reserve(static_cast<std::size_t>(room.chunk_bytes));
}

/// The bytes of a chunk, of those that were read last or from the file.
const std::byte* DataArray::chunk(const Descriptor& file, std::size_t index,
                                  ArrayBuffer& buffer) const {
  CAROUSEL_CHECK(!buffer.chunks_.empty(), "no room for chunks of {}", name_);
  ArrayBuffer::Chunk* oldest = &buffer.chunks_.front();
  for (ArrayBuffer::Chunk& chunk : buffer.chunks_) {
    if (chunk.array == this && chunk.index == index) {
      chunk.used = ++buffer.clock_;
      return chunk.bytes.data();
    }
    if (chunk.used < oldest->used) oldest = &chunk;
  }
  const hdf5::ChunkPlace& place = chunks_.places[index];
  oldest->array = nullptr;  // until it is whole
  oldest->bytes.resize(static_cast<std::size_t>(place.bytes));
  file.read_at(place.offset, oldest->bytes);
  if (!unpack_chunk(chunks_, place, layout_.bytes, static_cast<std::size_t>(chunk_bytes()),
                    oldest->bytes, buffer.spare_))
    fail(ExitCode::bad_data, "{}: chunk {} of {} of {} is damaged; copy the file again", path_,
         index + 1, chunks_.places.size(), name_);
  oldest->array = this;
  oldest->index = index;
  oldest->used = ++buffer.clock_;
  return oldest->bytes.data();
}

template <class Number>
void DataArray::read(const Descriptor& file, const FramePlace& place, const FramePart& part,
                     ArrayBuffer& buffer, std::span<Number> to) const {
  if (chunks_.places.empty())
    read_runs(file, place, part, buffer, to);
  else
    read_chunks(file, place, part, buffer, to);
  if (!part.mirrored) return;
  // Of one axis, that is mirrored.
  const auto width = static_cast<std::size_t>(has(ArrayAxis::y) ? part.width : part.height);
  for (std::size_t first = 0; first < to.size(); first += width)
    std::ranges::reverse(to.subspan(first, width));
}

template <class Number>
void DataArray::read_runs(const Descriptor& file, const FramePlace& place, const FramePart& part,
                          ArrayBuffer& buffer, std::span<Number> to) const {
  const std::int64_t base = place.sample * stride(ArrayAxis::n) + place.time * stride(ArrayAxis::t);
  const std::int64_t across = has(ArrayAxis::y) ? stride(ArrayAxis::x) : 0;
  const std::int64_t bytes = layout_.bytes;
  const std::span<std::byte> run =
      std::span(buffer.run_).first(static_cast<std::size_t>(run_bytes()));
  std::int64_t in_buffer = -1;  // the run that the buffer holds
  std::size_t row = 0;
  for (std::int64_t slice = 0; slice < extent(ArrayAxis::c) * part.depth; ++slice) {
    const std::int64_t slice_base = base + slice / part.depth * stride(ArrayAxis::c) +
                                    slice % part.depth * stride(ArrayAxis::z);
    for (int y = part.top; y < part.top + part.height; ++y, ++row) {
      const std::span<Number> line = to.subspan(row * static_cast<std::size_t>(part.width),
                                                static_cast<std::size_t>(part.width));
      const std::int64_t first = slice_base + y * stride(down()) + part.left * across;
      const std::int64_t last = first + (part.width - 1) * across;
      // One run holds the whole line, unless samples or times lie further inside than x.
      for (int x = 0; x < part.width;) {
        const std::int64_t number = first + x * across;
        const bool whole = number / run_ == last / run_;
        const int count = whole ? part.width - x : 1;
        if (number / run_ != in_buffer) {
          in_buffer = number / run_;
          const std::int64_t begin = in_buffer * run_ * bytes;
          checksums_.check(file, begin, begin + std::ssize(run));
          file.read_at(offset_ + begin, run);
        }
        decode_numbers(layout_, run.data() + number % run_ * bytes,
                       across == 0 ? bytes : across * bytes,
                       line.subspan(static_cast<std::size_t>(x), static_cast<std::size_t>(count)));
        x += count;
      }
    }
  }
}

template <class Number>
void DataArray::read_chunks(const Descriptor& file, const FramePlace& place, const FramePart& part,
                            ArrayBuffer& buffer, std::span<Number> to) const {
  const auto of = [](const auto& values, ArrayAxis axis) {
    return values[static_cast<std::size_t>(axis)];
  };
  // Of a place along an axis, the chunk and the number in it.
  const auto chunk_at = [&](ArrayAxis axis, std::int64_t at) {
    return at / chunk_extent(axis) * of(chunk_steps_, axis);
  };
  const auto number_at = [&](ArrayAxis axis, std::int64_t at) {
    return at % chunk_extent(axis) * of(chunk_strides_, axis);
  };
  const bool flat = !has(ArrayAxis::y);
  const std::int64_t across = flat ? 0 : of(chunk_strides_, ArrayAxis::x);
  const std::int64_t bytes = layout_.bytes;
  const std::int64_t first_chunk =
      chunk_at(ArrayAxis::n, place.sample) + chunk_at(ArrayAxis::t, place.time);
  const std::int64_t first_number =
      number_at(ArrayAxis::n, place.sample) + number_at(ArrayAxis::t, place.time);
  std::size_t row = 0;
  for (std::int64_t slice = 0; slice < extent(ArrayAxis::c) * part.depth; ++slice) {
    const std::int64_t c = slice / part.depth;
    const std::int64_t z = slice % part.depth;
    const std::int64_t chunk_of_slice =
        first_chunk + chunk_at(ArrayAxis::c, c) + chunk_at(ArrayAxis::z, z);
    const std::int64_t number_of_slice =
        first_number + number_at(ArrayAxis::c, c) + number_at(ArrayAxis::z, z);
    for (std::int64_t y = part.top; y < part.top + part.height; ++y, ++row) {
      const std::span<Number> line = to.subspan(row * static_cast<std::size_t>(part.width),
                                                static_cast<std::size_t>(part.width));
      const std::int64_t chunk_of_line = chunk_of_slice + chunk_at(down(), y);
      const std::int64_t number_of_line = number_of_slice + number_at(down(), y);
      for (std::int64_t x = part.left; x < part.left + part.width;) {
        const std::int64_t end = flat
                                     ? part.left + part.width
                                     : std::min<std::int64_t>(part.left + part.width,
                                                              (x / chunk_extent(ArrayAxis::x) + 1) *
                                                                  chunk_extent(ArrayAxis::x));
        const std::int64_t index = chunk_of_line + (flat ? 0 : chunk_at(ArrayAxis::x, x));
        const std::int64_t number = number_of_line + (flat ? 0 : number_at(ArrayAxis::x, x));
        const std::byte* const numbers = chunk(file, static_cast<std::size_t>(index), buffer);
        decode_numbers(layout_, numbers + number * bytes, across == 0 ? bytes : across * bytes,
                       line.subspan(static_cast<std::size_t>(x - part.left),
                                    static_cast<std::size_t>(end - x)));
        x = end;
      }
    }
  }
}

template void DataArray::read(const Descriptor&, const FramePlace&, const FramePart&, ArrayBuffer&,
                              std::span<float>) const;
template void DataArray::read(const Descriptor&, const FramePlace&, const FramePart&, ArrayBuffer&,
                              std::span<double>) const;
template void DataArray::read(const Descriptor&, const FramePlace&, const FramePart&, ArrayBuffer&,
                              std::span<std::int64_t>) const;

std::string DataArray::place_of(const FramePlace& place, const FramePart& part,
                                std::int64_t index) const {
  const std::int64_t slice = std::int64_t{part.height} * part.width;
  const auto turned = [&](std::int64_t at, std::int64_t extent, bool turns) {
    return part.mirrored && turns ? extent - 1 - at : at;
  };
  const bool flat = !has(ArrayAxis::y);
  const std::int64_t down = part.top + turned(index % slice / part.width, part.height, flat);
  const std::int64_t across = part.left + turned(index % part.width, part.width, !flat);
  std::vector<std::int64_t> indices;
  for (const ArrayAxis axis : axes_) {
    switch (axis) {
      case ArrayAxis::n:
        indices.push_back(place.sample);
        break;
      case ArrayAxis::t:
        indices.push_back(place.time);
        break;
      case ArrayAxis::c:
        indices.push_back(index / slice / part.depth);
        break;
      case ArrayAxis::z:
        indices.push_back(index / slice % part.depth);
        break;
      case ArrayAxis::y:
        indices.push_back(down);
        break;
      case ArrayAxis::x:
        indices.push_back(flat ? down : across);
        break;
    }
  }
  return fmt::format("{}[{}]", name_, fmt::join(indices, ", "));
}

}  // namespace carousel
