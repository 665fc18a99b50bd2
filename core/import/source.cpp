// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/import/source.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <unordered_map>

#include "core/base/check.hpp"
#include "core/base/descriptor.hpp"
#include "core/import/picture_layout.hpp"

namespace carousel {
namespace {

namespace fs = std::filesystem;

// ---- A folder -----------------------------------------------------------------------------------

/// Whether a file that cannot be opened now is one, reading it will tell.
bool begins_as_picture(const fs::path& path) {
  std::array<char, picture_head> head = {};
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), head.size());
  return is_picture_head(
      std::as_bytes(std::span(head).first(static_cast<std::size_t>(file.gcount()))));
}

class Folder : public Source {
 public:
  explicit Folder(const std::string& path) : Source(path), root_(path) {
    list("");
    keep(std::move(found_));
  }

  void read(const std::vector<bool>& wanted, const Take& take) const override {
    for (std::size_t k = 0; k < files_.size(); ++k) {
      if (wanted[k]) take(k, read_file((root_ / files_[k]).string()));
    }
  }

 private:
  /// Lists what is in a folder below the root; links to folders are followed.
  void list(const fs::path& below) {
    const fs::path folder = root_ / below;
    // A link may lead back to where it is.
    for (const fs::path& outer : open_) {
      if (fs::equivalent(outer, folder))
        fail(ExitCode::bad_data, "{}: is {} again, by a link; remove it", folder.string(),
             outer.string());
    }
    open_.push_back(folder);
    std::error_code error;
    fs::directory_iterator entries(folder, error);
    for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
      const fs::directory_entry& entry = *entries;
      const fs::path name = below / entry.path().filename();
      if (entry.is_directory()) {
        list(name);
      } else if (entry.is_regular_file()) {
        found_.push_back({name.string(), static_cast<std::int64_t>(entry.file_size())});
        if (!is_picture_name(name.string()))
          found_.back().unnamed_picture = begins_as_picture(entry.path());
      } else if (entry.is_symlink() && !entry.exists()) {
        found_.push_back({name.string(), 0, "a link that leads nowhere"});
      }
    }
    if (error) fail(ExitCode::input_output, "{}: {}", folder.string(), error.message());
    open_.pop_back();
  }

  fs::path root_;
  std::vector<ListedFile> found_;
  std::vector<fs::path> open_;  // folders around the one that is listed
};

// ---- An archive ---------------------------------------------------------------------------------

/// One pass over the entries of an archive.
class Reader {
 public:
  explicit Reader(const std::string& path) : Reader(path, archive_read_new()) {
    constexpr std::size_t block = std::size_t{1} << 20;
    check(archive_read_open_filename(archive_.get(), path.c_str(), block));
  }
  /// Of one in memory; `path` names it in errors.
  Reader(const std::string& path, std::span<const std::byte> tar)
      : Reader(path, archive_read_new()) {
    check(archive_read_open_memory(archive_.get(), tar.data(), tar.size()));
  }

  /// The next regular file or link; nothing behind the last one.
  std::optional<ListedFile> next() {
    archive_entry* entry = nullptr;
    while (check(archive_read_next_header(archive_.get(), &entry)) != ARCHIVE_EOF) {
      const bool regular = archive_entry_filetype(entry) == AE_IFREG;
      const char* hard = archive_entry_hardlink(entry);
      const bool link = hard != nullptr || archive_entry_filetype(entry) == AE_IFLNK;
      if (!regular && !link) continue;
      const char* name = archive_entry_pathname(entry);
      if (name == nullptr || *name == '\0')
        fail(ExitCode::bad_data, "{}: a file in it has no name", path_);
      ListedFile file = {fs::path(name).lexically_normal().string(), archive_entry_size(entry)};
      if (!regular) {
        // tar writes a file that it was told twice as a link to itself.
        if (hard != nullptr && fs::path(hard).lexically_normal() == file.path) continue;
        file.bytes = 0;
        file.fault = "a link inside the archive; pack it anew with tar -h --hard-dereference";
      }
      return file;
    }
    check_end();
    return std::nullopt;
  }

  /// The first bytes of what next() named, before any others are read.
  bool begins_as_picture() {
    std::array<std::byte, picture_head> head = {};
    const la_ssize_t got = archive_read_data(archive_.get(), head.data(), head.size());
    if (got < 0) check(static_cast<int>(got));
    return is_picture_head(std::span(head).first(static_cast<std::size_t>(got)));
  }

  /// What next() named. It grows as bytes come: a header may claim any size.
  std::vector<std::byte> bytes() {
    constexpr std::size_t piece = std::size_t{1} << 16;
    std::vector<std::byte> all;
    while (true) {
      const std::size_t end = all.size();
      all.resize(end + piece);
      const la_ssize_t got = archive_read_data(archive_.get(), all.data() + end, piece);
      if (got < 0) check(static_cast<int>(got));
      all.resize(end + static_cast<std::size_t>(got));
      if (got == 0) return all;
    }
  }

 private:
  Reader(const std::string& path, archive* made) : path_(path), archive_(made) {
    if (archive_ == nullptr) throw std::bad_alloc();
    archive_read_support_format_tar(archive_.get());
    archive_read_support_filter_all(archive_.get());
    // Archives that were put together by cat; without it all but the first would be missed.
    check(archive_read_set_options(archive_.get(), "tar:read_concatenated_archives"));
  }

  /// Without the zeros that end an archive, it was cut between two files.
  void check_end() {
    const auto begin = archive_read_header_position(archive_.get());  // of what came last
    if (archive_filter_bytes(archive_.get(), 0) <= begin)
      fail(ExitCode::bad_data, "{}: is cut off after {} bytes; copy it again", path_, begin);
  }

  int check(int result) {
    if (result < ARCHIVE_WARN) {
      const char* reason = archive_error_string(archive_.get());
      fail(ExitCode::bad_data, "{}: neither a folder nor a whole tar archive: {}", path_,
           reason == nullptr ? "unknown reason" : reason);
    }
    return result;
  }

  struct Close {
    void operator()(archive* open) const { archive_read_free(open); }
  };
  std::string path_;
  std::unique_ptr<archive, Close> archive_;
};

class Tar : public Source {
 public:
  explicit Tar(const std::string& path) : Source(path) {
    Reader reader(path);
    std::vector<ListedFile> found;
    while (auto file = reader.next()) {
      if (file->fault.empty() && !is_picture_name(file->path))
        file->unnamed_picture = reader.begins_as_picture();
      found.push_back(*std::move(file));
    }
    keep(std::move(found));
    if (const auto twice = std::ranges::adjacent_find(files_); twice != files_.end())
      fail(ExitCode::bad_data, "{}: {} is in it twice", path, *twice);
    for (std::size_t k = 0; k < files_.size(); ++k) numbers_[files_[k]] = k;
  }

  void read(const std::vector<bool>& wanted, const Take& take) const override {
    auto left = std::ranges::count(wanted, true);
    Reader reader(path_);
    while (left > 0) {
      const auto file = reader.next();
      if (!file) fail(ExitCode::bad_data, "{}: it changed while it was read", path_);
      const auto number = numbers_.find(file->path);
      if (number == numbers_.end() || !wanted[number->second]) continue;
      take(number->second, reader.bytes());
      --left;
    }
  }

 private:
  std::unordered_map<std::string, std::size_t> numbers_;
};

}  // namespace

void visit_tar(const std::string& where, std::span<const std::byte> tar, const VisitFile& visit) {
  Reader reader(where, tar);
  while (const auto file = reader.next()) visit(*file, [&] { return reader.bytes(); });
}

void Source::keep(std::vector<ListedFile> found) {
  std::ranges::sort(found);
  for (ListedFile& file : found) {
    files_.push_back(std::move(file.path));
    bytes_.push_back(file.bytes);
    faults_.push_back(std::move(file.fault));
    unnamed_pictures_.push_back(file.unnamed_picture);
  }
}

std::unique_ptr<Source> Source::open(const std::string& path) {
  try {
    if (fs::is_directory(path)) return std::make_unique<Folder>(path);
  } catch (const fs::filesystem_error& error) {
    fail(ExitCode::input_output, "{}: {}", error.path1().string(), error.code().message());
  }
  const Descriptor readable = Descriptor::open(path);  // gives the system's reason, if it cannot
  return std::make_unique<Tar>(path);
}

}  // namespace carousel
