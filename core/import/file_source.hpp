// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Files to import, as they lie in a folder or in a tar archive, compressed or not. What they mean
// is decided elsewhere.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace carousel {

/// A file as a folder or an archive lists it.
struct ListedFile {
  std::string path;
  std::int64_t bytes = 0;
  std::string fault = {};        // why it has no bytes to read, in words; mostly empty
  bool unnamed_picture = false;  // one by its first bytes, though its name does not say so
  bool is_folder = false;
  auto operator<=>(const ListedFile&) const = default;
};

class FileSource {
 public:
  /// Opens a folder or an archive and lists its files. Throws Error(input_output) when it cannot be
  /// read, Error(bad_data) when it is neither.
  static std::unique_ptr<FileSource> open(const std::string& path);
  virtual ~FileSource() = default;

  /// As it was given to open(), for errors.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Paths of all regular files below the folder or in the archive, sorted, and of links that lead
  /// to no bytes, so that no picture vanishes without a word.
  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }
  /// Paths of the folders, in whatever order. Of what systems and hidden files are, a folder is
  /// named, but not what is in it; an archive need not name any.
  [[nodiscard]] const std::vector<std::string>& folders() const { return folders_; }
  /// Bytes of each file, as the folder or the archive says; read() may find it otherwise.
  [[nodiscard]] const std::vector<std::int64_t>& bytes() const { return bytes_; }

  /// [file] whether it is a picture by its first bytes, though its name does not say so.
  [[nodiscard]] const std::vector<bool>& unnamed_pictures() const { return unnamed_pictures_; }

  /// Why a file cannot be read; empty, if nothing is known against it.
  [[nodiscard]] const std::string& fault(std::size_t file) const { return faults_[file]; }

  using Take = std::function<void(std::size_t file, std::vector<std::byte> bytes)>;
  /// Reads the files for which `wanted` is set, none with a fault, in the order that is cheapest,
  /// and hands each to `take` with its number. An archive is read from its beginning every time.
  /// Throws as open().
  virtual void read(const std::vector<bool>& wanted, const Take& take) const = 0;

 protected:
  explicit FileSource(const std::string& path) : path_(path) {}
  /// Takes what was found, in whatever order.
  void keep(std::vector<ListedFile> found);

  std::string path_;
  std::vector<std::string> files_;
  std::vector<std::string> folders_;
  std::vector<std::int64_t> bytes_;
  std::vector<std::string> faults_;
  std::vector<bool> unnamed_pictures_;
};

/// Visits the files of a tar archive in memory, in its order, and tells what reads them. `where`
/// names the archive in errors, which are those of FileSource::open().
using VisitFile = std::function<void(const ListedFile& file,
                                     const std::function<std::vector<std::byte>()>& read)>;
void visit_tar(const std::string& where, std::span<const std::byte> tar, const VisitFile& visit);

}  // namespace carousel
