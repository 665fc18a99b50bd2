// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What one device recorded of the profiled steps, read back from its file: the rows of actions and
// messages that a summary leaves out. What they mean for training it does not know.

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/train/records.hpp"

namespace carousel {

/// Movable, not copyable: the records point at `words`.
struct DeviceProfile {
  DeviceProfile() = default;
  DeviceProfile(DeviceProfile&&) = default;
  DeviceProfile& operator=(DeviceProfile&&) = default;
  DeviceProfile(const DeviceProfile&) = delete;
  DeviceProfile& operator=(const DeviceProfile&) = delete;
  ~DeviceProfile() = default;

  std::vector<ActionRecord> actions;
  std::vector<MessageRecord> messages;
  std::set<std::string> words;
};

/// Reads the file of a device of a part of a run. Error(input_output) when there is none,
/// Error(bad_data) when it is damaged or its columns are of different length.
[[nodiscard]] DeviceProfile read_profile(const std::filesystem::path& folder, int part, int device);

}  // namespace carousel
