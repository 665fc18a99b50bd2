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

constexpr std::string_view axis_letters = "ntcyx";

[[noreturn]] void wrong_axes(const std::string& key, const std::string& axes) {
  fail(ExitCode::usage,
       "{} = {} must name each axis once, by n (samples), t (time), c (channels), y and x, with a "
       "blank between two, as in \"n t y x c\"",
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
  return result;
}

DataArray::DataArray(const hdf5::File& file, const std::string& name,
                     const std::vector<ArrayAxis>& axes)
    : name_(name), axes_(axes) {
  const hdf5::DatasetInfo info = file.info(name);
  if (!info.numbers)
    fail(ExitCode::bad_data, "{}: {} holds {}; integers, float16, float32 and float64 are read",
         file.path(), name, info.type);
  layout_ = *info.numbers;
  CAROUSEL_CHECK(info.shape.size() == axes.size(), "{} axes of {}", axes.size(), name);
  std::int64_t count = 1;
  for (std::size_t k = axes.size(); k-- > 0;) {
    const auto at = static_cast<std::size_t>(axes[k]);
    if (info.shape[k] == 0 || info.shape[k] > std::size_t{INT_MAX})
      fail(ExitCode::bad_data, "{}: {} is of {}", file.path(), name, fmt::join(info.shape, " x "));
    extents_[at] = static_cast<std::int64_t>(info.shape[k]);
    strides_[at] = count;
    count *= extents_[at];
  }
  for (std::size_t k = axes.size(); k-- > 0;) {
    if (axes[k] == ArrayAxis::n || axes[k] == ArrayAxis::t) break;
    run_ *= extent(axes[k]);
  }
  if (!info.contiguous)
    fail(ExitCode::bad_data,
         "{}: {} is kept in chunks; write it in one piece: h5repack -l {}:CONTI {} NEW",
         file.path(), name, name, file.path());
  file.require_written(name);
  if (info.file != file.path())
    fail(ExitCode::bad_data, "{}: {} lies in another file, {}; name that one", file.path(), name,
         info.file);
  offset_ = info.offset;
}

SampleShape DataArray::shape() const {
  const bool flat = !has(ArrayAxis::y);
  return {static_cast<int>(extent(ArrayAxis::c)),
          static_cast<int>(flat ? extent(ArrayAxis::x) : extent(ArrayAxis::y)),
          static_cast<int>(width())};
}

std::int64_t DataArray::bytes() const {
  std::int64_t count = layout_.bytes;
  for (const std::int64_t extent : extents_) count *= extent;
  return count;
}

template <class Number>
void DataArray::read(const Descriptor& file, const FramePlace& place, const FramePart& part,
                     std::span<std::byte> buffer, std::span<Number> to) const {
  const std::int64_t base = place.sample * stride(ArrayAxis::n) + place.time * stride(ArrayAxis::t);
  // Where there is one axis of space, it goes down.
  const std::int64_t down = has(ArrayAxis::y) ? stride(ArrayAxis::y) : stride(ArrayAxis::x);
  const std::int64_t across = has(ArrayAxis::y) ? stride(ArrayAxis::x) : 0;
  const std::int64_t bytes = layout_.bytes;
  std::int64_t in_buffer = -1;  // the run that the buffer holds
  std::size_t row = 0;
  for (std::int64_t c = 0; c < extent(ArrayAxis::c); ++c) {
    for (int y = part.top; y < part.top + part.height; ++y, ++row) {
      const std::span<Number> line = to.subspan(row * static_cast<std::size_t>(part.width),
                                                static_cast<std::size_t>(part.width));
      const std::int64_t first = base + c * stride(ArrayAxis::c) + y * down + part.left * across;
      const std::int64_t last = first + (part.width - 1) * across;
      // One run holds the whole line, unless samples or times lie further inside than x.
      for (int x = 0; x < part.width;) {
        const std::int64_t number = first + x * across;
        const bool whole = number / run_ == last / run_;
        const int count = whole ? part.width - x : 1;
        if (number / run_ != in_buffer) {
          in_buffer = number / run_;
          file.read_at(offset_ + in_buffer * run_ * bytes,
                       buffer.first(static_cast<std::size_t>(run_ * bytes)));
        }
        decode_numbers(layout_, buffer.data() + number % run_ * bytes,
                       across == 0 ? bytes : across * bytes,
                       line.subspan(static_cast<std::size_t>(x), static_cast<std::size_t>(count)));
        x += count;
      }
      if (part.mirrored && has(ArrayAxis::y)) std::ranges::reverse(line);
    }
    // Of one axis, that is mirrored.
    const auto rows = static_cast<std::size_t>(part.height);
    if (part.mirrored && !has(ArrayAxis::y)) std::ranges::reverse(to.subspan(row - rows, rows));
  }
}

template void DataArray::read(const Descriptor&, const FramePlace&, const FramePart&,
                              std::span<std::byte>, std::span<float>) const;
template void DataArray::read(const Descriptor&, const FramePlace&, const FramePart&,
                              std::span<std::byte>, std::span<double>) const;
template void DataArray::read(const Descriptor&, const FramePlace&, const FramePart&,
                              std::span<std::byte>, std::span<std::int64_t>) const;

std::string DataArray::place_of(const FramePlace& place, const FramePart& part,
                                std::int64_t index) const {
  const std::int64_t plane = std::int64_t{part.height} * part.width;
  const auto turned = [&](std::int64_t at, std::int64_t extent, bool turns) {
    return part.mirrored && turns ? extent - 1 - at : at;
  };
  const bool flat = !has(ArrayAxis::y);
  const std::int64_t down = part.top + turned(index % plane / part.width, part.height, flat);
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
        indices.push_back(index / plane);
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
