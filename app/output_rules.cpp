// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/output_rules.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "core/base/descriptor.hpp"
#include "core/base/hdf5.hpp"
#include "core/record/run_folder.hpp"
#include "core/state/checkpoint_link.hpp"
#include "core/state/safetensors.hpp"
#include "core/state/weights.hpp"

namespace carousel {
namespace {

namespace fs = std::filesystem;

/// The one of some files that a path leads to; null where it leads to none of them.
const ReadFile* find_same(const std::string& path, std::span<const ReadFile> reads) {
  const std::optional<FileIdentity> identity = identity_of(path);
  if (!identity) return nullptr;
  const auto same = [&](const ReadFile& file) {
    // Of a checkpoint's link, what it leads to is read as well.
    const fs::path behind = fs::path(file.path).parent_path() / target_of(fs::path(file.path));
    return identity_of(file.path) == identity || identity_of(behind.string()) == identity;
  };
  const auto found = std::ranges::find_if(reads, same);
  return found == reads.end() ? nullptr : &*found;
}

/// Whether a file is not empty and does not begin as those of the format do that its name asks for.
bool holds_something_else(const std::string& path) {
  std::array<char, hdf5::signature.size() + 1> begin = {};  // enough for safetensors, too
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), begin.size());
  const std::string_view found(begin.data(), static_cast<std::size_t>(file.gcount()));
  if (found.empty()) return false;
  if (names_safetensors(path)) return !is_safetensors(std::as_bytes(std::span(found)));
  return !found.starts_with(hdf5::signature);
}

}  // namespace

void require_one_process(const Launcher& launcher) {
  if (launcher.size > 1)
    fail(ExitCode::usage, "import and export run in one process; start them without a launcher");
}

void check_output(const std::string& path, bool overwrite, const Launcher& launcher,
                  std::span<const ReadFile> reads) {
  require_one_process(launcher);
  check_output(path, overwrite, reads);
}

void check_output(const std::string& path, bool overwrite, std::span<const ReadFile> reads) {
  if (const ReadFile* read = find_same(path, reads))
    fail(ExitCode::usage, "{}: is {}, which would be lost; name another file to write", path,
         read->what);
  if (!fs::exists(path)) return;
  if (!overwrite) fail(ExitCode::usage, "{}: already exists; give --overwrite to replace it", path);
  if (!fs::is_regular_file(path))
    fail(ExitCode::usage, "{}: is a folder or device; name a file to write", path);
  // Such as a picture in the folder that is imported, or an archive next to the one that is.
  if (holds_something_else(path))
    fail(ExitCode::usage, "{}: is no {} file, and so nothing to replace; name another one", path,
         names_safetensors(path) ? "safetensors" : "HDF5");
}

void check_replaced_run(const RunConfig& config) {
  std::vector<ReadFile> reads = {{"the deck", config.deck.path()},
                                 {"data.file", config.data.file},
                                 {"data.tokens", config.data.tokens},
                                 {"train.start", config.train.start}};
  if (config.run.resumes_from_path()) reads.push_back({"run.resume", config.run.resume});
  for (const fs::path& file : files_of_run(config.run.output)) {
    if (const ReadFile* read = find_same(file.string(), reads))
      fail(ExitCode::usage,
           "{}: is {} of this run, and --overwrite would delete it; set run.output to another "
           "folder",
           file.string(), read->what);
  }
}

}  // namespace carousel
