// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the paths of pictures say: which half of a data set they belong to and what they show, as in
// torchvision's ImageFolder. It reads no file.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/data/dataset_writer.hpp"

namespace carousel {

struct LayoutOptions {
  double test_fraction = 0;               // 0: the folders say what is for tests
  std::uint64_t seed = 1;                 // of the choice
  std::vector<std::string> classes = {};  // in the order of labels; empty: folders, sorted
};

struct PictureLayout {
  struct Item {
    std::size_t file = 0;  // among the paths
    int label = 0;
  };
  std::vector<std::string> class_names;
  std::array<std::vector<Item>, 2> halves;  // in the order of paths
  std::vector<std::string> left_out;        // paths of pictures in folders that are not used
  std::size_t others = 0;                   // files that are no pictures by their names

  [[nodiscard]] const std::vector<Item>& half(Half which) const { return halves[index_of(which)]; }
};

/// Below folders that hold but one folder, either train/CLASS/.../FILE and test/CLASS/.../FILE (or
/// val, valid or validation, where there is no test; in capitals or not), or CLASS/.../FILE and a
/// test_fraction of all. `paths` are sorted; `where` names them in errors. Throws Error(bad_data)
/// when they are not laid out so, Error(usage) when the options do not fit them.
[[nodiscard]] PictureLayout picture_layout(const std::string& where,
                                           const std::vector<std::string>& paths,
                                           const LayoutOptions& options);

}  // namespace carousel
