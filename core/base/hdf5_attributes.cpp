// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Attributes and strings of HDF5 files. Strings are written with a fixed length: those of variable
// length live in a heap without checksum, and the library crashes or hangs on a damaged one
// (1.10.8). Where somebody else wrote such ones, they are read by a process of their own.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

#include "core/base/check.hpp"
#include "core/base/hdf5.hpp"
#include "core/base/hdf5_types.hpp"

namespace carousel::hdf5 {
namespace {

std::size_t longest(const std::vector<std::string>& values) {
  std::size_t size = 1;
  for (const std::string& value : values) size = std::max(size, value.size());
  return size;
}

Handle scalar() {
  return {H5Screate(H5S_SCALAR), H5Sclose};
}

Handle list(std::size_t count) {
  const hsize_t extent = count;
  return {H5Screate_simple(1, &extent, nullptr), H5Sclose};
}

constexpr rlim_t patience = 1;                            // seconds of work for who reads
constexpr std::size_t most_text = std::size_t{64} << 20;  // bytes of strings of variable length

/// Ends a process that must not clean up after its parent.
[[noreturn]] void leave(bool well) {
  _exit(well ? 0 : 1);
}

/// Reads strings of variable length and writes them, each with a zero behind it.
[[noreturn]] void tell_strings(int pipe, hid_t id, bool attribute, std::size_t count) {
  const rlimit none = {};
  setrlimit(RLIMIT_CORE, &none);
  const rlimit work = {.rlim_cur = patience, .rlim_max = patience};
  setrlimit(RLIMIT_CPU, &work);
  // Memory beyond what it has: a damaged heap may claim any size.
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;  // the sixth number is of data
  for (int k = 0; k < 6; ++k) statm >> pages;
  const auto page = static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  const rlimit memory = {.rlim_cur = pages * page + 2 * most_text,
                         .rlim_max = pages * page + 2 * most_text};
  if (pages > 0) setrlimit(RLIMIT_DATA, &memory);
  std::vector<char*> values(count);
  const hid_t type = H5Tcopy(H5T_C_S1);
  const Handle stored(attribute ? H5Aget_type(id) : H5Dget_type(id), H5Tclose);
  if (H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, H5Tget_cset(stored.get())) < 0)
    leave(false);
  const herr_t result = attribute ? H5Aread(id, type, values.data())
                                  : H5Dread(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  if (result < 0) leave(false);
  for (const char* value : values) {
    const char* at = value == nullptr ? "" : value;
    for (std::size_t left = std::strlen(at) + 1; left > 0;) {
      const ssize_t written = ::write(pipe, at, left);
      if (written < 0) leave(false);
      at += written;
      left -= static_cast<std::size_t>(written);
    }
  }
  leave(true);
}

/// What such a process tells; none where it does not come to its end.
std::optional<std::vector<std::string>> strings_apart(hid_t id, bool attribute, std::size_t count) {
  std::array<int, 2> ends = {};
  if (pipe(ends.data()) != 0) return std::nullopt;
  const pid_t reader = fork();
  if (reader == 0) {
    close(ends[0]);
    tell_strings(ends[1], id, attribute, count);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 4096> piece = {};
  while (reader > 0 && text.size() < most_text) {
    const ssize_t got = ::read(ends[0], piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  while (reader > 0 && waitpid(reader, &status, 0) < 0 && errno == EINTR) continue;
  const bool well = reader > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!well || static_cast<std::size_t>(std::ranges::count(text, '\0')) != count)
    return std::nullopt;
  std::vector<std::string> values;
  for (std::size_t at = 0; values.size() < count; at += values.back().size() + 1)
    values.emplace_back(text.c_str() + at);
  return values;
}

}  // namespace

void File::write_strings(const std::string& dataset, const std::vector<std::string>& values) {
  const std::size_t size = longest(values);
  write_raw(dataset, string_type(size).get(), packed(values, size).data(), {values.size()},
            Layout::contiguous);
}

void File::append_strings(const std::string& dataset, std::span<const char* const> values) {
  append_raw(dataset, string_type(word_size).get(), packed(values, word_size).data(), values.size(),
             {});
}

std::vector<std::string> File::read_string_values(hid_t id, bool attribute,
                                                  const std::string& object) const {
  const Handle type(attribute ? H5Aget_type(id) : H5Dget_type(id), H5Tclose);
  const Handle space(attribute ? H5Aget_space(id) : H5Dget_space(id), H5Sclose);
  if (H5Tget_class(type.get()) != H5T_STRING)
    fail(ExitCode::bad_data, "{}: {} is not text", path_, object);
  const std::size_t size = H5Tget_size(type.get());
  const std::size_t count =
      attribute ? static_cast<std::size_t>(check(H5Sget_simple_extent_npoints(space.get()),
                                                 "H5Sget_simple_extent_npoints", object))
                : plausible_size(id, size, object);
  if (H5Tis_variable_str(type.get()) > 0) {
    std::optional<std::vector<std::string>> values = strings_apart(id, attribute, count);
    if (!values)
      fail(ExitCode::bad_data,
           "{}: {} is text of variable length, and HDF5 cannot read it; the file is damaged", path_,
           object);
    return *std::move(values);
  }
  std::vector<char> cells(count * size);
  check(attribute ? H5Aread(id, type.get(), cells.data())
                  : H5Dread(id, type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, cells.data()),
        attribute ? "H5Aread" : "H5Dread", object);
  std::vector<std::string> values;
  for (std::size_t k = 0; k < count; ++k) {
    const char* cell = cells.data() + k * size;
    values.emplace_back(cell, strnlen(cell, size));
  }
  return values;
}

std::vector<std::string> File::read_strings(const std::string& dataset) const {
  return read_string_values(open_dataset(dataset).get(), false, dataset);
}

void File::set_raw(const std::string& object, const std::string& name, hid_t type, hid_t space,
                   const void* data) {
  if (has(object, name))
    check(H5Adelete_by_name(id_.get(), object.c_str(), name.c_str(), H5P_DEFAULT),
          "H5Adelete_by_name", object + "." + name);
  const Handle attribute(check(H5Acreate_by_name(id_.get(), object.c_str(), name.c_str(), type,
                                                 space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                               "H5Acreate_by_name", object + "." + name),
                         H5Aclose);
  check(H5Awrite(attribute.get(), type, data), "H5Awrite", object + "." + name);
}

void File::set(const std::string& object, const std::string& name, std::string_view value) {
  const std::size_t size = std::max<std::size_t>(1, value.size());
  const std::vector<std::string_view> one{value};
  set_raw(object, name, string_type(size).get(), scalar().get(), packed(one, size).data());
}

void File::set(const std::string& object, const std::string& name, std::int64_t value) {
  set_raw(object, name, H5T_NATIVE_INT64, scalar().get(), &value);
}

void File::set(const std::string& object, const std::string& name, std::uint64_t value) {
  set_raw(object, name, H5T_NATIVE_UINT64, scalar().get(), &value);
}

void File::set(const std::string& object, const std::string& name, double value) {
  set_raw(object, name, H5T_NATIVE_DOUBLE, scalar().get(), &value);
}

void File::set_list(const std::string& object, const std::string& name,
                    const std::vector<double>& values) {
  set_raw(object, name, H5T_NATIVE_DOUBLE, list(values.size()).get(), values.data());
}

void File::set_list(const std::string& object, const std::string& name,
                    const std::vector<std::string>& values) {
  const std::size_t size = longest(values);
  set_raw(object, name, string_type(size).get(), list(values.size()).get(),
          packed(values, size).data());
}

bool File::has(const std::string& object, const std::string& name) const {
  return H5Aexists_by_name(id_.get(), object.c_str(), name.c_str(), H5P_DEFAULT) > 0;
}

Handle File::open_attribute(const std::string& object, const std::string& name) const {
  if (!has(object, name))
    fail(ExitCode::bad_data, "{}: {} has no attribute '{}'; is it a file of Carousel?", path_,
         object, name);
  return {check(H5Aopen_by_name(id_.get(), object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT),
                "H5Aopen_by_name", object + "." + name),
          H5Aclose};
}

std::size_t File::attribute_size(hid_t attribute, H5T_class_t wanted, const char* what,
                                 const std::string& object) const {
  const Handle type(check(H5Aget_type(attribute), "H5Aget_type", object), H5Tclose);
  const Handle space(check(H5Aget_space(attribute), "H5Aget_space", object), H5Sclose);
  if (H5Tget_class(type.get()) != wanted)
    fail(ExitCode::bad_data, "{}: attribute {} does not hold {}", path_, object, what);
  return static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get()));
}

template <class T>
T File::read_integer(const std::string& object, const std::string& name, hid_t type) const {
  const std::string full = object + "." + name;
  const Handle attribute = open_attribute(object, name);
  if (attribute_size(attribute.get(), H5T_INTEGER, "an integer", full) != 1)
    fail(ExitCode::bad_data, "{}: attribute {} is not one integer", path_, full);
  T value = 0;
  check(H5Aread(attribute.get(), type, &value), "H5Aread", full);
  return value;
}

std::int64_t File::integer(const std::string& object, const std::string& name) const {
  return read_integer<std::int64_t>(object, name, H5T_NATIVE_INT64);
}

std::uint64_t File::unsigned_integer(const std::string& object, const std::string& name) const {
  return read_integer<std::uint64_t>(object, name, H5T_NATIVE_UINT64);
}

std::vector<double> File::reals(const std::string& object, const std::string& name) const {
  const std::string full = object + "." + name;
  const Handle attribute = open_attribute(object, name);
  std::vector<double> values(
      attribute_size(attribute.get(), H5T_FLOAT, "floating-point numbers", full));
  check(H5Aread(attribute.get(), H5T_NATIVE_DOUBLE, values.data()), "H5Aread", full);
  return values;
}

std::vector<std::string> File::strings(const std::string& object, const std::string& name) const {
  return read_string_values(open_attribute(object, name).get(), true, object + "." + name);
}

std::string File::string(const std::string& object, const std::string& name) const {
  const std::vector<std::string> values = strings(object, name);
  if (values.size() != 1)
    fail(ExitCode::bad_data, "{}: attribute {}.{} is not one text", path_, object, name);
  return values.front();
}

}  // namespace carousel::hdf5
