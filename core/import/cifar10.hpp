// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// CIFAR-10 (Krizhevsky 2009) in the batches in which it was published, for Python or in binary.

#include <string>

#include "core/import/file_source.hpp"
#include "core/import/pictures.hpp"

namespace carousel {

/// Whether a source has files of such batches.
[[nodiscard]] bool has_cifar10_batches(const FileSource& source);

/// Writes the data set `path`: 50,000 images for training in the order of the five batches, 10,000
/// for tests. Holds them in memory. Throws Error(bad_data) when batches are missing or damaged.
[[nodiscard]] ImportResult import_cifar10_batches(const FileSource& source, const std::string& path,
                                                  const ImportOptions& options,
                                                  const ImportProgress& progress);

}  // namespace carousel
