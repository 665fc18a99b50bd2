// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/base/row_file.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/align.hpp"
#include "core/base/check.hpp"
#include "core/base/hdf5_medium.hpp"
#include "core/base/hdf5_types.hpp"

namespace carousel::hdf5 {
namespace {

constexpr std::int64_t page = 4096;
// Readers read metadata bit by bit. So long they find what the superblock has led them to, or until
// so many more are published, if that is less.
constexpr std::chrono::seconds reading_time{10};
constexpr int slot_count = 128;

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

Shape RowFile::Column::shape() const {
  Shape shape{static_cast<hsize_t>(all_bytes() / row_bytes)};
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
  check_own();
  if (!fits() || !add(write_rest)) move(write_rest);
  for (Column& column : columns_) {
    column.bytes = column.all_bytes();
    column.pending.clear();
  }
}

void RowFile::check_own() const {
  if (identity_ && Descriptor::open(path_).identity() != identity_)
    fail(ExitCode::input_output,
         "{}: is another file than this process made; its folder was moved or replaced while it "
         "was in use",
         path_);
}

bool RowFile::fits() const {
  if (!identity_ || places_.size() != columns_.size()) return false;
  for (std::size_t k = 0; k < columns_.size(); ++k) {
    if (columns_[k].all_bytes() > places_[k].room) return false;
  }
  return true;
}

void RowFile::take(MetadataMedium& snapshot, std::span<const Place> places,
                   const WriteRest& write_rest) const {
  make_on(path_, snapshot, [&](File& file) {
    write_rest(file);
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      const Column& column = columns_[k];
      snapshot.place_values(column.all_bytes() > 0 ? places[k].offset : -1);
      file.reserve(column.dataset, column.type.get(), column.shape());
    }
  });
}

bool RowFile::add(const WriteRest& write_rest) {
  const auto now = std::chrono::steady_clock::now();
  // The first that nobody should be at any more, so that few are in use; or the one left first.
  const auto is_free = [&](const Slot& slot) {
    return &slot != &slots_[newest_] && (!slot.left || now - *slot.left > reading_time);
  };
  auto slot = std::ranges::find_if(slots_, is_free);
  if (slot == slots_.end()) {
    slots_[newest_].left = now;
    slot = std::ranges::min_element(slots_, {}, &Slot::left);
  }
  MetadataMedium snapshot(slot->place.offset, length_);
  take(snapshot, places_, write_rest);
  if (std::ssize(snapshot.bytes) > slot->place.room) return false;
  writing(path_, [&] {
    // Closed between the two, since some file systems show others what was written only then.
    Descriptor file = Descriptor::update(path_);
    for (std::size_t k = 0; k < columns_.size(); ++k)
      file.write_at(places_[k].offset + columns_[k].bytes, columns_[k].pending);
    file.write_at(slot->place.offset, snapshot.bytes);
    file.close();
    file = Descriptor::update(path_);
    file.write_at(0, snapshot.superblock);
    file.close();
  });
  slots_[newest_].left = now;
  newest_ = static_cast<std::size_t>(slot - slots_.begin());
  return true;
}

std::vector<RowFile::Place> RowFile::spacious_places() const {
  std::int64_t sum = 0;
  for (const Column& column : columns_) sum += column.all_bytes();
  // Of short columns, too, as much as a column has on average, so that none asks for more often.
  const std::int64_t least =
      align_up(std::max(page, sum / std::max<std::int64_t>(1, std::ssize(columns_))), page);
  std::vector<Place> places;
  std::int64_t end = page;  // the superblock has the first one to itself
  for (const Column& column : columns_) {
    const std::int64_t room = align_up(2 * column.all_bytes(), page) + least;
    places.push_back({std::exchange(end, end + room), room});
  }
  return places;
}

void RowFile::move(const WriteRest& write_rest) {
  const std::vector<Place> places = spacious_places();
  const std::int64_t end = places.empty() ? page : places.back().offset + places.back().room;
  MetadataMedium draft(end, end);  // tells how much room it takes
  take(draft, places, write_rest);
  const std::int64_t room = align_up(std::ssize(draft.bytes) * 5 / 4, page);
  std::vector<Slot> slots(slot_count);
  std::int64_t length = end;
  for (Slot& slot : slots) slot.place = {std::exchange(length, length + room), room};
  MetadataMedium snapshot(end, length);
  take(snapshot, places, write_rest);
  FileIdentity identity;
  replacing(path_, [&](const std::string& partial) {
    Descriptor::create(partial).close();
    Descriptor file = Descriptor::update(partial);
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      read_rows(k, [&](std::int64_t done, std::span<const std::byte> rows) {
        file.write_at(places[k].offset + done, rows);
      });
      file.write_at(places[k].offset + columns_[k].bytes, columns_[k].pending);
    }
    file.write_at(end, snapshot.bytes);
    file.write_at(0, snapshot.superblock);
    file.resize(length);  // zeros at its end take no room
    identity = file.identity();
    file.close();
  });
  identity_ = identity;
  places_ = places;
  slots_ = std::move(slots);
  length_ = length;
  newest_ = 0;
}

void RowFile::read_rows(std::size_t k, const TakeRows& take_rows) const {
  const Column& column = columns_[k];
  if (column.bytes == 0) return;
  const Descriptor file = Descriptor::open(path_);
  const std::int64_t most =
      std::max<std::int64_t>(1, 256 * page / column.row_bytes) * column.row_bytes;
  std::vector<std::byte> block;
  for (std::int64_t done = 0; done < column.bytes; done += std::ssize(block)) {
    block.resize(static_cast<std::size_t>(std::min(column.bytes - done, most)));
    file.read_at(places_[k].offset + done, block);
    take_rows(done, block);
  }
}

void RowFile::finish(const WriteRest& write_rest) {
  check_own();
  replacing(path_, [&](const std::string& partial) {
    Disk disk(partial);
    make_on(path_, disk, [&](File& file) {
      write_rest(file);
      for (std::size_t k = 0; k < columns_.size(); ++k) {
        const Column& column = columns_[k];
        CAROUSEL_CHECK(column.pending.empty(), "{}: not all rows were published", path_);
        const auto append = [&](std::int64_t, std::span<const std::byte> rows) {
          file.append_raw(column.dataset, column.type.get(), rows.data(),
                          rows.size() / H5Tget_size(column.type.get()), column.row);
        };
        append(0, {});  // the dataset itself, also where there are no rows
        read_rows(k, append);
      }
    });
    disk.close();
  });
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
