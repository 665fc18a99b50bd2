// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How C++ types are stored in HDF5 files. For the sources of core/base only: all others see files.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/base/hdf5.hpp"

namespace carousel::hdf5 {

template <class T>
hid_t native_type() {
  if constexpr (std::is_same_v<T, std::uint8_t>) return H5T_NATIVE_UINT8;
  if constexpr (std::is_same_v<T, std::uint16_t>) return H5T_NATIVE_UINT16;
  if constexpr (std::is_same_v<T, std::uint32_t>) return H5T_NATIVE_UINT32;
  if constexpr (std::is_same_v<T, int>) return H5T_NATIVE_INT;
  if constexpr (std::is_same_v<T, std::int64_t>) return H5T_NATIVE_INT64;
  if constexpr (std::is_same_v<T, std::uint64_t>) return H5T_NATIVE_UINT64;
  if constexpr (std::is_same_v<T, float>) return H5T_NATIVE_FLOAT;
  if constexpr (std::is_same_v<T, double>) return H5T_NATIVE_DOUBLE;
}

/// Text of a fixed number of bytes, filled up with zeros.
inline Handle string_type(std::size_t size) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), std::max<std::size_t>(1, size));
  H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  return type;
}

constexpr std::size_t word_size = 16;  // bytes of a string that is a value of a row

/// Copies strings into cells of equal size, filled up with zeros.
template <class Strings>
std::vector<char> packed(const Strings& values, std::size_t size) {
  std::vector<char> cells(values.size() * size, '\0');
  for (std::size_t k = 0; k < values.size(); ++k) {
    const std::string_view text(values[k]);
    std::copy_n(text.data(), std::min(size, text.size()), cells.data() + k * size);
  }
  return cells;
}

/// As large as can be where the product is larger, so that no damaged shape looks small.
inline std::size_t elements(const Shape& shape) {
  std::size_t count = 1;
  for (const hsize_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count))
      count = std::numeric_limits<std::size_t>::max();
  }
  return count;
}

}  // namespace carousel::hdf5
