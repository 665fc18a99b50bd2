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

#include "core/base/check.hpp"
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

/// Makes `access` lead to a medium, which must outlive the file.
void use_medium(const Handle& access, Medium& medium);

}  // namespace carousel::hdf5
