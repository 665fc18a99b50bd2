// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Chunks of an HDF5 array as threads read them, without HDF5, which is not thread-safe: their bytes
// are read where they lie and unpacked here.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/descriptor.hpp"
#include "core/base/hdf5.hpp"

namespace carousel {

/// Undoes the filters of a chunk: from its bytes as they are stored to the `size` bytes of its
/// numbers, of `number_bytes` each, in their place; `spare` is what it works with. False where they
/// are damaged.
[[nodiscard]] bool unpack_chunk(const hdf5::ChunkLayout& layout, const hdf5::ChunkPlace& place,
                                int number_bytes, std::size_t size, std::vector<std::byte>& bytes,
                                std::vector<std::byte>& spare);

}  // namespace carousel
