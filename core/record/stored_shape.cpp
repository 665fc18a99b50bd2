// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/record/stored_shape.hpp"

#include "core/base/check.hpp"

namespace carousel {

int checked_count(const std::string& path, const std::string& group, const std::string& name,
                  std::int64_t value) {
  constexpr std::int64_t most = 1 << 24;
  if (value < 0 || value > most)
    fail(ExitCode::bad_data, "{}: attribute {} of {} is {}, not between 0 and {}", path, name,
         group, value, most);
  return static_cast<int>(value);
}

int read_count(const hdf5::File& file, const std::string& group, const std::string& name) {
  return checked_count(file.path(), group, name, file.integer(group, name));
}

void write_extents(hdf5::File& file, const std::string& group, const std::string& prefix,
                   const SampleShape& shape) {
  file.set(group, prefix + "height", std::int64_t{shape.height});
  file.set(group, prefix + "width", std::int64_t{shape.width});
  if (shape.depth > 1) file.set(group, prefix + "depth", std::int64_t{shape.depth});
}

SampleShape read_extents(const hdf5::File& file, const std::string& group,
                         const std::string& prefix, int channels) {
  const auto extent = [&](const char* axis) { return read_count(file, group, prefix + axis); };
  return {channels, extent("height"), extent("width"),
          file.has(group, prefix + "depth") ? extent("depth") : 1};
}

}  // namespace carousel
