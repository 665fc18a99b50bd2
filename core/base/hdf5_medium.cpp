// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/base/hdf5_medium.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

namespace carousel::hdf5 {
namespace {

/// What HDF5 knows of an open file: its own fields, which must come first, and ours.
struct OpenFile {
  H5FD_t of_library;
  Medium* medium;
};

/// What HDF5 keeps in access properties for us.
struct Access {
  Medium* medium;
};

Medium& medium_of(const H5FD_t* file) {
  return *reinterpret_cast<const OpenFile*>(file)->medium;
}

H5FD_t* open(const char*, unsigned, hid_t access, haddr_t) {
  const auto* info = static_cast<const Access*>(H5Pget_driver_info(access));
  if (info == nullptr) return nullptr;
  auto* file = new (std::nothrow) OpenFile{};
  if (file == nullptr) return nullptr;
  file->medium = info->medium;
  return &file->of_library;
}

herr_t close(H5FD_t* file) {
  delete reinterpret_cast<OpenFile*>(file);
  return 0;
}

/// Two files are one where they have the same medium.
int compare(const H5FD_t* a, const H5FD_t* b) {
  const std::less<> before;
  const Medium *first = &medium_of(a), *second = &medium_of(b);
  return before(first, second) ? -1 : static_cast<int>(before(second, first));
}

herr_t query(const H5FD_t*, unsigned long* features) {
  *features = 0;  // HDF5 asks for room, and writes, piece by piece
  return 0;
}

haddr_t allocate(H5FD_t* file, H5FD_mem_t type, hid_t, hsize_t size) {
  Part part = Part::metadata;
  if (type == H5FD_MEM_SUPER) part = Part::superblock;
  if (type == H5FD_MEM_DRAW) part = Part::values;
  haddr_t address = HADDR_UNDEF;
  Medium& medium = medium_of(file);
  medium.keep([&] {
    address = static_cast<haddr_t>(medium.allocate(part, static_cast<std::int64_t>(size)));
  });
  return address;
}

haddr_t end(const H5FD_t* file, H5FD_mem_t) {
  return static_cast<haddr_t>(medium_of(file).end());
}

herr_t set_end(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  Medium& medium = medium_of(file);
  // HDF5 begins every file by giving it no length.
  if (end > 0) medium.keep([&] { medium.set_end(static_cast<std::int64_t>(end)); });
  return 0;
}

herr_t read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, std::size_t size, void* bytes) {
  Medium& medium = medium_of(file);
  medium.keep([&] {
    medium.read(static_cast<std::int64_t>(offset), {static_cast<std::byte*>(bytes), size});
  });
  return 0;
}

herr_t write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, std::size_t size, const void* bytes) {
  Medium& medium = medium_of(file);
  medium.keep([&] {
    medium.write(static_cast<std::int64_t>(offset), {static_cast<const std::byte*>(bytes), size});
  });
  return 0;
}

const H5FD_class_t& driver() {
  static const H5FD_class_t driver = [] {
    H5FD_class_t functions = {};
#ifdef H5FD_CLASS_VERSION
    functions.version = H5FD_CLASS_VERSION;
    functions.value = static_cast<H5FD_class_value_t>(H5_VFD_RESERVED + 1);
#endif
    functions.name = "carousel medium";
    functions.maxaddr = HADDR_MAX;
    functions.fc_degree = H5F_CLOSE_WEAK;
    functions.fapl_size = sizeof(Access);
    functions.open = open;
    functions.close = close;
    functions.cmp = compare;
    functions.query = query;
    functions.alloc = allocate;
    functions.get_eoa = end;
    functions.set_eoa = set_end;
    functions.get_eof = end;
    functions.read = read;
    functions.write = write;
    return functions;
  }();
  return driver;
}

}  // namespace

void Medium::keep(const std::function<void()>& function) noexcept {
  if (failure_) return;
  try {
    function();
  } catch (const Error& error) {
    failure_ = error;
  } catch (const std::exception& error) {
    failure_.emplace(ExitCode::internal, error.what());
  }
}

std::int64_t MetadataMedium::allocate(Part part, std::int64_t size) {
  begun_ = true;
  if (part == Part::superblock) return 0;
  if (part == Part::values && values_ >= 0) return std::exchange(values_, -1);
  const std::int64_t offset = place_ + std::ssize(bytes);
  bytes.resize(bytes.size() + static_cast<std::size_t>(size));
  return offset;
}

std::int64_t MetadataMedium::end() const {
  if (!begun_) return 0;
  return std::max(file_end_, place_ + std::ssize(bytes));
}

void MetadataMedium::set_end(std::int64_t end) {
  CAROUSEL_CHECK(end >= place_, "HDF5 cuts off {} bytes", place_ - end);
  bytes.resize(static_cast<std::size_t>(end - place_));
}

void MetadataMedium::write(std::int64_t offset, std::span<const std::byte> from) {
  std::ranges::copy(from, at(offset, from.size()));
}

void MetadataMedium::read(std::int64_t offset, std::span<std::byte> to) {
  std::copy_n(at(offset, to.size()), to.size(), to.begin());
}

std::vector<std::byte>::iterator MetadataMedium::at(std::int64_t offset, std::size_t size) {
  std::vector<std::byte>& part = offset < superblock_bytes ? superblock : bytes;
  if (&part == &bytes) offset -= place_;
  CAROUSEL_CHECK(offset >= 0 && offset + static_cast<std::int64_t>(size) <= std::ssize(part),
                 "HDF5 turns to {} bytes that it has no room for", size);
  return part.begin() + offset;
}

std::int64_t ReadingMedium::allocate(Part, std::int64_t) {
  fail(ExitCode::internal, "HDF5 asks for room in a file that is read");
}

void ReadingMedium::write(std::int64_t, std::span<const std::byte>) {
  fail(ExitCode::internal, "HDF5 writes to a file that is read");
}

/// What lies behind the end, where a damaged file may lead, is zero.
void ReadingMedium::read(std::int64_t offset, std::span<std::byte> bytes) {
  std::ranges::fill(bytes, std::byte{});
  if (offset < 0 || offset >= size_) return;
  file_.read_at(offset,
                bytes.first(static_cast<std::size_t>(std::min(size_ - offset, std::ssize(bytes)))));
}

void use_medium(const Handle& access, Medium& medium) {
  static const hid_t id = H5FDregister(&driver());
  const Access info{&medium};
  CAROUSEL_CHECK(id >= 0 && H5Pset_driver(access.get(), id, &info) >= 0,
                 "HDF5 takes no driver for its files");
}

}  // namespace carousel::hdf5
