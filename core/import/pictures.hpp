// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a data set of pictures: reads them in one thread, decodes them in several, and says which
// ones are bad. Where they are and what they show it is told.

#include <functional>
#include <string>
#include <vector>

#include "core/import/file_source.hpp"
#include "core/import/picture_layout.hpp"

namespace carousel {

/// What a data set keeps of its pictures: pixels, which only images of one size have in common, or
/// the files as they are, which are decoded whenever they are read. automatic: pixels, where all
/// have one size and are at most a GiB.
enum class Keep : std::uint8_t { automatic, pixels, files };

struct ImportOptions {
  int workers = 1;
  Keep keep = Keep::automatic;
  bool skip_bad = false;
  std::string source;   // of the pictures, for people
  std::string licence;  // likewise
};

struct BadFile {
  std::string path;
  std::string reason;
};

struct ImportResult {
  SampleShape shape;                        // of no height and width, where files are kept
  std::array<std::int64_t, 2> images = {};  // of each half
  std::vector<BadFile> bad = {};            // in the order of paths
  bool written = false;                     // not so with bad files, unless they are to be skipped
};

/// Is called now and then with the number of pictures that were read, of how many.
using ImportProgress = std::function<void(std::size_t done, std::size_t all)>;

/// Writes the data set `path`. Where pixels are kept, all pictures must have the size of the first
/// one. With bad ones and skip_bad the rest is imported anew. Throws Error(bad_data) if none is
/// good, and as FileSource and DatasetWriter do.
[[nodiscard]] ImportResult import_pictures(const FileSource& source, PictureLayout layout,
                                           const std::string& path, const ImportOptions& options,
                                           const ImportProgress& progress);

}  // namespace carousel
