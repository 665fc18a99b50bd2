// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the paths of pictures say: which half of a data set they belong to and what they show, as in
// torchvision's ImageFolder. It reads no file.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/dataset_writer.hpp"

namespace carousel {

/// What the folders of the halves are called.
struct HalfNames {
  std::string train;
  std::string test;
};

struct LayoutOptions {
  double test_fraction = 0;               // 0: the folders say what is for tests
  std::uint64_t seed = 1;                 // of the choice
  std::vector<std::string> classes = {};  // in the order of labels; empty: folders, sorted
  std::optional<HalfNames> halves = {};   // none: train, and test or val
  bool only_classes = false;              // no folder is a half, whatever it is called
  bool skip_strays = false;               // pictures in no folder of a class
};

struct PictureLayout {
  struct Item {
    std::size_t file = 0;  // among the paths
    int label = 0;
  };
  std::vector<std::string> class_names;
  std::array<std::vector<Item>, 2> halves;  // in the order of paths
  std::vector<std::string> left_out;        // paths of pictures in folders that are not used
  std::vector<std::string> strays;          // of those in no folder of a class
  std::vector<std::string> service;         // of files in hidden folders, and those of systems
  std::vector<std::string> others;          // of files that are no pictures
  std::vector<std::string> empty;  // folders that lie where those of classes do, without pictures

  [[nodiscard]] const std::vector<Item>& half(Half which) const { return halves[index_of(which)]; }
};

/// Whether a name says that a file is a picture, of whatever format: nobody should miss one without
/// a word.
[[nodiscard]] bool is_picture_name(std::string_view path);
/// Whether some part of a path is hidden, or what systems leave beside files.
[[nodiscard]] bool is_service_path(std::string_view path);
/// Whether the first bytes of a file say that it is a picture, of which `picture_head` are enough.
inline constexpr std::size_t picture_head = 16;
[[nodiscard]] bool is_picture_head(std::span<const std::byte> head);

/// Below folders that hold but one folder, either train/CLASS/.../FILE and test/CLASS/.../FILE (or
/// val, valid or validation, where there is no test; in capitals or not), or CLASS/.../FILE and a
/// test_fraction of all. Hidden folders and files, and those that systems leave (__MACOSX, @eaDir),
/// count for nothing. `paths` are sorted; `where` names them in errors; `unnamed`, if it is not
/// empty, says of each whether it is a picture though its name does not say so; `folders` are named
/// besides, if they are known. Throws Error(bad_data) when they are not laid out so, Error(usage)
/// when the options do not fit them.
[[nodiscard]] PictureLayout picture_layout(const std::string& where,
                                           const std::vector<std::string>& paths,
                                           const LayoutOptions& options,
                                           const std::vector<bool>& unnamed = {},
                                           const std::vector<std::string>& folders = {});

}  // namespace carousel
