// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shapes of samples as attributes of HDF5 files, and counts within what any run can have.

#include <cstdint>
#include <string>

#include "core/base/hdf5.hpp"
#include "core/model/tensor_format.hpp"

namespace carousel {

/// A number that counts something, of an attribute of that file and group. Error(bad_data) for one
/// that no run can have.
[[nodiscard]] int checked_count(const std::string& path, const std::string& group,
                                const std::string& name, std::int64_t value);
[[nodiscard]] int read_count(const hdf5::File& file, const std::string& group,
                             const std::string& name);

/// The attributes PREFIXheight, PREFIXwidth and, of volumes alone, PREFIXdepth.
void write_extents(hdf5::File& file, const std::string& group, const std::string& prefix,
                   const SampleShape& shape);
/// The shape of so many channels that these attributes say.
[[nodiscard]] SampleShape read_extents(const hdf5::File& file, const std::string& group,
                                       const std::string& prefix, int channels);

}  // namespace carousel
