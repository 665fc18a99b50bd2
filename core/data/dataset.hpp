// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A data set of images with labels in Carousel's HDF5 format, checked as a whole when it is opened.
// It hands out samples as stored; order, normalisation and threads are not its business.
//
//   /train/images  uint8 [n, c, h, w]    /train/labels  integers [n]    the same under /test
//   attributes of /: format = "carousel dataset", format_version = 1, class_names, mean, std (one
//   per channel, of values scaled to [0, 1]), source, licence
//   /checksums/train/images and /checksums/test/images, uint64 [MiB], where an import made them

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/descriptor.hpp"
#include "core/base/hdf5.hpp"
#include "core/model/model.hpp"

namespace carousel {

inline constexpr std::int64_t dataset_format_version = 1;

/// One half of a data set, /train or /test.
class Split {
 public:
  [[nodiscard]] std::int64_t samples() const { return static_cast<std::int64_t>(labels_.size()); }
  [[nodiscard]] std::span<const int> labels() const { return labels_; }
  /// Copies sample `index` as stored, [c, h, w]. Any number of threads may read at the same time.
  /// Of an imported data set, each MiB is checked when the first sample of it is read:
  /// Error(bad_data) where it is damaged.
  void read(std::int64_t index, std::span<std::uint8_t> sample) const;

 private:
  friend class Dataset;
  Split(const hdf5::File& file, const std::string& group, SampleShape& shape, int classes);
  void read_images(const hdf5::File& file, const std::string& images,
                   const hdf5::DatasetInfo& info);
  void read_labels(const hdf5::File& file, const std::string& labels, int classes);
  void read_checksums(const hdf5::File& file, const std::string& images);
  void check(std::int64_t begin, std::int64_t end) const;

  std::vector<int> labels_;
  Descriptor file_;          // own one: HDF5 calls are not thread-safe
  std::int64_t offset_ = 0;  // of the first image in the file
  std::int64_t sample_bytes_ = 0;
  std::vector<std::uint8_t> loaded_;  // all images, when the file keeps them in chunks
  std::string name_;                  // of the file and its images, for errors
  std::vector<std::uint64_t> checksums_;
  std::unique_ptr<std::atomic<bool>[]> checked_;  // of each MiB
};

/// Opens and checks a file. Throws Error(input_output) when it cannot be opened, Error(bad_data)
/// naming dataset and index when it does not hold what it should.
class Dataset {
 public:
  explicit Dataset(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const SampleShape& shape() const { return shape_; }
  [[nodiscard]] int classes() const { return static_cast<int>(class_names_.size()); }
  [[nodiscard]] const std::vector<std::string>& class_names() const { return class_names_; }
  [[nodiscard]] const std::vector<double>& mean() const { return mean_; }
  [[nodiscard]] const std::vector<double>& std() const { return std_; }
  [[nodiscard]] const std::string& source() const { return source_; }
  [[nodiscard]] const std::string& licence() const { return licence_; }
  /// A number that is the same for the same data wherever they lie: of shapes, labels, statistics
  /// and an image here and there.
  [[nodiscard]] std::uint64_t fingerprint() const;
  [[nodiscard]] const Split& train() const { return train_; }
  [[nodiscard]] const Split& test() const { return test_; }

 private:
  explicit Dataset(const hdf5::File& file);
  void read_normalisation(const hdf5::File& file);

  std::string path_;
  SampleShape shape_;  // of the first half read; the other one must agree
  std::vector<std::string> class_names_;
  std::vector<double> mean_;  // [c]
  std::vector<double> std_;   // [c]
  std::string source_;
  std::string licence_;
  Split train_;
  Split test_;
};

}  // namespace carousel
