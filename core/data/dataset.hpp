// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A data set of images with labels in Carousel's HDF5 format, checked as a whole when it is opened.
// It hands out samples as stored; order, decoding, normalisation and threads are not its business.
//
//   /train/images  uint8 [n, c, h, w]    /train/labels  integers [n]    the same under /test
//
// or images of uint8 [n, h, w, c], if the attribute axes of / says so,
//
// or, of pictures that are kept as the JPEG and PNG files that they were,
//
//   /train/images  uint8 [bytes], one file behind the other
//   /train/offsets integers [n + 1], where each begins and where the last one ends
//   /train/sizes   integers [n, 2], height and width of each picture
//
//   attributes of /: format = "carousel dataset", format_version = 1, class_names, mean, std (one
//   per channel, of values scaled to [0, 1]), source, licence
//   /checksums/train/images and /checksums/test/images, uint64 [MiB], where an import made them

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/descriptor.hpp"
#include "core/base/hdf5.hpp"
#include "core/data/block_checksums.hpp"
#include "core/data/picture.hpp"
#include "core/model/model.hpp"

namespace carousel {

inline constexpr std::int64_t dataset_format_version = 1;

/// How pixels lie in the file. Where no attribute says it, they are [n, c, h, w], and a shape that
/// can only be meant otherwise is refused.
enum class Axes : std::uint8_t { unstated, channels_first, channels_last };

/// The largest of all samples in each respect.
struct LargestSample {
  std::int64_t bytes = 0;   // as stored
  std::int64_t pixels = 0;  // of a picture
  PictureSize sides;

  void include(const LargestSample& other) {
    bytes = std::max(bytes, other.bytes);
    pixels = std::max(pixels, other.pixels);
    sides.height = std::max(sides.height, other.sides.height);
    sides.width = std::max(sides.width, other.sides.width);
  }
};

/// One half of a data set, /train or /test.
class Split {
 public:
  [[nodiscard]] std::int64_t samples() const { return static_cast<std::int64_t>(labels_.size()); }
  [[nodiscard]] std::span<const int> labels() const { return labels_; }
  /// Whether samples are files of pictures, otherwise pixels.
  [[nodiscard]] bool encoded() const { return !offsets_.empty(); }
  /// Whether pixels are [h, w, c] as stored, otherwise [c, h, w].
  [[nodiscard]] bool channels_last() const { return channels_last_; }
  [[nodiscard]] PictureSize size(std::int64_t index) const;
  /// Bytes of a sample as stored.
  [[nodiscard]] std::int64_t bytes(std::int64_t index) const { return end(index) - begin(index); }
  /// Copies sample `index` as stored. Any number of threads may read at the same time.
  /// Of an imported data set, each MiB is checked when the first sample of it is read:
  /// Error(bad_data) where it is damaged.
  void read(std::int64_t index, std::span<std::uint8_t> sample) const;

 private:
  friend class Dataset;
  Split(const hdf5::File& file, const std::string& group, int classes, Axes axes);
  void check_pixels(const hdf5::File& file, const std::string& images, const hdf5::Shape& shape,
                    Axes axes);
  void read_places(const hdf5::File& file, const std::string& group, std::int64_t bytes);
  void read_images(const hdf5::File& file, const std::string& images,
                   const hdf5::DatasetInfo& info);
  void read_labels(const hdf5::File& file, const std::string& labels, int classes);
  /// Of a MiB of the images, as an import would make it, and of all, or of as many as are read for
  /// it where none did.
  [[nodiscard]] std::uint64_t checksum_of(std::int64_t block) const;
  [[nodiscard]] std::vector<std::uint64_t> checksums() const;
  [[nodiscard]] std::int64_t begin(std::int64_t index) const {
    return encoded() ? offsets_[static_cast<std::size_t>(index)] : index * shape_.size();
  }
  [[nodiscard]] std::int64_t end(std::int64_t index) const { return begin(index + 1); }

  SampleShape shape_;  // of no height and width, where pictures have several
  bool channels_last_ = false;
  std::vector<int> labels_;
  std::vector<std::int64_t> offsets_;  // [n + 1], of files
  std::vector<PictureSize> sizes_;     // [n], of files
  LargestSample largest_;
  Descriptor file_;                   // own one: HDF5 calls are not thread-safe
  std::int64_t offset_ = 0;           // of the first image in the file
  std::vector<std::uint8_t> loaded_;  // all images, when the file keeps them in chunks
  BlockChecksums checksums_;
};

/// Opens and checks a file. Throws Error(input_output) when it cannot be opened, Error(bad_data)
/// naming dataset and index when it does not hold what it should.
class Dataset {
 public:
  explicit Dataset(const std::string& path);
  /// The same of a file that this process has made: without a lock, which some file systems do not
  /// have.
  static Dataset own(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Of height and width 0 where pictures have several.
  [[nodiscard]] const SampleShape& shape() const { return shape_; }
  [[nodiscard]] bool has_one_size() const { return shape_.height > 0; }
  [[nodiscard]] LargestSample largest() const;
  /// Whether any samples are files of pictures.
  [[nodiscard]] bool encoded() const { return train_.encoded() || test_.encoded(); }
  /// Whether any pixels are stored as [h, w, c].
  [[nodiscard]] bool channels_last() const {
    return train_.channels_last() || test_.channels_last();
  }
  [[nodiscard]] int classes() const { return static_cast<int>(class_names_.size()); }
  [[nodiscard]] const std::vector<std::string>& class_names() const { return class_names_; }
  [[nodiscard]] const std::vector<double>& mean() const { return mean_; }
  [[nodiscard]] const std::vector<double>& std() const { return std_; }
  [[nodiscard]] const std::string& source() const { return source_; }
  [[nodiscard]] const std::string& licence() const { return licence_; }
  /// A number that is the same for the same data wherever they lie: of shapes, labels, statistics
  /// and images as they are stored; of 1 GiB of them where no import made checksums.
  [[nodiscard]] std::uint64_t fingerprint() const;
  [[nodiscard]] const Split& train() const { return train_; }
  [[nodiscard]] const Split& test() const { return test_; }

 private:
  explicit Dataset(const hdf5::File& file);
  void read_normalisation(const hdf5::File& file);

  std::string path_;
  std::vector<std::string> class_names_;
  std::vector<double> mean_;  // [c]
  std::vector<double> std_;   // [c]
  std::string source_;
  std::string licence_;
  Axes axes_;
  Split train_;
  Split test_;
  SampleShape shape_;
};

}  // namespace carousel
