// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where HDF5 puts the bytes of a file that it makes: a driver of HDF5 that asks C++. So whoever
// makes a file decides where its parts lie, and writes them with own calls, whose errors count: on
// a full disk HDF5 1.10.8 reports success and may crash later.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/descriptor.hpp"
#include "core/base/hdf5.hpp"

namespace carousel::hdf5 {

/// What HDF5 asks for room: its superblock, values of datasets, all else.
enum class Part : std::uint8_t { superblock, values, metadata };

/// The functions may throw: HDF5 hears of no failure, check() does.
class Medium {
 public:
  Medium() = default;
  Medium(const Medium&) = delete;
  Medium& operator=(const Medium&) = delete;
  virtual ~Medium() = default;

  /// Finds room for so many bytes and returns its offset; that of a superblock must be 0.
  virtual std::int64_t allocate(Part part, std::int64_t bytes) = 0;
  /// No byte of the file lies at this offset or behind it; 0 before the first allocate(), which
  /// tells HDF5 that the file is new.
  [[nodiscard]] virtual std::int64_t end() const = 0;
  /// Lets what was allocated last become longer or shorter.
  virtual void set_end(std::int64_t end) = 0;
  virtual void write(std::int64_t offset, std::span<const std::byte> bytes) = 0;
  virtual void read(std::int64_t offset, std::span<std::byte> bytes) = 0;

  /// Throws what a function of this medium has thrown.
  void check() const {
    if (failure_) throw *failure_;
  }
  /// Runs a function and keeps the first error.
  void keep(const std::function<void()>& function) noexcept;

 private:
  std::optional<Error> failure_;
};

/// Metadata in memory, as it will lie at a place of the file. Values that somebody else writes have
/// places already.
class MetadataMedium final : public Medium {
 public:
  static constexpr std::int64_t superblock_bytes = 48;  // version 3, the latest format's

  /// The file does not end in front of `file_end`.
  MetadataMedium(std::int64_t place, std::int64_t file_end)
      : superblock(superblock_bytes), place_(place), file_end_(file_end) {}

  /// The next dataset has its values there; -1: behind the metadata before.
  void place_values(std::int64_t place) { values_ = place; }

  std::int64_t allocate(Part part, std::int64_t size) override;
  [[nodiscard]] std::int64_t end() const override;
  void set_end(std::int64_t end) override;
  void write(std::int64_t offset, std::span<const std::byte> from) override;
  void read(std::int64_t offset, std::span<std::byte> to) override;

  std::vector<std::byte> superblock;
  std::vector<std::byte> bytes;

 private:
  std::vector<std::byte>::iterator at(std::int64_t offset, std::size_t size);

  std::int64_t place_;
  std::int64_t file_end_;
  std::int64_t values_ = -1;
  bool begun_ = false;
};

/// A file that exists, to read.
class ReadingMedium final : public Medium {
 public:
  /// Borrows the descriptor.
  explicit ReadingMedium(const Descriptor& file) : file_(file), size_(file.size()) {}

  std::int64_t allocate(Part part, std::int64_t bytes) override;
  [[nodiscard]] std::int64_t end() const override { return size_; }
  void set_end(std::int64_t) override {}  // HDF5 feels its way from the superblock on
  void write(std::int64_t offset, std::span<const std::byte> bytes) override;
  void read(std::int64_t offset, std::span<std::byte> bytes) override;

 private:
  const Descriptor& file_;
  std::int64_t size_;
};

/// Makes `access` lead to a medium, which must outlive the file.
void use_medium(const Handle& access, Medium& medium);

/// Makes a file on a medium, whose own error says more than that of HDF5 which follows from it.
template <class Function>
void make_on(const std::string& path, Medium& medium, Function&& write) {
  try {
    File file = File::create_on(path, medium);
    write(file);
    file.close();
  } catch (const Error&) {
    medium.check();
    throw;
  }
  medium.check();
}

}  // namespace carousel::hdf5
