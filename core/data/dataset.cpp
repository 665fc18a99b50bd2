// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/digest.hpp"
#include "core/data/checksums.hpp"

namespace carousel {
namespace {

std::string to_text(const hdf5::Shape& shape) {
  std::string text = "[";
  for (const hsize_t extent : shape)
    text += fmt::format("{}{}", text.size() > 1 ? ", " : "", extent);
  return text + "]";
}

void check_format(const hdf5::File& file) {
  if (const std::string format = file.string("/", "format"); format != "carousel dataset")
    fail(ExitCode::bad_data, "{}: this is a '{}', not a 'carousel dataset'", file.path(), format);
  if (const std::int64_t version = file.integer("/", "format_version");
      version != dataset_format_version)
    fail(ExitCode::bad_data, "{}: format version {}, this program reads version {}", file.path(),
         version, dataset_format_version);
}

hdf5::File checked(hdf5::File file) {
  check_format(file);
  return file;
}

std::vector<std::string> read_class_names(const hdf5::File& file) {
  std::vector<std::string> names = file.strings("/", "class_names");
  if (names.empty()) fail(ExitCode::bad_data, "{}: class_names is empty", file.path());
  std::vector<std::string> sorted = names;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    fail(ExitCode::bad_data, "{}: attribute class_names has '{}' twice", file.path(), *twice);
  return names;
}

/// What was never written would be read as zeros: black images, samples of the first class.
hdf5::DatasetInfo find(const hdf5::File& file, const std::string& dataset) {
  if (!file.contains(dataset)) fail(ExitCode::bad_data, "{}: {} is missing", file.path(), dataset);
  file.require_written(dataset);
  return file.info(dataset);
}

constexpr const char* axes_advice =
    "set the attribute axes of the file to \"n h w c\" or \"n c h w\"";

/// An attribute of the file, for all of its images.
Axes read_axes(const hdf5::File& file) {
  for (const char* object : {"/train", "/train/images", "/test", "/test/images"})
    if (file.contains(object) && file.has(object, "axes"))
      fail(ExitCode::bad_data, "{}: {} has an attribute axes; it belongs to the file, /",
           file.path(), object);
  if (!file.has("/", "axes")) return Axes::unstated;
  std::string stated;
  for (const std::string& text : file.strings("/", "axes"))
    stated += (stated.empty() ? "" : " ") + text;
  std::string axes;
  for (const char letter : stated)
    if (letter != ' ' && letter != ',') axes += static_cast<char>(std::tolower(letter));
  if (axes == "nchw") return Axes::channels_first;
  if (axes == "nhwc") return Axes::channels_last;
  fail(ExitCode::bad_data, "{}: attribute axes is '{}', it must be 'n c h w' or 'n h w c'",
       file.path(), stated);
}

/// Whether images that are said to be [n, c, h, w] must be meant as [n, h, w, c]: as many channels
/// as colours have at the end alone, or squares with fewer channels than sides that otherwise are
/// none. Square maps of many channels and lists of features are not meant so.
bool seems_channels_last(const hdf5::Shape& shape) {
  constexpr hsize_t most_colours = 4;
  const bool square = shape[1] == shape[2];
  if (shape[1] == 1 || shape[2] == shape[3]) return false;
  return shape[3] <= most_colours ? shape[1] > most_colours || square
                                  : square && shape[3] < shape[1];
}

/// Numbers that count or point. The type is the widest, so that an error shows a wrong one as it
/// stands in the file.
std::vector<std::int64_t> read_integers(const hdf5::File& file, const std::string& dataset) {
  if (file.info(dataset).type != "uint64") return file.read<std::int64_t>(dataset);
  const auto values = file.read<std::uint64_t>(dataset);
  const auto large = std::ranges::find_if(
      values, [](std::uint64_t value) { return !std::in_range<std::int64_t>(value); });
  if (large != values.end())
    fail(ExitCode::bad_data, "{}: {}[{}] = {} is too large", file.path(), dataset,
         large - values.begin(), *large);
  return {values.begin(), values.end()};
}

}  // namespace

Split::Split(const hdf5::File& file, const std::string& group, int classes, Axes axes) {
  const std::string images = group + "/images";
  const hdf5::DatasetInfo info = find(file, images);
  const bool files = info.shape.size() == 1;
  if (info.type != "uint8" || (!files && info.shape.size() != 4))
    fail(ExitCode::bad_data, "{}: {} is {} {}, it must be uint8 [n, c, h, w] or, of files, [bytes]",
         file.path(), images, info.type, to_text(info.shape));
  if (*std::min_element(info.shape.begin(), info.shape.end()) == 0)
    fail(ExitCode::bad_data, "{}: {} {} is empty", file.path(), images, to_text(info.shape));
  if (!files) check_pixels(file, images, info.shape, axes);

  const std::string labels = group + "/labels";
  const hdf5::DatasetInfo found = find(file, labels);
  const hdf5::Shape& label_shape = found.shape;
  if (label_shape.size() != 1 || label_shape[0] == 0 || (!files && label_shape[0] != info.shape[0]))
    fail(ExitCode::bad_data, "{}: {} is {}, it must be [{}], one per image", file.path(), labels,
         to_text(label_shape), files ? "n" : fmt::format("{}", info.shape[0]));
  if (!found.integers())
    fail(ExitCode::bad_data,
         "{}: {} holds {}, not integers; labels are numbers of classes, counted from 0",
         file.path(), labels, found.type);
  read_labels(file, labels, classes);
  if (files) read_places(file, group, static_cast<std::int64_t>(info.shape[0]));
  read_images(file, images, info);
}

void Split::check_pixels(const hdf5::File& file, const std::string& images,
                         const hdf5::Shape& shape, Axes axes) {
  constexpr hsize_t largest = 1 << 16;
  if (*std::max_element(shape.begin() + 1, shape.end()) > largest)
    fail(ExitCode::bad_data, "{}: {} {} has images that are too large", file.path(), images,
         to_text(shape));
  if (axes == Axes::unstated && seems_channels_last(shape))
    fail(ExitCode::bad_data, "{}: {} is {}, which reads as {} channels of {} x {} pixels; {}",
         file.path(), images, to_text(shape), shape[1], shape[2], shape[3], axes_advice);
  channels_last_ = axes == Axes::channels_last;
  const auto side = [&](std::size_t axis) { return static_cast<int>(shape[axis]); };
  shape_ = channels_last_ ? SampleShape{side(3), side(1), side(2)}
                          : SampleShape{side(1), side(2), side(3)};
  largest_ = {
      shape_.size(), std::int64_t{shape_.height} * shape_.width, {shape_.height, shape_.width}};
}

/// Of files: where each lies and how large its picture is.
void Split::read_places(const hdf5::File& file, const std::string& group, std::int64_t bytes) {
  const auto count = labels_.size();
  const auto read = [&](const std::string& dataset, const hdf5::Shape& wanted) {
    if (const hdf5::Shape shape = find(file, dataset).shape; shape != wanted)
      fail(ExitCode::bad_data, "{}: {} is {}, it must be {}", file.path(), dataset, to_text(shape),
           to_text(wanted));
    return read_integers(file, dataset);
  };
  const std::string offsets = group + "/offsets";
  offsets_ = read(offsets, {count + 1});
  if (offsets_.front() != 0 || offsets_.back() != bytes)
    fail(ExitCode::bad_data, "{}: {} goes from {} to {}, not from 0 to {}", file.path(), offsets,
         offsets_.front(), offsets_.back(), bytes);
  if (const auto at = std::ranges::adjacent_find(offsets_, std::greater_equal<>());
      at != offsets_.end())
    fail(ExitCode::bad_data, "{}: {}[{}] = {} is not above the one before", file.path(), offsets,
         at - offsets_.begin() + 1, *(at + 1));
  const std::string sizes = group + "/sizes";
  const std::vector<std::int64_t> sides = read(sizes, {count, 2});
  for (std::size_t k = 0; k < count; ++k) {
    const std::int64_t height = sides[2 * k];
    const std::int64_t width = sides[2 * k + 1];
    if (height < 1 || width < 1 || height > most_pixels || width > most_pixels / height)
      fail(ExitCode::bad_data, "{}: {}[{}] = {} x {} is no size of a picture", file.path(), sizes,
           k, height, width);
    sizes_.push_back({static_cast<int>(height), static_cast<int>(width)});
    largest_.include({offsets_[k + 1] - offsets_[k], height * width, sizes_.back()});
  }
  const bool one =
      std::ranges::all_of(sizes_, [&](const PictureSize& size) { return size == sizes_.front(); });
  shape_ = {Picture::channels, one ? sizes_.front().height : 0, one ? sizes_.front().width : 0};
}

PictureSize Split::size(std::int64_t index) const {
  return encoded() ? sizes_[static_cast<std::size_t>(index)]
                   : PictureSize{shape_.height, shape_.width};
}

void Split::read_images(const hdf5::File& file, const std::string& images,
                        const hdf5::DatasetInfo& info) {
  if (!info.contiguous) {
    loaded_ = file.read<std::uint8_t>(images);
    return;
  }
  if (info.offset < 0)
    fail(ExitCode::bad_data, "{}: {} lies in raw files outside of it; put it into this one",
         file.path(), images);
  if (info.file != file.path())
    fail(ExitCode::bad_data, "{}: {} lies in another file, {}; put it into this one", file.path(),
         images, info.file);
  file_ = Descriptor::open(file.path());
  offset_ = info.offset;
  if (const std::int64_t behind = offset_ + end(samples() - 1); behind > file_.size())
    fail(ExitCode::bad_data,
         "{}: truncated: {} ends at byte {}, the file at byte {}; copy it again", file.path(),
         images, behind, file_.size());
  checksums_ = BlockChecksums(file, images, offset_, end(samples() - 1));
}

void Split::read_labels(const hdf5::File& file, const std::string& labels, int classes) {
  const std::vector<std::int64_t> values = read_integers(file, labels);
  labels_.reserve(values.size());
  for (const std::int64_t label : values) {
    if (label < 0 || label >= classes)
      fail(ExitCode::bad_data, "{}: {}[{}] = {} is outside 0..{}", file.path(), labels,
           labels_.size(), label, classes - 1);
    labels_.push_back(static_cast<int>(label));
  }
}

void Split::read(std::int64_t index, std::span<std::uint8_t> sample) const {
  CAROUSEL_CHECK(index >= 0 && index < samples() && std::ssize(sample) == bytes(index),
                 "sample {} of {}, room for {} bytes", index, samples(), sample.size());
  checksums_.check(file_, begin(index), end(index));
  if (loaded_.empty())
    file_.read_at(offset_ + begin(index), std::as_writable_bytes(sample));
  else
    std::copy_n(loaded_.begin() + begin(index), sample.size(), sample.begin());
}

Dataset::Dataset(const std::string& path) : Dataset(checked(hdf5::File::open_with_reason(path))) {}

Dataset Dataset::own(const std::string& path) {
  return Dataset(checked(hdf5::File::open_own(path)));
}

Dataset::Dataset(const hdf5::File& file)
    : path_(file.path()),
      class_names_(read_class_names(file)),
      source_(file.string("/", "source")),
      licence_(file.string("/", "licence")),
      axes_(read_axes(file)),
      train_(file, "/train", classes(), axes_),
      test_(file, "/test", classes(), axes_),
      shape_(train_.shape_) {
  if (test_.shape_ != shape_) {
    if (!train_.encoded() || !test_.encoded())
      fail(ExitCode::bad_data, "{}: /test/images holds images of {}, /train of {}", path_,
           to_string(test_.shape_), to_string(shape_));
    shape_.height = shape_.width = 0;
  }
  read_normalisation(file);
}

void Dataset::read_normalisation(const hdf5::File& file) {
  mean_ = file.reals("/", "mean");
  std_ = file.reals("/", "std");
  // Where another axis is as long, it may be that of channels.
  const auto otherwise = [&](std::int64_t count) {
    if (encoded() || count != (channels_last() ? shape_.height : shape_.width))
      return std::string();
    return fmt::format(" of {} x {} pixels; if another axis holds channels, {}", shape_.height,
                       shape_.width, axes_advice);
  };
  for (const auto* values : {&mean_, &std_}) {
    const char* name = values == &mean_ ? "mean" : "std";
    if (std::ssize(*values) != shape_.channels)
      fail(ExitCode::bad_data, "{}: attribute {} has {} values for {} channels{}", path_, name,
           values->size(), shape_.channels, otherwise(std::ssize(*values)));
    for (const double value : *values) {
      if (!std::isfinite(value) || value > 1 || (values == &std_ && value <= 0))
        fail(ExitCode::bad_data,
             "{}: attribute {} holds {}; mean and std are of images scaled to [0, 1]", path_, name,
             value);
    }
  }
}

LargestSample Dataset::largest() const {
  LargestSample largest = train_.largest_;
  largest.include(test_.largest_);
  return largest;
}

std::uint64_t Split::checksum_of(std::int64_t block) const {
  if (!checksums_.empty()) return checksums_.values()[static_cast<std::size_t>(block)];
  const std::int64_t bytes = end(samples() - 1);
  if (loaded_.empty()) return checksum(file_, offset_, bytes, block);
  const std::int64_t begin = block * checksum_block;
  Checksum sum;
  sum.add(std::as_bytes(std::span(loaded_).subspan(
      static_cast<std::size_t>(begin),
      static_cast<std::size_t>(std::min(checksum_block, bytes - begin)))));
  return sum.value();
}

std::vector<std::uint64_t> Split::checksums() const {
  constexpr std::int64_t most = 1024;  // MiB that are read for it
  const std::int64_t blocks = checksum_blocks(end(samples() - 1));
  const std::int64_t looks = checksums_.empty() ? std::min(blocks, most) : blocks;
  std::vector<std::uint64_t> sums;
  for (std::int64_t k = 0; k < looks; ++k) sums.push_back(checksum_of(k * blocks / looks));
  return sums;
}

std::uint64_t Dataset::fingerprint() const {
  std::uint64_t sum = 0;
  std::uint64_t count = 0;
  const auto add = [&](const auto& values) {
    sum += digest_term(count++, std::uint64_t{std::size(values)});
    for (const auto value : values) {
      if constexpr (std::is_integral_v<decltype(value)>)
        sum += digest_term(count++, static_cast<std::uint64_t>(value));
      else
        sum += digest_term(count++, value);
    }
  };
  add(std::array{shape_.channels, shape_.height, shape_.width});
  if (channels_last()) add(std::string_view("n h w c"));
  for (const std::string& name : class_names_) add(name);
  add(mean_);
  add(std_);
  for (const Split* split : {&train_, &test_}) {
    add(split->labels());
    add(split->checksums());
  }
  return sum;
}

}  // namespace carousel
