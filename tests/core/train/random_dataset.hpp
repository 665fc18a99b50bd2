// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A small data set of random pixels and labels: as a file that the engine opens, and number by
// number for those who compute what the engine must have read.

#include <cmath>
#include <vector>

#include "core/base/random.hpp"
#include "core/base/real.hpp"
#include "core/data/dataset.hpp"
#include "tests/core/support.hpp"

namespace carousel::test {

/// 97 images for training and 23 for tests, [1, 8, 8] each, of ten classes.
class RandomDataset {
 public:
  static constexpr int train_samples = 97;
  static constexpr int test_samples = 23;
  static constexpr int pixels = 64;
  static constexpr int classes = 10;
  static constexpr double mean = 0.45;
  static constexpr double std = 0.3;

  RandomDataset() {
    hdf5::File file = hdf5::File::create(path());
    write(file, "/train", train_samples, 0);
    write(file, "/test", test_samples, train_samples);
    file.set("/", "format", "carousel dataset");
    file.set("/", "format_version", std::int64_t{1});
    std::vector<std::string> names;
    for (int k = 0; k < classes; ++k) names.push_back(std::to_string(k));
    file.set_list("/", "class_names", names);
    file.set_list("/", "mean", std::vector<double>{mean});
    file.set_list("/", "std", std::vector<double>{std});
    file.set("/", "source", "made by a test");
    file.set("/", "licence", "none");
    file.close();
  }

  [[nodiscard]] std::string path() const { return folder_ / "random.h5"; }

  /// Training sample k, as the engine's layers see it.
  [[nodiscard]] static real pixel(int k, int x) {
    return static_cast<real>((byte(k, x) / 255.0 - mean) / std);
  }
  [[nodiscard]] static int label(int k) {
    return static_cast<int>(uniform01(random_key(3, "label"), k, 0) * classes);
  }

 private:
  static std::uint8_t byte(int k, int x) {
    return static_cast<std::uint8_t>(uniform01(random_key(3, "byte"), k, x) * 256);
  }

  static void write(hdf5::File& file, const std::string& group, int count, int first) {
    std::vector<std::uint8_t> images;
    std::vector<int> labels;
    for (int k = first; k < first + count; ++k) {
      for (int x = 0; x < pixels; ++x) images.push_back(byte(k, x));
      labels.push_back(label(k));
    }
    const auto samples = static_cast<hsize_t>(count);
    file.write<std::uint8_t>(group + "/images", images, {samples, 1, 8, 8});
    file.write<int>(group + "/labels", labels, {samples});
  }

  testing::TemporaryFolder folder_;
};

}  // namespace carousel::test
