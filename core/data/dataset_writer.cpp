// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset_writer.hpp"

#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "core/base/check.hpp"
#include "core/data/block_checksums.hpp"
#include "core/data/checksums.hpp"
#include "core/data/dataset.hpp"

namespace carousel {
namespace {

const char* group_of(Half half) {
  return half == Half::train ? "/train" : "/test";
}

/// A file beside `path` that nobody else has, though others may write the same data set.
std::string own_file(const std::string& path) {
  for (int k = 0;; ++k) {
    std::string name = fmt::format("{}.{}.{}.partial", path, getpid(), k);
    if (make_file(name)) return name;
  }
}

}  // namespace

DatasetWriter::DatasetWriter(const std::string& path, DatasetSpec spec)
    : path_(path),
      partial_(own_file(path)),
      spec_(std::move(spec)),
      file_(hdf5::File::create(partial_)),
      sums_(static_cast<std::size_t>(spec_.shape.channels)),
      squares_(sums_.size()) {
  for (const Half half : both_halves) lay_out(half);
  file_.set("/", "format", "carousel dataset");
  file_.set("/", "format_version", dataset_format_version);
  file_.set_list("/", "class_names", spec_.class_names);
  file_.set("/", "source", spec_.source);
  file_.set("/", "licence", spec_.licence);
  bytes_ = Descriptor::update(partial_);
}

void DatasetWriter::lay_out(Half half) {
  const std::string group = group_of(half);
  const std::vector<int>& labels = spec_.labels[index_of(half)];
  const std::vector<std::int64_t>& files = spec_.file_bytes[index_of(half)];
  Array& images = images_[index_of(half)];
  images.name = group + "/images";
  if (files.empty()) {
    const auto extent = [](int size) { return static_cast<hsize_t>(size); };
    images.bytes = std::ssize(labels) * spec_.shape.size();
    images.offset = file_.reserve<std::uint8_t>(
        images.name, {labels.size(), extent(spec_.shape.channels), extent(spec_.shape.height),
                      extent(spec_.shape.width)});
  } else {
    CAROUSEL_CHECK(files.size() == labels.size(), "{} files, {} labels", files.size(),
                   labels.size());
    images.begins.push_back(0);
    for (const std::int64_t bytes : files) images.begins.push_back(images.begins.back() + bytes);
    images.sizes.resize(2 * files.size());
    images.bytes = images.begins.back();
    images.offset = file_.reserve<std::uint8_t>(images.name, {static_cast<hsize_t>(images.bytes)});
    file_.write(group + "/offsets", std::span<const std::int64_t>(images.begins),
                {images.begins.size()}, hdf5::Layout::checked);
  }
  file_.write(group + "/labels", std::span<const int>(labels), {labels.size()},
              hdf5::Layout::checked);
}

DatasetWriter::~DatasetWriter() {
  std::error_code unknown;
  if (!partial_.empty()) std::filesystem::remove(partial_, unknown);
}

void DatasetWriter::put(Half half, std::int64_t index, std::span<const std::uint8_t> image) {
  const std::int64_t size = spec_.shape.size();
  write(half, index * size, (index + 1) * size, std::as_bytes(image));
  if (half != Half::train) return;
  const std::size_t plane = image.size() / sums_.size();
  for (std::size_t c = 0; c < sums_.size(); ++c) count(image.subspan(c * plane, plane), c, 1);
  values_ += plane;
}

void DatasetWriter::put(Half half, std::int64_t index, std::span<const std::byte> file,
                        const Picture& picture) {
  Array& images = images_[index_of(half)];
  const auto k = static_cast<std::size_t>(index);
  write(half, images.begins.at(k), images.begins.at(k + 1), file);
  images.sizes[2 * k] = picture.size.height;
  images.sizes[2 * k + 1] = picture.size.width;
  if (half != Half::train) return;
  for (std::size_t c = 0; c < sums_.size(); ++c)
    count(std::span(picture.pixels).subspan(c), c, sums_.size());
  values_ += picture.pixels.size() / sums_.size();
}

void DatasetWriter::write(Half half, std::int64_t begin, std::int64_t end,
                          std::span<const std::byte> bytes) {
  const Array& images = images_[index_of(half)];
  CAROUSEL_CHECK(std::ssize(bytes) == end - begin && begin >= 0 && end <= images.bytes,
                 "an image of {} bytes for {} at {}", bytes.size(), end - begin, begin);
  bytes_.write_at(images.offset + begin, bytes);
}

/// Every `stride`th of the values is of a channel.
void DatasetWriter::count(std::span<const std::uint8_t> values, std::size_t channel,
                          std::size_t stride) {
  std::uint64_t sum = 0;
  std::uint64_t squares = 0;
  for (std::size_t k = 0; k < values.size(); k += stride) {
    const std::uint64_t value = values[k];
    sum += value;
    squares += value * value;
  }
  sums_[channel] += sum;
  squares_[channel] += squares;
}

void DatasetWriter::add_statistics() {
  const auto values = static_cast<double>(values_);
  std::vector<double> mean;
  std::vector<double> deviation;
  for (std::size_t c = 0; c < sums_.size(); ++c) {
    mean.push_back(static_cast<double>(sums_[c]) / values / 255);
    const double square = static_cast<double>(squares_[c]) / values / (255.0 * 255.0);
    const double found = std::sqrt(std::max(0.0, square - mean.back() * mean.back()));
    deviation.push_back(found > 0 ? found : 1);  // a channel that is the same everywhere
  }
  file_.set_list("/", "mean", mean);
  file_.set_list("/", "std", deviation);
}

void DatasetWriter::add_checksums(const Array& array) {
  std::vector<std::uint64_t> sums;
  for (std::int64_t k = 0; k < checksum_blocks(array.bytes); ++k)
    sums.push_back(checksum(bytes_, array.offset, array.bytes, k));
  file_.write(checksums_of(array.name), sums);
}

void DatasetWriter::finish() {
  add_statistics();
  for (const Half half : both_halves) {
    const Array& images = images_[index_of(half)];
    if (!images.sizes.empty())
      file_.write(std::string(group_of(half)) + "/sizes", std::span<const int>(images.sizes),
                  {images.sizes.size() / 2, 2}, hdf5::Layout::checked);
    add_checksums(images);
  }
  file_.close();
  bytes_.sync();
  bytes_.close();
  rename_file(partial_, path_);
  partial_.clear();
  sync_folder_of(path_);
}

}  // namespace carousel
