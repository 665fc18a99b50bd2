// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/state/checkpoint_link.hpp"

#include <algorithm>
#include <system_error>

#include "core/base/check.hpp"
#include "core/base/descriptor.hpp"
#include "core/base/hdf5_medium.hpp"
#include "core/record/run_folder.hpp"

namespace carousel {
namespace {

namespace fs = std::filesystem;

/// What every checkpoint has.
constexpr const char* always_there = "/info";

/// A file whose objects are links to all that a checkpoint holds.
std::vector<std::byte> file_of_links(const fs::path& link, const std::string& target) {
  const std::string path = (link.parent_path() / target).string();
  const Descriptor bytes = Descriptor::open(path);
  hdf5::ReadingMedium medium(bytes);
  const hdf5::File checkpoint = hdf5::File::open_on(path, medium);
  hdf5::File file = hdf5::File::create_in_memory(link.string());
  for (const std::string& child : checkpoint.children("/"))
    file.link("/" + child, target, "/" + child);
  return file.image();
}

}  // namespace

void replace_link(const fs::path& link, const std::string& target) {
  const fs::path partial = link.string() + ".partial";
  std::error_code error;
  fs::remove(partial, error);
  fs::create_symlink(target, partial, error);
  if (error)  // exFAT, SMB and others have none; a disk that is full will say so again
    return replace_file(link.string(), file_of_links(link, target), Durability::machine);
  fs::rename(partial, link, error);
  if (error)
    fail(ExitCode::input_output, "{}: cannot make it a link to {}: {}", link.string(), target,
         error.message());
  sync_folder_of(link.string());
}

std::string target_of(const hdf5::File& file) {
  const std::string target = file.link_target(always_there);
  const std::string name = target.substr(0, target.find(':'));
  return is_checkpoint_file_name(name) ? name : "";
}

std::string target_of(const fs::path& link) {
  std::error_code unknown;
  const std::string target = fs::read_symlink(link, unknown).string();
  if (!unknown) return is_checkpoint_file_name(target) ? target : "";
  if (!fs::is_regular_file(link, unknown)) return "";
  try {
    const Descriptor bytes = Descriptor::open(link.string());
    hdf5::ReadingMedium medium(bytes);
    return target_of(hdf5::File::open_on(link.string(), medium));
  } catch (const Error&) {
    return "";  // whoever reads it will be told
  }
}

}  // namespace carousel
