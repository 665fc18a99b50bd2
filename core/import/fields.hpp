// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Files of arrays written anew with each array in one piece, as reading of samples is fastest:
// nothing is left to unpack. Which arrays, the deck's [data] says; what its axes mean does not
// matter.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/data/config.hpp"

namespace carousel {

/// What was written.
struct FieldsResult {
  std::vector<std::string> files;
  std::int64_t arrays = 0;
  std::int64_t stored_bytes = 0;   // of the arrays as they were
  std::int64_t written_bytes = 0;  // as they are now
};

/// Is told how many MiB of all are done; what it throws ends the import.
using FieldsProgress = std::function<void(std::size_t done, std::size_t all)>;

/// Writes each file of data.files, data.validation_files and data.test_files to `folder`, under its
/// own name, with the arrays of inputs, targets and masks alone: in their types, without attributes
/// and with a checksum for each MiB (core/data/block_checksums.hpp). By `workers` threads; an array
/// that is packed by a plug-in of HDF5 is read by one, through HDF5. A file is whole or not there.
/// Error(usage) where nothing would be gained, files have the same name, or exist without
/// `overwrite`.
[[nodiscard]] FieldsResult import_fields(const DataConfig& config, const std::string& folder,
                                         int workers, bool overwrite,
                                         const FieldsProgress& progress);

}  // namespace carousel
