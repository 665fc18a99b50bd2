// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names that lead to a checkpoint of the same folder, such as last.h5. They are symbolic links or,
// on file systems that have none, small HDF5 files whose objects are links to those of the
// checkpoint, so that h5py sees what it would see behind the other kind.

#include <filesystem>
#include <string>

#include "core/base/hdf5.hpp"

namespace carousel {

/// Makes `link` lead to the checkpoint `target` beside it, which is there; readers find the former
/// one or the new one. Error(input_output) leaves the former one.
void replace_link(const std::filesystem::path& link, const std::string& target);

/// The name of the checkpoint that a link leads to, whether that is there or not; empty where the
/// file is something else, or nothing.
[[nodiscard]] std::string target_of(const std::filesystem::path& link);
/// The same of an open file, which is no symbolic link.
[[nodiscard]] std::string target_of(const hdf5::File& file);

}  // namespace carousel
