// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset_writer.hpp"

#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "core/base/check.hpp"
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
  const auto extent = [](int size) { return static_cast<hsize_t>(size); };
  for (const Half half : both_halves) {
    const std::vector<int>& labels = spec_.labels[index_of(half)];
    Array& images = images_[index_of(half)];
    images.name = std::string(group_of(half)) + "/images";
    images.bytes = std::ssize(labels) * spec_.shape.size();
    images.offset = file_.reserve<std::uint8_t>(
        images.name, {labels.size(), extent(spec_.shape.channels), extent(spec_.shape.height),
                      extent(spec_.shape.width)});
    file_.write(std::string(group_of(half)) + "/labels", std::span<const int>(labels),
                {labels.size()}, hdf5::Layout::checked);
  }
  file_.set("/", "format", "carousel dataset");
  file_.set("/", "format_version", dataset_format_version);
  file_.set_list("/", "class_names", spec_.class_names);
  file_.set("/", "source", spec_.source);
  file_.set("/", "licence", spec_.licence);
  bytes_ = Descriptor::update(partial_);
}

DatasetWriter::~DatasetWriter() {
  std::error_code unknown;
  if (!partial_.empty()) std::filesystem::remove(partial_, unknown);
}

void DatasetWriter::put(Half half, std::int64_t index, std::span<const std::uint8_t> image) {
  const Array& images = images_[index_of(half)];
  const std::int64_t size = spec_.shape.size();
  CAROUSEL_CHECK(std::ssize(image) == size && index >= 0 && (index + 1) * size <= images.bytes,
                 "image {} of {} bytes", index, image.size());
  bytes_.write_at(images.offset + index * size, std::as_bytes(image));
  if (half != Half::train) return;
  const std::size_t plane = image.size() / sums_.size();
  for (std::size_t c = 0; c < sums_.size(); ++c) {
    std::uint64_t sum = 0;
    std::uint64_t squares = 0;
    for (const std::uint64_t value : image.subspan(c * plane, plane)) {
      sum += value;
      squares += value * value;
    }
    sums_[c] += sum;
    squares_[c] += squares;
  }
}

void DatasetWriter::add_statistics() {
  const double values = static_cast<double>(images_[0].bytes) / spec_.shape.channels;
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
  file_.write("/checksums" + array.name, sums);
}

void DatasetWriter::finish() {
  add_statistics();
  for (const Array& images : images_) add_checksums(images);
  file_.close();
  bytes_.sync();
  bytes_.close();
  rename_file(partial_, path_);
  partial_.clear();
  sync_folder_of(path_);
}

}  // namespace carousel
