// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// An HDF5 file whose datasets grow by rows while others read it. What it costs to add rows does not
// depend on how many there are. It does not know what the rows mean.
//
// On disk, every dataset is one run of bytes with room behind it. To publish means: the new rows go
// into that room, which no reader knows of; then a fresh copy of all that HDF5 says about the
// datasets (the metadata, a few KiB) goes where no reader looks; then the 48 bytes of the
// superblock, which lead to that copy, are replaced by one write. Where room is wanting, the file
// is replaced by a copy with twice as much. So it holds all published rows at whatever moment the
// process is killed, and a reader sees the rows before or after. Who keeps a file open for more
// than ten seconds, or a hundred segments, opens it anew: its parts may have become longer one by
// one.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/descriptor.hpp"
#include "core/base/hdf5.hpp"

namespace carousel::hdf5 {

class MetadataMedium;

class RowFile {
 public:
  /// Writes what the file holds besides rows.
  using WriteRest = std::function<void(File&)>;

  /// There is no file of that name until the first publish().
  explicit RowFile(std::string path) : path_(std::move(path)) {}

  /// Adds rows of shape `row` at the end of a dataset, which starts with the first call; T as in
  /// File. They are kept until publish().
  template <class T>
  void append(const std::string& dataset, std::span<const T> values, const Shape& row = {});
  /// The same with strings, which are cut at 16 characters.
  void append_strings(const std::string& dataset, std::span<const char* const> values);

  /// Brings all rows to the file. Error(input_output), for example on a full disk, leaves it as it
  /// was. So does a file of that name that another process has put in its place: it is not touched.
  void publish(const WriteRest& write_rest);
  /// Replaces the file by one without spare room, whose rows have checksums. Nothing is added
  /// afterwards.
  void finish(const WriteRest& write_rest);

 private:
  struct Column {
    std::string dataset;
    Handle type = {};
    Shape row = {};
    std::int64_t row_bytes = 0;
    std::int64_t bytes = 0;               // of rows that are in the file
    std::vector<std::byte> pending = {};  // rows that are not

    [[nodiscard]] std::int64_t all_bytes() const { return bytes + std::ssize(pending); }
    [[nodiscard]] Shape shape() const;
  };
  /// Room in the file.
  struct Place {
    std::int64_t offset = 0;
    std::int64_t room = 0;  // bytes
  };
  /// Room for one copy of the metadata.
  struct Slot {
    Place place;
    std::optional<std::chrono::steady_clock::time_point> left;  // when it ceased to be the newest
  };
  using TakeRows = std::function<void(std::int64_t done, std::span<const std::byte> rows)>;

  void append_raw(const std::string& dataset, Handle type, std::span<const std::byte> values,
                  const Shape& row);
  /// Throws Error(input_output) unless the file of that name is this one, if there is one yet.
  void check_own() const;
  [[nodiscard]] bool fits() const;
  /// Publishes into the room that there is; false where the metadata need more.
  bool add(const WriteRest& write_rest);
  /// Publishes by a file with more room in place of the former one. No file becomes longer under
  /// its readers: HDF5 asks for the length before it reads how long a file should be.
  void move(const WriteRest& write_rest);
  [[nodiscard]] std::vector<Place> spacious_places() const;
  void take(MetadataMedium& snapshot, std::span<const Place> places,
            const WriteRest& write_rest) const;
  /// Reads the rows of a column in the file, block by block.
  void read_rows(std::size_t k, const TakeRows& take_rows) const;

  std::string path_;
  std::optional<FileIdentity> identity_;  // none before there is a file
  std::int64_t length_ = 0;               // bytes of the file
  std::vector<Column> columns_;
  std::vector<Place> places_;  // [column]
  std::vector<Slot> slots_;
  std::size_t newest_ = 0;  // slot
};

}  // namespace carousel::hdf5
