// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// HDF5 files as Carousel uses them: every object is named by its path in the file, every return
// code is checked, every error says file and object. Not thread-safe, as serial HDF5 is not.

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/number_layout.hpp"

namespace carousel::hdf5 {

/// Owns one HDF5 identifier together with the function that closes it.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Handle() = default;
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  Handle(Handle&& other) noexcept;
  Handle& operator=(Handle&& other) noexcept;
  ~Handle() { reset(); }

  [[nodiscard]] hid_t get() const { return id_; }
  /// Closes; the return value of the close function, 0 when there was nothing to close.
  herr_t reset() noexcept;

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

/// HDF5 prints its error stack to the terminal unless told not to, and its clean-up at exit crashes
/// after a failed close (a full disk, 1.10.8). Turns both off, for the process; cheap to repeat.
void quiet_library();

/// Access properties that make files in the latest format, whose metadata carry checksums.
[[nodiscard]] Handle latest_format();

using Shape = std::vector<hsize_t>;

/// What a file begins with, unless a block of the user's comes first.
inline constexpr std::string_view signature = "\x89HDF\r\n\x1a\n";

/// What a dataset is, before anything of it is read.
struct DatasetInfo {
  std::string type;  // "uint8", "float32", "string", "bool" as h5py has it, "enum"; others in words
  Shape shape;
  bool contiguous = false;
  std::int64_t offset = -1;  // of the first byte in the file; -1 unless contiguous and written
  std::string file;          // that holds it; another one where an external link leads there
  std::optional<NumberLayout> numbers = {};  // of integers and IEEE numbers, bools and enums

  /// Whether its values are integers, or read as such.
  [[nodiscard]] bool integers() const {
    return type.find("int") != std::string::npos || type == "bool" || type == "enum";
  }
};

/// Parts of a dataset that take room in the file: its chunks, or the one run of its bytes. What was
/// never written takes none, and HDF5 reads it as zeros.
struct WrittenParts {
  hsize_t written = 0;
  hsize_t all = 0;
};

/// What HDF5 does with the bytes of a chunk before it writes them. others: what needs a plug-in.
enum class ChunkFilter : std::uint8_t { deflate, shuffle, fletcher32, others };

/// Where the bytes of a chunk lie in the file.
struct ChunkPlace {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;            // as they are stored
  std::uint32_t passed_filters = 0;  // a bit for each that was left out for it
};

/// A dataset that is kept in chunks of one shape, those at its ends filled up.
struct ChunkLayout {
  Shape extents;                     // of a chunk
  std::vector<ChunkFilter> filters;  // in the order in which they were applied
  std::string other_filter;          // the name of one of the others
  std::vector<ChunkPlace> places;    // of all chunks, the last axis first
};

/// contiguous: one run of bytes in the file. checked: one chunk after the other, each with a
/// Fletcher32 checksum.
enum class Layout : std::uint8_t { contiguous, checked };

class Medium;

/// An open file. Element types T are std::uint8_t, std::uint16_t, std::uint32_t, int, std::int64_t,
/// std::uint64_t, float, double.
/// Throws Error(bad_data) when reading fails, Error(input_output) when writing does.
class File {
 public:
  /// Opens an existing file to read.
  static File open(const std::string& path);
  /// The same; where the system refuses, Error(input_output) with its reason, which is clearer than
  /// HDF5's.
  static File open_with_reason(const std::string& path);
  /// The same of a file that this process has made, which nobody else can be writing: without a
  /// lock, which some file systems do not have.
  static File open_own(const std::string& path);
  /// Makes a new file in HDF5's latest format, replacing one of that name.
  static File create(const std::string& path);
  /// Makes a file that lives in memory only; `path` names it in errors.
  static File create_in_memory(const std::string& path);
  /// Makes a file of which every byte goes to a medium; `path` names it in errors.
  static File create_on(const std::string& path, Medium& medium);
  /// Reads a file from its bytes, which must outlive it; `path` names it in errors.
  static File open_image(const std::string& path, std::span<const std::byte> image);
  /// Reads a file of which a medium reads every byte; `path` names it in errors.
  static File open_on(const std::string& path, Medium& medium);

  [[nodiscard]] const std::string& path() const { return path_; }

  /// Whether the path leads to an object; a dangling link does not.
  [[nodiscard]] bool contains(const std::string& object) const;
  [[nodiscard]] bool is_group(const std::string& object) const;
  /// Names below a group, sorted.
  [[nodiscard]] std::vector<std::string> children(const std::string& group) const;
  /// Creates a group, and those above it, unless it exists.
  void create_group(const std::string& group);
  /// Makes `object` stand for `target` of another file, whose path is relative to this file.
  void link(const std::string& object, const std::string& target_file, const std::string& target);
  /// What link() made of `object`, as "FILE:TARGET", whether it leads anywhere or not; empty when
  /// it is no such link.
  [[nodiscard]] std::string link_target(const std::string& object) const;

  [[nodiscard]] DatasetInfo info(const std::string& dataset) const;
  /// Of a dataset that is not contiguous, for who reads its bytes without HDF5. All of it must be
  /// written, see require_written().
  [[nodiscard]] ChunkLayout chunks(const std::string& dataset) const;
  [[nodiscard]] WrittenParts written_parts(const std::string& dataset) const;
  /// Refuses, as bad data, an array of which a part was never written and would be read as zeros.
  /// Of one in a single piece HDF5 knows only whether anything was.
  void require_written(const std::string& dataset) const;
  template <class T>
  void write(const std::string& dataset, std::span<const T> values, const Shape& shape,
             Layout layout = Layout::contiguous);
  template <class T>
  void write(const std::string& dataset, const std::vector<T>& values) {
    write(dataset, std::span<const T>(values), {values.size()});
  }
  void write_strings(const std::string& dataset, const std::vector<std::string>& values);
  /// Makes a contiguous dataset and writes none of it. Returns where its first byte lies in the
  /// file, for who writes there by other means.
  template <class T>
  [[nodiscard]] std::int64_t reserve(const std::string& dataset, const Shape& shape);
  /// The same with type and shape of a dataset of another file.
  [[nodiscard]] std::int64_t reserve_like(const File& other, const std::string& dataset);
  /// Reads a box of a dataset by HDF5, the numbers as they are stored, one behind the other.
  void read_box(const std::string& dataset, const Shape& first, const Shape& extents,
                std::span<std::byte> numbers) const;
  /// Adds rows of shape `row` at the end of a dataset, which starts with the first call.
  template <class T>
  void append(const std::string& dataset, std::span<const T> values, const Shape& row = {});
  /// The same with strings, which are cut at 16 characters.
  void append_strings(const std::string& dataset, std::span<const char* const> values);
  /// Reads a whole dataset of integers, bools or enums (integer T) or of floating-point numbers
  /// (others).
  template <class T>
  [[nodiscard]] std::vector<T> read(const std::string& dataset) const;
  [[nodiscard]] std::vector<std::string> read_strings(const std::string& dataset) const;

  /// Attributes: `object` is a group or dataset; setting one again replaces it.
  void set(const std::string& object, const std::string& name, std::string_view value);
  void set(const std::string& object, const std::string& name, std::int64_t value);
  void set(const std::string& object, const std::string& name, std::uint64_t value);
  void set(const std::string& object, const std::string& name, double value);
  void set_list(const std::string& object, const std::string& name,
                const std::vector<double>& values);
  void set_list(const std::string& object, const std::string& name,
                const std::vector<std::string>& values);
  [[nodiscard]] bool has(const std::string& object, const std::string& name) const;
  [[nodiscard]] std::int64_t integer(const std::string& object, const std::string& name) const;
  [[nodiscard]] std::uint64_t unsigned_integer(const std::string& object,
                                               const std::string& name) const;
  [[nodiscard]] std::vector<double> reals(const std::string& object, const std::string& name) const;
  [[nodiscard]] std::vector<std::string> strings(const std::string& object,
                                                 const std::string& name) const;
  /// The first of strings(); for attributes with one.
  [[nodiscard]] std::string string(const std::string& object, const std::string& name) const;

  /// The bytes that this file is or would be on disk.
  [[nodiscard]] std::vector<std::byte> image() const;
  /// Writes out everything and closes; unlike the destructor it reports what goes wrong.
  void close();

 private:
  friend class RowFile;  // whose rows have types of HDF5

  File(std::string path, hid_t id, bool writable);
  static File create_with(const std::string& path, const Handle& access);

  void create_groups_above(const std::string& object);
  Handle open_dataset(const std::string& dataset) const;
  Handle open_attribute(const std::string& object, const std::string& name) const;
  /// How many values of `bytes` each a dataset has; Error(bad_data) when that cannot be true.
  std::size_t plausible_size(hid_t set, std::size_t bytes, const std::string& dataset) const;
  Handle create_dataset(const std::string& dataset, hid_t type, hid_t space, hid_t properties);
  void write_raw(const std::string& dataset, hid_t type, const void* data, const Shape& shape,
                 Layout layout);
  /// Makes a dataset in one run of bytes and writes none of them.
  void reserve(const std::string& dataset, hid_t type, const Shape& shape);
  void append_raw(const std::string& dataset, hid_t type, const void* data, std::size_t count,
                  const Shape& row);
  void set_raw(const std::string& object, const std::string& name, hid_t type, hid_t space,
               const void* data);
  std::size_t attribute_size(hid_t attribute, H5T_class_t wanted, const char* what,
                             const std::string& object) const;
  template <class T>
  T read_integer(const std::string& object, const std::string& name, hid_t type) const;
  std::vector<std::string> read_string_values(hid_t id, bool attribute,
                                              const std::string& object) const;

  /// Passes a non-negative result on; otherwise throws with HDF5's own reason.
  template <class Result>
  Result check(Result result, const char* call, const std::string& object) const {
    if (result < 0) failed(call, object);
    return result;
  }
  [[noreturn]] void cannot_open() const;
  [[noreturn]] void failed(const char* call, const std::string& object) const;

  std::string path_;
  Handle id_;
  bool writable_ = false;
};

/// "HDF5 1.10.8"
[[nodiscard]] std::string library_version();

}  // namespace carousel::hdf5
