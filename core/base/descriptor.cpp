// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/base/descriptor.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/base/check.hpp"

namespace carousel {

namespace {

constexpr mode_t permissions = 0666;  // less the user's umask

}  // namespace

Descriptor::Descriptor(std::string path, int flags) : path_(std::move(path)) {
  fd_ = ::open(path_.c_str(), flags | O_CLOEXEC, permissions);
  if (fd_ < 0) failed("open", errno);
}

// Does not wait for the writer of a pipe, and refuses what has no size and no offsets.
Descriptor Descriptor::open(const std::string& path) {
  Descriptor file(path, O_RDONLY | O_NONBLOCK);
  struct stat status = {};
  if (::fstat(file.fd_, &status) != 0) file.failed("stat", errno);
  if (S_ISDIR(status.st_mode)) file.failed("open", EISDIR);
  if (!S_ISREG(status.st_mode))
    fail(ExitCode::input_output, "{}: cannot open: it is a pipe or device; give a file", path);
  return file;
}

Descriptor Descriptor::create(const std::string& path) {
  return {path, O_WRONLY | O_CREAT | O_TRUNC};
}

Descriptor Descriptor::append(const std::string& path) {
  return {path, O_WRONLY | O_CREAT | O_APPEND};
}

Descriptor Descriptor::overwrite(const std::string& path) {
  return {path, O_WRONLY};
}

Descriptor Descriptor::update(const std::string& path) {
  return {path, O_RDWR};
}

Descriptor Descriptor::open_folder(const std::string& path) {
  return {path, O_RDONLY | O_DIRECTORY};
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

void Descriptor::failed(const char* call, int error) const {
  fail(ExitCode::input_output, "{}: cannot {}: {}", path_, call,
       std::generic_category().message(error));
}

std::int64_t Descriptor::size() const {
  struct stat status = {};
  if (::fstat(fd_, &status) != 0) failed("stat", errno);
  return status.st_size;
}

FileIdentity Descriptor::identity() const {
  struct stat status = {};
  if (::fstat(fd_, &status) != 0) failed("stat", errno);
  return {status.st_dev, status.st_ino};
}

void Descriptor::read_at(std::int64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(fd_, bytes.data(), bytes.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) failed("read", errno);
    if (got == 0)
      fail(ExitCode::input_output,
           "{}: ends at byte {}, before byte {}; it was cut while in use, copy it again", path_,
           size(), offset + std::ssize(bytes));
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    offset += got;
  }
}

void Descriptor::write_at(std::int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) failed("write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    offset += put;
  }
}

void Descriptor::resize(std::int64_t bytes) {
  if (::ftruncate(fd_, bytes) != 0) failed("resize", errno);
}

void Descriptor::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) failed("write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

void Descriptor::sync() {
  // Some file systems know no fsync, or none of folders; there, nothing more can be done.
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
    failed("fsync", errno);
}

void Descriptor::close() {
  if (::close(std::exchange(fd_, -1)) != 0) failed("close", errno);
}

std::optional<FileIdentity> identity_of(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return FileIdentity{status.st_dev, status.st_ino};
}

void hold_standard_descriptors() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(number, F_GETFD) != -1) continue;
    // The lowest free number is taken. What cannot be written to fails where somebody writes.
    const int flags = number == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", flags) < 0) ::open("/", O_RDONLY | O_DIRECTORY);
  }
}

void replace_file(const std::string& path, std::span<const std::byte> bytes,
                  Durability durability) {
  replacing(path, [&](const std::string& partial) {
    Descriptor file = Descriptor::create(partial);
    file.write(bytes);
    if (durability == Durability::machine) file.sync();
    file.close();
  });
  if (durability == Durability::machine) sync_folder_of(path);
}

void writing(const std::string& path, const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    if (error.code() != ExitCode::input_output) throw;
    fail(error.code(), "{}; check free space, quota and permissions; {} was not changed",
         error.what(), path);
  }
}

void replacing(const std::string& path, const std::function<void(const std::string&)>& function) {
  const std::string partial = path + ".partial";
  writing(path, [&] {
    try {
      function(partial);
      rename_file(partial, path);
    } catch (...) {
      ::unlink(partial.c_str());
      throw;
    }
  });
}

void rename_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0)
    fail(ExitCode::input_output, "{}: cannot rename to {}: {}", from, to,
         std::generic_category().message(errno));
}

void sync_folder_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  // One may be allowed to write into a folder and not to read it, without which it has no fsync.
  if (::access(folder.c_str(), R_OK) != 0 && errno == EACCES) return;
  Descriptor::open_folder(folder).sync();
}

bool make_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions);
  if (fd < 0 && errno == EEXIST) return false;
  if (fd < 0)
    fail(ExitCode::input_output, "{}: cannot open: {}", path,
         std::generic_category().message(errno));
  ::close(fd);
  return true;
}

void flush_output() {
  if (std::fflush(stdout) != 0)
    fail(ExitCode::input_output, "standard output: {}", std::generic_category().message(errno));
}

std::vector<std::byte> read_file(const std::string& path) {
  const Descriptor file = Descriptor::open(path);
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.size()));
  file.read_at(0, bytes);
  return bytes;
}

}  // namespace carousel
