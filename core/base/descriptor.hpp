// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// An owned POSIX file descriptor whose calls finish what they start or throw with the system's
// reason, and whole files by it. For bytes whose fate matters; it knows no format.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace carousel {

/// What tells a file from another one of its name.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t number = 0;
  bool operator==(const FileIdentity&) const = default;
};

/// Move-only. All errors are Error(input_output) and name the path.
class Descriptor {
 public:
  /// Opens an existing file to read; what is no regular file is refused.
  static Descriptor open(const std::string& path);
  /// Makes an empty file to write, replacing one of that name.
  static Descriptor create(const std::string& path);
  /// Opens a file to write behind its bytes, and makes it if there is none.
  static Descriptor append(const std::string& path);
  /// Opens an existing file to write over its bytes.
  static Descriptor overwrite(const std::string& path);
  /// Opens an existing file to read and write its bytes.
  static Descriptor update(const std::string& path);
  /// Opens a folder, so that sync() makes renames in it last.
  static Descriptor open_folder(const std::string& path);

  Descriptor() = default;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] FileIdentity identity() const;
  /// Reads exactly `bytes.size()` bytes at `offset`; does not move a file position, so that threads
  /// may share the descriptor.
  void read_at(std::int64_t offset, std::span<std::byte> bytes) const;
  /// Writes all bytes at `offset`; does not move a file position.
  void write_at(std::int64_t offset, std::span<const std::byte> bytes);
  /// Cuts the file, or lets it end later with zeros, which take no room on most disks.
  void resize(std::int64_t bytes);
  /// Writes all bytes at the file position; allocates nothing unless it fails.
  void write(std::span<const std::byte> bytes);
  /// Returns once the bytes are on the disk.
  void sync();
  /// Closes and reports; some file systems tell only now that a quota is used up.
  void close();

 private:
  Descriptor(std::string path, int flags);
  [[noreturn]] void failed(const char* call, int error) const;

  std::string path_;
  int fd_ = -1;
};

/// That of a file or folder behind a path, whatever links lead there; none where there is none.
[[nodiscard]] std::optional<FileIdentity> identity_of(const std::string& path);

/// Where standard input, output or error is closed, holds its number, so that no file which is
/// opened later gets it and, with it, text that is meant for people. They stay as unusable as they
/// are: reading and writing fail as on closed ones. For the begin of a program.
void hold_standard_descriptors();

/// What a finished file must outlive: processes may be killed, machines may lose power.
enum class Durability : std::uint8_t { process, machine };

/// Gives `path` new contents at once: readers and crashes find either the former bytes or the new
/// ones. Throws Error(input_output), for example on a full disk, and leaves the former ones.
void replace_file(const std::string& path, std::span<const std::byte> bytes, Durability durability);

/// Runs a function that writes a file for `path`. Where it fails, says what the user can do.
void writing(const std::string& path, const std::function<void()>& function);

/// Runs a function that makes the file it is given the name of, which then replaces `path` at once.
/// Where it fails there is no such file, and the former one is as it was.
void replacing(const std::string& path, const std::function<void(const std::string&)>& function);

/// Gives a finished file the name of another at once. Error(input_output) leaves both.
void rename_file(const std::string& from, const std::string& to);

/// Returns once the folder that holds `path` is on the disk, and so the names in it.
void sync_folder_of(const std::string& path);

/// Makes an empty file; false if anything of that name exists. If several processes ask at once,
/// only one gets true. Error(input_output) if it cannot be made.
[[nodiscard]] bool make_file(const std::string& path);

/// Writes out what was printed; Error(input_output) when standard output cannot take it.
void flush_output();

/// All bytes of a file.
[[nodiscard]] std::vector<std::byte> read_file(const std::string& path);

}  // namespace carousel
