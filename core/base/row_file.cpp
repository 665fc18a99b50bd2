// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/base/row_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/hdf5_medium.hpp"
#include "core/base/hdf5_types.hpp"

namespace carousel::hdf5 {
namespace {

constexpr std::int64_t page = 4096;
constexpr std::int64_t superblock_bytes = 48;  // version 3, the latest format's
// A dataset that is full moves to twice the room: what moves in all is as much as there are rows.
constexpr std::int64_t growth = 2;
// Readers read metadata bit by bit; so long they find what the superblock has led them to.
constexpr std::chrono::seconds reading_time{10};
// HDF5 asks for the length of a file just before it reads the superblock.
constexpr std::chrono::milliseconds opening_time{20};

std::int64_t whole_pages(std::int64_t bytes) {
  return (bytes + page - 1) / page * page;
}

/// Runs a function that writes a file; says what the user can do where it fails.
template <class Function>
void writing(const std::string& partial, Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    if (!partial.empty()) std::remove(partial.c_str());
    if (error.code() != ExitCode::input_output) throw;
    fail(error.code(), "{}; check free space, quota and permissions", error.what());
  }
}

void rename_file(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    fail(ExitCode::input_output, "{}: cannot rename to {}: {}", from, to,
         std::generic_category().message(errno));
}

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

/// A file on disk, made from its begin to its end.
class Disk final : public Medium {
 public:
  explicit Disk(const std::string& path) {
    Descriptor::create(path).close();
    file_ = Descriptor::update(path);
  }

  std::int64_t allocate(Part, std::int64_t bytes) override {
    return std::exchange(end_, end_ + bytes);
  }
  [[nodiscard]] std::int64_t end() const override { return end_; }
  void set_end(std::int64_t end) override { end_ = end; }
  void write(std::int64_t offset, std::span<const std::byte> bytes) override {
    file_.write_at(offset, bytes);
  }
  void read(std::int64_t offset, std::span<std::byte> bytes) override {
    file_.read_at(offset, bytes);
  }

  void close() {
    file_.resize(end_);
    file_.close();
  }

 private:
  Descriptor file_;
  std::int64_t end_ = 0;
};

}  // namespace

/// Metadata in memory, as it will lie at a place of the file. Values of rows have places already.
class RowFile::Snapshot final : public Medium {
 public:
  Snapshot(std::int64_t place, std::int64_t file_end)
      : superblock(superblock_bytes), place_(place), file_end_(file_end) {}

  /// The next dataset has its values there.
  void place_values(std::int64_t place) { values_ = place; }

  std::int64_t allocate(Part part, std::int64_t size) override {
    begun_ = true;
    if (part == Part::superblock) return 0;
    if (part == Part::values && values_ >= 0) return std::exchange(values_, -1);
    const std::int64_t offset = place_ + std::ssize(bytes);
    bytes.resize(bytes.size() + static_cast<std::size_t>(size));
    return offset;
  }
  [[nodiscard]] std::int64_t end() const override {
    if (!begun_) return 0;
    return std::max(file_end_, place_ + std::ssize(bytes));
  }
  void set_end(std::int64_t end) override {
    CAROUSEL_CHECK(end >= place_, "HDF5 cuts off {} bytes", place_ - end);
    bytes.resize(static_cast<std::size_t>(end - place_));
  }
  void write(std::int64_t offset, std::span<const std::byte> from) override {
    std::ranges::copy(from, at(offset, from.size()));
  }
  void read(std::int64_t offset, std::span<std::byte> to) override {
    std::copy_n(at(offset, to.size()), to.size(), to.begin());
  }

  std::vector<std::byte> superblock;
  std::vector<std::byte> bytes;

 private:
  std::vector<std::byte>::iterator at(std::int64_t offset, std::size_t size) {
    std::vector<std::byte>& part = offset < superblock_bytes ? superblock : bytes;
    if (&part == &bytes) offset -= place_;
    CAROUSEL_CHECK(offset >= 0 && offset + static_cast<std::int64_t>(size) <= std::ssize(part),
                   "HDF5 turns to {} bytes that it has no room for", size);
    return part.begin() + offset;
  }

  std::int64_t place_;
  std::int64_t file_end_;
  std::int64_t values_ = -1;
  bool begun_ = false;
};

Shape RowFile::Column::shape() const {
  Shape shape{static_cast<hsize_t>(bytes / row_bytes)};
  shape.insert(shape.end(), row.begin(), row.end());
  return shape;
}

template <class T>
void RowFile::append(const std::string& dataset, std::span<const T> values, const Shape& row) {
  append_raw(dataset, {H5Tcopy(native_type<T>()), H5Tclose}, std::as_bytes(values), row);
}

void RowFile::append_strings(const std::string& dataset, std::span<const char* const> values) {
  const std::vector<char> cells = packed(values, word_size);
  append_raw(dataset, string_type(word_size), std::as_bytes(std::span(cells)), {});
}

void RowFile::append_raw(const std::string& dataset, Handle type, std::span<const std::byte> values,
                         const Shape& row) {
  auto column = std::ranges::find(columns_, dataset, &Column::dataset);
  if (column == columns_.end()) {
    columns_.push_back({.dataset = dataset, .row = row});
    column = columns_.end() - 1;
    column->row_bytes = static_cast<std::int64_t>(H5Tget_size(type.get()) * elements(row));
    column->type = std::move(type);
  }
  CAROUSEL_CHECK(std::ssize(values) % column->row_bytes == 0, "{}: {} bytes are no whole rows",
                 dataset, values.size());
  column->pending.insert(column->pending.end(), values.begin(), values.end());
}

void RowFile::publish(const WriteRest& write_rest) {
  const std::string partial = path_ + ".partial";
  const std::string& written = exists_ ? path_ : partial;
  writing(exists_ ? "" : partial, [&] {
    if (!exists_) Descriptor::create(partial).close();
    std::vector<std::byte> superblock;
    // Closed between the two, since some file systems show others what was written only then.
    Descriptor file = Descriptor::update(written);
    for (Column& column : columns_) write_rows(file, column);
    const std::size_t slot = write_metadata(file, write_rest, superblock);
    file.close();
    file = Descriptor::update(written);
    file.write_at(0, superblock);
    file.close();
    slots_[std::exchange(newest_, slot)].left = std::chrono::steady_clock::now();
    if (!exists_) rename_file(partial, path_);
  });
  exists_ = true;
}

/// Behind the rows that are there; where there is no room for that, all move. Their former place is
/// not used again, since readers may be at it.
void RowFile::write_rows(Descriptor& file, Column& column) {
  if (column.pending.empty()) return;
  const std::int64_t bytes = column.bytes + std::ssize(column.pending);
  if (bytes > column.room) {
    const std::int64_t room = whole_pages(growth * bytes);
    std::vector<std::byte> block;
    for (std::int64_t done = 0; done < column.bytes; done += std::ssize(block)) {
      block.resize(static_cast<std::size_t>(std::min(column.bytes - done, 256 * page)));
      file.read_at(column.place + done, block);
      file.write_at(end_ + done, block);
    }
    file.write_at(end_ + column.bytes, column.pending);
    column.place = std::exchange(end_, end_ + room);
    column.room = room;
  } else {
    file.write_at(column.place + column.bytes, column.pending);
  }
  column.bytes = bytes;
  column.pending.clear();
}

void RowFile::take(Snapshot& snapshot, const WriteRest& write_rest) const {
  make_on(path_, snapshot, [&](File& file) {
    write_rest(file);
    for (const Column& column : columns_) {
      snapshot.place_values(column.bytes > 0 ? column.place : -1);
      file.reserve(column.dataset, column.type.get(), column.shape());
    }
  });
}

/// In a slot that no reader should be at any more, or in a new one.
std::size_t RowFile::write_metadata(Descriptor& file, const WriteRest& write_rest,
                                    std::vector<std::byte>& superblock) {
  const auto now = std::chrono::steady_clock::now();
  const auto usable = [&](const Slot& slot) {
    return &slot != &slots_[newest_] && now - slot.left > reading_time;
  };
  auto chosen = static_cast<std::size_t>(std::ranges::find_if(slots_, usable) - slots_.begin());
  const auto snapshot = [&](std::int64_t place) {
    auto made = std::make_unique<Snapshot>(place, end_);
    take(*made, write_rest);
    return made;
  };
  auto made = snapshot(chosen < slots_.size() ? slots_[chosen].place : end_);
  if (chosen < slots_.size() && std::ssize(made->bytes) > slots_[chosen].room) {
    chosen = slots_.size();
    made = snapshot(end_);
  }
  if (chosen == slots_.size()) {
    const std::int64_t room = whole_pages(std::ssize(made->bytes));
    slots_.push_back({.place = std::exchange(end_, end_ + room), .room = room});
  }
  file.write_at(slots_[chosen].place, made->bytes);
  make_long_enough(file);
  superblock = std::move(made->superblock);
  return chosen;
}

/// HDF5 refuses a file that is shorter than its superblock says. So the file becomes longer before
/// the superblock says so, and by so much that this is seldom; zeros at its end take no room.
void RowFile::make_long_enough(Descriptor& file) {
  if (end_ <= length_) return;
  file.resize(2 * end_);
  length_ = 2 * end_;
  if (exists_) std::this_thread::sleep_for(opening_time);
}

void RowFile::finish(const WriteRest& write_rest) {
  const std::string partial = path_ + ".partial";
  writing(partial, [&] {
    Disk disk(partial);
    const Descriptor source = Descriptor::open(path_);
    make_on(path_, disk, [&](File& file) {
      write_rest(file);
      for (const Column& column : columns_) copy_rows(file, source, column);
    });
    disk.close();
    rename_file(partial, path_);
  });
}

void RowFile::copy_rows(File& file, const Descriptor& source, const Column& column) const {
  CAROUSEL_CHECK(exists_ && column.pending.empty(), "{}: rows of {} were not published", path_,
                 column.dataset);
  const std::int64_t most =
      std::max<std::int64_t>(1, 256 * page / column.row_bytes) * column.row_bytes;
  std::vector<std::byte> block;
  std::int64_t done = 0;
  do {  // once without rows, for the dataset itself
    block.resize(static_cast<std::size_t>(std::min(column.bytes - done, most)));
    source.read_at(column.place + done, block);
    file.append_raw(column.dataset, column.type.get(), block.data(),
                    block.size() / H5Tget_size(column.type.get()), column.row);
    done += std::ssize(block);
  } while (done < column.bytes);
}

#define CAROUSEL_INSTANTIATE(T) \
  template void RowFile::append<T>(const std::string&, std::span<const T>, const Shape&);
CAROUSEL_INSTANTIATE(std::uint8_t)
CAROUSEL_INSTANTIATE(int)
CAROUSEL_INSTANTIATE(std::int64_t)
CAROUSEL_INSTANTIATE(std::uint64_t)
CAROUSEL_INSTANTIATE(float)
CAROUSEL_INSTANTIATE(double)
#undef CAROUSEL_INSTANTIATE

}  // namespace carousel::hdf5
