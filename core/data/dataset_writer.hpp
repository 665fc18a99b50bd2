// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a data set that Dataset reads, image by image from any number of threads. Until it is
// whole, it is called FILE.partial. Where images come from is not its business.

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/descriptor.hpp"
#include "core/base/hdf5.hpp"
#include "core/data/picture.hpp"
#include "core/model/model.hpp"

namespace carousel {

/// The halves of a data set.
enum class Half : std::uint8_t { train, test };
inline constexpr std::array both_halves = {Half::train, Half::test};
/// Its place in an array of both.
[[nodiscard]] constexpr std::size_t index_of(Half half) {
  return static_cast<std::size_t>(half);
}

/// What is known of a data set before its images are.
struct DatasetSpec {
  SampleShape shape;                            // of pixels; of files, only the channels
  std::array<std::vector<int>, 2> labels = {};  // of each half, one per image
  /// Where pictures are kept as files, how many bytes each has.
  std::array<std::vector<std::int64_t>, 2> file_bytes = {};
  std::vector<std::string> class_names = {};
  std::string source;
  std::string licence;
};

class DatasetWriter {
 public:
  /// Lays out the file. Throws Error(input_output).
  DatasetWriter(const std::string& path, DatasetSpec spec);
  DatasetWriter(const DatasetWriter&) = delete;
  DatasetWriter& operator=(const DatasetWriter&) = delete;
  /// Without finish(), leaves nothing behind.
  ~DatasetWriter();

  /// Writes image `index` of a half, [c, h, w]. Each is written once; threads may share the writer.
  void put(Half half, std::int64_t index, std::span<const std::uint8_t> image);
  /// The same with the file of a picture; `picture` is what it shows.
  void put(Half half, std::int64_t index, std::span<const std::byte> file, const Picture& picture);
  /// Adds mean and standard deviation of /train per channel, of values scaled to [0, 1], and
  /// checksums, and gives the file its name, replacing an earlier one.
  void finish();

 private:
  struct Array {
    std::string name;
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
    std::vector<std::int64_t> begins = {};  // of files, and where the last one ends
    std::vector<int> sizes = {};            // of files, height and width of each picture
  };
  void lay_out(Half half);
  void write(Half half, std::int64_t begin, std::int64_t end, std::span<const std::byte> bytes);
  void count(std::span<const std::uint8_t> values, std::size_t channel, std::size_t stride);
  void add_statistics();
  void add_checksums(const Array& array);

  std::string path_;
  std::string partial_;
  DatasetSpec spec_;
  hdf5::File file_;
  Descriptor bytes_;
  std::array<Array, 2> images_;
  std::atomic<std::uint64_t> values_ = 0;            // of each channel of /train
  std::vector<std::atomic<std::uint64_t>> sums_;     // [c]
  std::vector<std::atomic<std::uint64_t>> squares_;  // [c]
};

}  // namespace carousel
