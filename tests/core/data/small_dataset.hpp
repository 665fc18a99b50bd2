// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a small, correct data set, parts of which a test may then spoil.

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/hdf5.hpp"

namespace carousel::testing {

/// Images of [2, 3, 4]; byte x of sample k is (k + x) mod 256, its label k mod 3.
struct SmallDataset {
  hdf5::Shape train_images{50, 2, 3, 4};
  hdf5::Shape test_images{7, 2, 3, 4};
  hdf5::Shape train_labels{50};
  hdf5::Shape test_labels{7};
  hdf5::Layout layout = hdf5::Layout::contiguous;
  bool with_test = true;
  std::string format = "carousel dataset";
  std::int64_t version = 1;
  std::string wrong_type = {};  // dataset to store as float64 instead
  std::int64_t bad_label = -1;  // index in /test/labels that gets this value:
  std::int64_t bad_value = 3;
  bool with_mean = true;
  double std = 0.5;
  std::string third_class = "owl";  // behind cat and dog

  void write(const std::string& path) const {
    hdf5::File file = hdf5::File::create(path);
    write_split(file, "/train", train_images, train_labels);
    if (with_test) write_split(file, "/test", test_images, test_labels);
    write_attributes(file);
    file.close();
  }

  void write_attributes(hdf5::File& file) const {
    file.set("/", "format", format);
    file.set("/", "format_version", version);
    file.set_list("/", "class_names", std::vector<std::string>{"cat", "dog", third_class});
    if (with_mean) file.set_list("/", "mean", std::vector<double>{0.25, 0.5});
    file.set_list("/", "std", std::vector<double>{std, 0.25});
    file.set("/", "source", "made by a test");
    file.set("/", "licence", "none");
  }

 private:
  void write_split(hdf5::File& file, const std::string& group, const hdf5::Shape& images,
                   const hdf5::Shape& labels) const {
    std::size_t size = 1;
    for (const hsize_t extent : images) size *= extent;
    std::vector<std::uint8_t> bytes(size);
    for (std::size_t k = 0; k < size; ++k) bytes[k] = static_cast<std::uint8_t>(k / 24 + k % 24);
    store<std::uint8_t>(file, group + "/images", bytes, images);
    std::vector<std::int64_t> classes(labels[0]);
    for (std::size_t k = 0; k < classes.size(); ++k) classes[k] = static_cast<std::int64_t>(k % 3);
    if (group == "/test" && bad_label >= 0)
      classes[static_cast<std::size_t>(bad_label)] = bad_value;
    store<std::int64_t>(file, group + "/labels", classes, labels);
  }

  template <class T>
  void store(hdf5::File& file, const std::string& dataset, const std::vector<T>& values,
             const hdf5::Shape& shape) const {
    if (dataset == wrong_type)
      file.write<double>(dataset, std::vector<double>(values.begin(), values.end()), shape);
    else
      file.write<T>(dataset, values, shape, layout);
  }
};

}  // namespace carousel::testing
