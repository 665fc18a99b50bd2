// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/import/file_source.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <unordered_map>

#include "core/base/check.hpp"
#include "core/base/descriptor.hpp"
#include "core/import/gzip.hpp"
#include "core/import/picture_layout.hpp"

namespace carousel {
namespace {

namespace fs = std::filesystem;

// ---- A folder -----------------------------------------------------------------------------------

/// The first bytes of a file; none of one that cannot be opened, which reading it will tell.
std::vector<std::byte> head_of(const fs::path& path) {
  std::vector<std::byte> head(picture_head);
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(head.data()), std::ssize(head));
  head.resize(static_cast<std::size_t>(file.gcount()));
  return head;
}

bool is_zip_head(std::span<const std::byte> head) {
  constexpr std::string_view begin = "PK\3\4";
  return head.size() >= begin.size() &&
         std::ranges::equal(head.first(begin.size()), std::as_bytes(std::span(begin)));
}

class Folder : public FileSource {
 public:
  explicit Folder(const std::string& path) : FileSource(path), root_(path) {
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
        folders_.push_back(name.string());
        if (!is_service_path(name.filename().string())) list(name);
      } else if (entry.is_regular_file()) {
        found_.push_back({name.string(), static_cast<std::int64_t>(entry.file_size())});
        if (!is_picture_name(name.string()))
          found_.back().unnamed_picture = is_picture_head(head_of(entry.path()));
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
    const std::vector<std::byte> head = head_of(path);
    if (is_zip_head(head))
      fail(ExitCode::bad_data, "{}: is a zip archive; unpack it and give the folder", path);
    if (GzipFile::begins(head)) {
      gzip_ = std::make_unique<GzipFile>(path);
      check(archive_read_support_filter_none(archive_.get()));
      check(archive_read_open2(archive_.get(), this, nullptr, read_gzip, nullptr, nullptr));
    } else {
      check(archive_read_support_filter_all(archive_.get()));
      check(archive_read_open_filename(archive_.get(), path.c_str(), block));
      file_ = Descriptor::open(path);
    }
  }
  /// Of one in memory, which nothing compresses; `path` names it in errors.
  Reader(const std::string& path, std::span<const std::byte> tar)
      : Reader(path, archive_read_new()) {
    check(archive_read_support_filter_none(archive_.get()));
    check(archive_read_open_memory(archive_.get(), tar.data(), tar.size()));
  }

  Reader(const Reader&) = delete;  // libarchive knows its address
  Reader& operator=(const Reader&) = delete;
  ~Reader() = default;

  /// The next regular file, link or folder; nothing behind the last one.
  std::optional<ListedFile> next() {
    archive_entry* entry = nullptr;
    while (check(archive_read_next_header(archive_.get(), &entry)) != ARCHIVE_EOF) {
      const bool regular = archive_entry_filetype(entry) == AE_IFREG;
      const char* hard = archive_entry_hardlink(entry);
      const bool link = hard != nullptr || archive_entry_filetype(entry) == AE_IFLNK;
      const bool folder = archive_entry_filetype(entry) == AE_IFDIR;
      if (!regular && !link && !folder) continue;
      const char* name = archive_entry_pathname(entry);
      if (name == nullptr || *name == '\0')
        fail(ExitCode::bad_data, "{}: a file in it has no name", path_);
      ListedFile file = {fs::path(name).lexically_normal().string(), archive_entry_size(entry)};
      if (folder) {
        file.is_folder = true;
        if (file.path.ends_with('/')) file.path.pop_back();
        if (file.path == ".") continue;
      } else if (!regular) {
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
    // Archives that were put together by cat; without it all but the first would be missed.
    check(archive_read_set_options(archive_.get(), "tar:read_concatenated_archives"));
  }

  /// Without the zeros that end an archive, it was cut between two files. What compresses it may
  /// end before the file does, as where archives of two kinds were put together.
  void check_end() {
    const auto begin = archive_read_header_position(archive_.get());  // of what came last
    if (archive_filter_bytes(archive_.get(), 0) <= begin)
      fail(ExitCode::bad_data, "{}: is cut off after {} bytes; copy it again", path_, begin);
    if (!file_) return;
    constexpr std::int64_t piece = std::int64_t{1} << 20;
    const std::int64_t end = file_->size();
    std::vector<std::byte> rest;
    for (std::int64_t at = archive_filter_bytes(archive_.get(), -1); at < end; at += piece) {
      rest.resize(static_cast<std::size_t>(std::min(piece, end - at)));
      file_->read_at(at, rest);
      if (std::ranges::any_of(rest, [](std::byte byte) { return byte != std::byte{0}; }))
        fail(ExitCode::bad_data,
             "{}: behind the archive lie {} bytes of something else; give them as an archive of "
             "their own",
             path_, end - at);
    }
  }

  /// A warning is of a file's owner or of its time. Behind a damaged header libarchive would go on
  /// with the next one that it finds.
  int check(int result) {
    if (failure_) std::rethrow_exception(failure_);
    if (result < ARCHIVE_OK && result != ARCHIVE_WARN) {
      const char* reason = archive_error_string(archive_.get());
      fail(ExitCode::bad_data, "{}: neither a folder nor a whole tar archive: {}", path_,
           reason == nullptr ? "unknown reason" : reason);
    }
    return result;
  }

  /// No exception may pass through libarchive.
  static la_ssize_t read_gzip(archive* of, void* reader, const void** bytes) {
    auto& self = *static_cast<Reader*>(reader);
    try {
      const std::span<const std::byte> next = self.gzip_->next();
      *bytes = next.data();
      return std::ssize(next);
    } catch (...) {
      self.failure_ = std::current_exception();
      archive_set_error(of, EIO, "gzip");
      return ARCHIVE_FATAL;
    }
  }

  struct Close {
    void operator()(archive* open) const { archive_read_free(open); }
  };
  std::string path_;
  std::unique_ptr<GzipFile> gzip_;  // what is read, where libarchive does not do it itself
  std::exception_ptr failure_;      // of reading it
  std::optional<Descriptor> file_;  // what libarchive reads
  std::unique_ptr<archive, Close> archive_;
};

class Tar : public FileSource {
 public:
  explicit Tar(const std::string& path) : FileSource(path) {
    Reader reader(path);
    std::vector<ListedFile> found;
    while (auto file = reader.next()) {
      if (file->is_folder) {
        folders_.push_back(file->path);
        continue;
      }
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
      const auto number = file->is_folder ? numbers_.end() : numbers_.find(file->path);
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
  while (const auto file = reader.next()) {
    if (!file->is_folder) visit(*file, [&] { return reader.bytes(); });
  }
}

void FileSource::keep(std::vector<ListedFile> found) {
  std::ranges::sort(found);
  for (ListedFile& file : found) {
    files_.push_back(std::move(file.path));
    bytes_.push_back(file.bytes);
    faults_.push_back(std::move(file.fault));
    unnamed_pictures_.push_back(file.unnamed_picture);
  }
}

std::unique_ptr<FileSource> FileSource::open(const std::string& path) {
  try {
    if (fs::is_directory(path)) return std::make_unique<Folder>(path);
  } catch (const fs::filesystem_error& error) {
    fail(ExitCode::input_output, "{}: {}", error.path1().string(), error.code().message());
  }
  const Descriptor readable = Descriptor::open(path);  // gives the system's reason, if it cannot
  return std::make_unique<Tar>(path);
}

}  // namespace carousel
