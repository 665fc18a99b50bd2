// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/record/profile.hpp"

#include "core/base/hdf5.hpp"
#include "core/record/rows.hpp"
#include "core/record/run_folder.hpp"

namespace carousel {
DeviceProfile read_profile(const std::filesystem::path& folder, int part, int device) {
  const std::string path = (folder / rank_file_name(device, part)).string();
  const hdf5::File file = hdf5::File::open_with_reason(path);
  DeviceProfile profile;
  profile.actions = read_rows<ActionRecord>(file, profile.words);
  profile.messages = read_rows<MessageRecord>(file, profile.words);
  return profile;
}

}  // namespace carousel
