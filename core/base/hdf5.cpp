// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Files, groups and datasets; attributes and strings are in hdf5_attributes.cpp, files in memory in
// hdf5_image.cpp.

#include "core/base/hdf5.hpp"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <type_traits>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/descriptor.hpp"
#include "core/base/hdf5_medium.hpp"
#include "core/base/hdf5_types.hpp"

namespace carousel::hdf5 {
namespace {

/// h5py and NumPy's other friends store bools as an enum of FALSE and TRUE.
bool is_bool(hid_t type) {
  if (H5Tget_nmembers(type) != 2) return false;
  signed char no = 0;
  signed char yes = 0;
  return H5Tget_size(type) == 1 && H5Tenum_valueof(type, "FALSE", &no) >= 0 &&
         H5Tenum_valueof(type, "TRUE", &yes) >= 0 && no == 0 && yes == 1;
}

std::string type_name(hid_t type) {
  const std::size_t bits = 8 * H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return fmt::format("{}int{}", H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "", bits);
    case H5T_FLOAT:
      return fmt::format("float{}", bits);
    case H5T_STRING:
      return "string";
    case H5T_BITFIELD:
      return "bit fields";
    case H5T_COMPOUND:
      return "compound values";
    case H5T_ENUM:
      return is_bool(type) ? "bool" : "enum";
    default:
      return "other";
  }
}

/// Whether all bits of a type are a number of IEEE 754 of so many bytes.
bool is_ieee(hid_t type, std::size_t bytes) {
  std::size_t sign = 0;
  std::size_t exponent = 0;
  std::size_t exponent_bits = 0;
  std::size_t mantissa = 0;
  std::size_t mantissa_bits = 0;
  if (H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0)
    return false;
  const std::size_t wanted = bytes == 2 ? 5 : bytes == 4 ? 8 : bytes == 8 ? 11 : 0;
  if (wanted == 0) return false;
  return wanted == exponent_bits && mantissa == 0 && mantissa_bits == exponent &&
         exponent + exponent_bits == sign && sign + 1 == 8 * bytes &&
         H5Tget_norm(type) == H5T_NORM_IMPLIED &&
         H5Tget_ebias(type) == (std::size_t{1} << (wanted - 1)) - 1;
}

/// None of types that are not read number by number.
std::optional<NumberLayout> numbers_of(hid_t type) {
  if (H5Tget_class(type) == H5T_ENUM) {
    const Handle base(H5Tget_super(type), H5Tclose);
    return numbers_of(base.get());
  }
  const std::size_t bytes = H5Tget_size(type);
  const H5T_order_t order = H5Tget_order(type);
  const H5T_order_t native = H5Tget_order(H5T_NATIVE_INT);
  if (order != H5T_ORDER_LE && order != H5T_ORDER_BE) return {};
  NumberLayout layout{.bytes = static_cast<int>(bytes), .swapped = bytes > 1 && order != native};
  if (H5Tget_class(type) == H5T_INTEGER) {
    const bool whole = H5Tget_precision(type) == 8 * bytes && (bytes & (bytes - 1)) == 0;
    if (!whole || bytes > 8) return {};
    layout.kind = H5Tget_sign(type) == H5T_SGN_NONE ? NumberKind::unsigned_integer
                                                    : NumberKind::signed_integer;
    return layout;
  }
  if (H5Tget_class(type) == H5T_FLOAT && is_ieee(type, bytes)) return layout;
  return {};
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

constexpr std::string_view no_filter = "is not registered";

/// The innermost entry of HDF5's error stack says what happened; where a filter is wanting, which
/// was looked for among plug-ins, a later one does.
std::string last_reason() {
  std::string reason;
  const auto take_first = [](unsigned, const H5E_error2_t* entry, void* text) -> herr_t {
    auto& result = *static_cast<std::string*>(text);
    if (entry->desc != nullptr && (result.empty() || holds(entry->desc, no_filter)))
      result = entry->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, &reason);
  // The lowest layer quotes the system over many words; one line is for the first of them.
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  return reason.empty() ? "no reason given" : reason;
}

/// What the user can do where HDF5 cannot read something, by its reason.
std::string advice_on(const std::string& reason) {
  if (holds(reason, no_filter))
    return "it is compressed in a way that this program does not know; write it with gzip, or "
           "without compression";
  if (holds(reason, "unable to open external file"))
    return "it is a link into another file, which is not there";
  if (holds(reason, "version number") || holds(reason, "superblock version"))
    return "it is damaged, or of a newer HDF5 than this program's " + library_version() +
           ", and then h5py's libver = (\"earliest\", \"v110\") writes what it reads";
  if (holds(reason, "already open for"))
    return "the program that writes it has not closed it; if that has ended, h5clear -s makes the "
           "file readable";
  return "the file is damaged or incomplete";
}

/// Why the system gives no lock on a file to read it; empty where it does.
std::string reason_for_no_lock(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return "";
  const int error = ::flock(file, LOCK_SH | LOCK_NB) == 0 ? 0 : errno;
  ::close(file);
  if (error == 0) return "";
  if (error == EWOULDBLOCK) return "another program has it open to write; close it there";
  return fmt::format(
      "its file system has no locks ({}); set HDF5_USE_FILE_LOCKING=FALSE in the environment, and "
      "let nobody write the file meanwhile",
      std::generic_category().message(error));
}

/// What begins a file that is none of HDF5, if that says what it is; empty for one of HDF5.
std::string other_format(const std::string& path) {
  if (!identity_of(path)) return "";  // a name of bytes in memory
  const Descriptor file = Descriptor::open(path);
  const std::int64_t size = file.size();
  if (size == 0) return "it is empty; the file is damaged or incomplete";
  std::array<char, signature.size()> bytes = {};
  const auto begins = [&](std::int64_t offset, std::string_view text) {
    if (offset + std::ssize(text) > size) return false;
    file.read_at(offset, std::as_writable_bytes(std::span(bytes).first(text.size())));
    return std::string_view(bytes.data(), text.size()) == text;
  };
  if (begins(0, signature)) return "";
  // A block of the user's may come first, of 512 bytes or a power of two times that.
  for (std::int64_t offset = 512; offset < size; offset *= 2)
    if (begins(offset, signature)) return "";
  constexpr const char* tensors =
      "PyTorch's tensors go into one as inputs/README.md says, file[name] = tensor.numpy()";
  if (begins(0, "PK\x03\x04"))
    return fmt::format("it is a zip archive, as torch.save and numpy.savez write; {}", tensors);
  if (begins(0, "\x80\x02")) return fmt::format("it is a pickle, as torch.save wrote; {}", tensors);
  if (begins(8, "{\"")) return fmt::format("it may be of safetensors; {}", tensors);
  if (begins(0, "\x93NUMPY")) return "it is an array of numpy.save";
  if (begins(0, "\x1f\x8b")) return "it is compressed by gzip; unpack it";
  return "it is something else, or the file is damaged or incomplete";
}

/// Nobody else knows of a file that is being made, and some file systems have no locks.
void leave_unlocked(const Handle& access) {
#if H5_VERSION_GE(1, 12, 1) || (H5_VERS_MINOR == 10 && H5_VERS_RELEASE >= 7)
  H5Pset_file_locking(access.get(), false, true);
#else
  static_cast<void>(access);
#endif
}

/// Properties of what is made. Without the time of writing, files that hold the same have the same
/// bytes.
Handle timeless(hid_t kind) {
  Handle properties(H5Pcreate(kind), H5Pclose);
  H5Pset_obj_track_times(properties.get(), false);
  return properties;
}

}  // namespace

void quiet_library() {
  H5dont_atexit();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Handle latest_format() {
  Handle properties(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_libver_bounds(properties.get(), H5F_LIBVER_V110, H5F_LIBVER_V110);
  leave_unlocked(properties);
  return properties;
}

Handle::Handle(Handle&& other) noexcept
    : id_(std::exchange(other.id_, H5I_INVALID_HID)),
      close_(std::exchange(other.close_, nullptr)) {}

Handle& Handle::operator=(Handle&& other) noexcept {
  if (this != &other) {
    reset();
    id_ = std::exchange(other.id_, H5I_INVALID_HID);
    close_ = std::exchange(other.close_, nullptr);
  }
  return *this;
}

herr_t Handle::reset() noexcept {
  const hid_t id = std::exchange(id_, H5I_INVALID_HID);
  return id >= 0 && close_ != nullptr ? close_(id) : 0;
}

File::File(std::string path, hid_t id, bool writable)
    : path_(std::move(path)), id_(id, H5Fclose), writable_(writable) {
  if (id >= 0) return;
  if (!writable_) cannot_open();
  failed("H5Fcreate", "/");
}

/// HDF5 says of most that the file cannot be opened, and little more.
void File::cannot_open() const {
  const std::string reason = last_reason();  // before anything else fails
  if (const std::string other = other_format(path_); !other.empty())
    fail(ExitCode::bad_data, "{}: is no HDF5 file; {}", path_, other);
  if (holds(reason, "lock"))
    if (const std::string lock = reason_for_no_lock(path_); !lock.empty())
      fail(ExitCode::input_output, "{}: cannot open it: {}", path_, lock);
  fail(ExitCode::bad_data, "{}: cannot read /: H5Fopen failed ({}); {}", path_, reason,
       advice_on(reason));
}

void File::failed(const char* call, const std::string& object) const {
  const std::string reason = last_reason();
  if (writable_)
    fail(ExitCode::input_output, "{}: cannot write {}: {} failed ({}); check free space and quota",
         path_, object, call, reason);
  fail(ExitCode::bad_data, "{}: cannot read {}: {} failed ({}); {}", path_, object, call, reason,
       advice_on(reason));
}

File File::open(const std::string& path) {
  quiet_library();
  return {path, H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), false};
}

File File::open_with_reason(const std::string& path) {
  const Descriptor readable = Descriptor::open(path);
  return open(path);
}

File File::open_own(const std::string& path) {
  quiet_library();
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  leave_unlocked(access);
  return {path, H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), false};
}

File File::create(const std::string& path) {
  quiet_library();
  return create_with(path, latest_format());
}

File File::create_on(const std::string& path, Medium& medium) {
  quiet_library();
  const Handle access = latest_format();
  use_medium(access, medium);
  return create_with(path, access);
}

File File::create_with(const std::string& path, const Handle& access) {
  return {path,
          H5Fcreate(path.c_str(), H5F_ACC_TRUNC, timeless(H5P_FILE_CREATE).get(), access.get()),
          true};
}

File File::open_on(const std::string& path, Medium& medium) {
  quiet_library();
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  use_medium(access, medium);
  return {path, H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), false};
}

bool File::contains(const std::string& object) const {
  // H5Lexists wants every step of the path to exist.
  for (std::size_t end = object.find('/', 1); end != std::string::npos;
       end = object.find('/', end + 1)) {
    if (H5Lexists(id_.get(), object.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
  }
  return object == "/" || (H5Lexists(id_.get(), object.c_str(), H5P_DEFAULT) > 0 &&
                           H5Oexists_by_name(id_.get(), object.c_str(), H5P_DEFAULT) > 0);
}

bool File::is_group(const std::string& object) const {
  H5O_info_t info = {};
  check(H5Oget_info_by_name(id_.get(), object.c_str(), &info, H5P_DEFAULT), "H5Oget_info_by_name",
        object);
  return info.type == H5O_TYPE_GROUP;
}

std::vector<std::string> File::children(const std::string& group) const {
  std::vector<std::string> names;
  const auto take = [](hid_t, const char* name, const H5L_info_t*, void* list) -> herr_t {
    static_cast<std::vector<std::string>*>(list)->emplace_back(name);
    return 0;
  };
  check(H5Literate_by_name(id_.get(), group.c_str(), H5_INDEX_NAME, H5_ITER_INC, nullptr, take,
                           &names, H5P_DEFAULT),
        "H5Literate", group);
  return names;
}

void File::create_groups_above(const std::string& object) {
  const Handle properties = timeless(H5P_GROUP_CREATE);
  for (std::size_t end = object.find('/', 1); end != std::string::npos;
       end = object.find('/', end + 1)) {
    const std::string group = object.substr(0, end);
    if (contains(group)) continue;
    const Handle made(
        check(H5Gcreate2(id_.get(), group.c_str(), H5P_DEFAULT, properties.get(), H5P_DEFAULT),
              "H5Gcreate", group),
        H5Gclose);
  }
}

void File::create_group(const std::string& group) {
  create_groups_above(group + "/");
}

void File::link(const std::string& object, const std::string& target_file,
                const std::string& target) {
  create_groups_above(object);
  check(H5Lcreate_external(target_file.c_str(), target.c_str(), id_.get(), object.c_str(),
                           H5P_DEFAULT, H5P_DEFAULT),
        "H5Lcreate_external", object);
}

std::string File::link_target(const std::string& object) const {
  H5L_info_t info = {};
  if (H5Lget_info(id_.get(), object.c_str(), &info, H5P_DEFAULT) < 0) return "";
  if (info.type != H5L_TYPE_EXTERNAL) return "";
  std::vector<char> value(info.u.val_size);
  check(H5Lget_val(id_.get(), object.c_str(), value.data(), value.size(), H5P_DEFAULT),
        "H5Lget_val", object);
  const char* file = nullptr;
  const char* target = nullptr;
  check(H5Lunpack_elink_val(value.data(), value.size(), nullptr, &file, &target),
        "H5Lunpack_elink_val", object);
  return fmt::format("{}:{}", file, target);
}

Handle File::open_dataset(const std::string& dataset) const {
  return {check(H5Dopen2(id_.get(), dataset.c_str(), H5P_DEFAULT), "H5Dopen", dataset), H5Dclose};
}

Handle File::create_dataset(const std::string& dataset, hid_t type, hid_t space, hid_t properties) {
  create_groups_above(dataset);
  return {check(H5Dcreate2(id_.get(), dataset.c_str(), type, space, H5P_DEFAULT, properties,
                           H5P_DEFAULT),
                "H5Dcreate", dataset),
          H5Dclose};
}

DatasetInfo File::info(const std::string& dataset) const {
  const Handle set = open_dataset(dataset);
  const Handle type(check(H5Dget_type(set.get()), "H5Dget_type", dataset), H5Tclose);
  const Handle space(check(H5Dget_space(set.get()), "H5Dget_space", dataset), H5Sclose);
  const Handle made(check(H5Dget_create_plist(set.get()), "H5Dget_create_plist", dataset),
                    H5Pclose);
  DatasetInfo info;
  info.type = type_name(type.get());
  info.numbers = numbers_of(type.get());
  info.shape.resize(static_cast<std::size_t>(
      check(H5Sget_simple_extent_ndims(space.get()), "H5Sget_simple_extent_ndims", dataset)));
  check(H5Sget_simple_extent_dims(space.get(), info.shape.data(), nullptr),
        "H5Sget_simple_extent_dims", dataset);
  // Others know nothing of these: where a file alone is copied or moved, they hold zeros.
  if (H5Pget_layout(made.get()) == H5D_VIRTUAL)
    fail(ExitCode::bad_data,
         "{}: {} is a virtual data set, whose numbers lie in other files; copy them into this one, "
         "file[name] = numbers[:]",
         path_, dataset);
  if (H5Pget_external_count(made.get()) > 0)
    fail(ExitCode::bad_data,
         "{}: {} has its numbers in another file (external raw storage); copy them into this one, "
         "file[name] = numbers[:]",
         path_, dataset);
  info.contiguous = H5Pget_layout(made.get()) == H5D_CONTIGUOUS;
  if (const haddr_t offset = H5Dget_offset(set.get()); info.contiguous && offset != HADDR_UNDEF)
    info.offset = static_cast<std::int64_t>(offset);
  const ssize_t length = H5Fget_name(set.get(), nullptr, 0);
  info.file.resize(static_cast<std::size_t>(check(length, "H5Fget_name", dataset)));
  check(H5Fget_name(set.get(), info.file.data(), info.file.size() + 1), "H5Fget_name", dataset);
  return info;
}

ChunkLayout File::chunks(const std::string& dataset) const {
  const Handle set = open_dataset(dataset);
  const Handle made(check(H5Dget_create_plist(set.get()), "H5Dget_create_plist", dataset),
                    H5Pclose);
  const Shape shape = info(dataset).shape;
  ChunkLayout layout{
      .extents = Shape(shape.size()), .filters = {}, .other_filter = {}, .places = {}};
  check(H5Pget_chunk(made.get(), static_cast<int>(shape.size()), layout.extents.data()),
        "H5Pget_chunk", dataset);
  const int filters = check(H5Pget_nfilters(made.get()), "H5Pget_nfilters", dataset);
  for (int k = 0; k < filters; ++k) {
    unsigned flags = 0;
    std::size_t values = 0;
    std::array<char, 64> name = {};
    const H5Z_filter_t filter =
        check(H5Pget_filter2(made.get(), static_cast<unsigned>(k), &flags, &values, nullptr,
                             name.size(), name.data(), nullptr),
              "H5Pget_filter2", dataset);
    layout.filters.push_back(filter == H5Z_FILTER_DEFLATE      ? ChunkFilter::deflate
                             : filter == H5Z_FILTER_SHUFFLE    ? ChunkFilter::shuffle
                             : filter == H5Z_FILTER_FLETCHER32 ? ChunkFilter::fletcher32
                                                               : ChunkFilter::others);
    if (layout.filters.back() == ChunkFilter::others)
      layout.other_filter = name[0] == 0 ? fmt::format("filter {}", filter) : name.data();
  }
  Shape at(shape.size(), 0);
  while (true) {
    ChunkPlace place;
    unsigned passed = 0;
    haddr_t offset = HADDR_UNDEF;
    hsize_t bytes = 0;
    check(H5Dget_chunk_info_by_coord(set.get(), at.data(), &passed, &offset, &bytes),
          "H5Dget_chunk_info_by_coord", dataset);
    if (offset == HADDR_UNDEF)
      fail(ExitCode::bad_data, "{}: a chunk of {} was never written", path_, dataset);
    layout.places.push_back(
        {static_cast<std::int64_t>(offset), static_cast<std::int64_t>(bytes), passed});
    std::size_t d = shape.size();
    while (d > 0 && at[d - 1] + layout.extents[d - 1] >= shape[d - 1]) at[--d] = 0;
    if (d == 0) return layout;
    at[d - 1] += layout.extents[d - 1];
  }
}

WrittenParts File::written_parts(const std::string& dataset) const {
  const Handle set = open_dataset(dataset);
  const Handle made(check(H5Dget_create_plist(set.get()), "H5Dget_create_plist", dataset),
                    H5Pclose);
  const Shape shape = info(dataset).shape;
  const H5D_layout_t layout = H5Pget_layout(made.get());
  if (layout == H5D_CONTIGUOUS && elements(shape) > 0)
    return {.written = H5Dget_storage_size(set.get()) > 0 ? hsize_t{1} : hsize_t{0}, .all = 1};
  if (layout != H5D_CHUNKED) return {};
  Shape chunks(shape.size());
  check(H5Pget_chunk(made.get(), static_cast<int>(chunks.size()), chunks.data()), "H5Pget_chunk",
        dataset);
  for (std::size_t d = 0; d < shape.size(); ++d)
    chunks[d] = shape[d] / chunks[d] + (shape[d] % chunks[d] > 0 ? 1 : 0);
  WrittenParts parts = {.all = elements(chunks)};
  const Handle space(check(H5Dget_space(set.get()), "H5Dget_space", dataset), H5Sclose);
  check(H5Dget_num_chunks(set.get(), space.get(), &parts.written), "H5Dget_num_chunks", dataset);
  return parts;
}

void File::require_written(const std::string& dataset) const {
  const WrittenParts parts = written_parts(dataset);
  if (parts.written == 0 && parts.all > 0)
    fail(ExitCode::bad_data, "{}: {} was created but never written", path_, dataset);
  if (parts.written < parts.all)
    fail(ExitCode::bad_data,
         "{}: only {} of the {} chunks of {} were ever written; write all of them, or make it as "
         "long as what was written",
         path_, parts.written, parts.all, dataset);
}

// What was never written takes no room in a file, so that a damaged shape may claim anything.
std::size_t File::plausible_size(hid_t set, std::size_t bytes, const std::string& dataset) const {
  const std::size_t count = elements(info(dataset).shape);
  const Handle file(check(H5Iget_file_id(set), "H5Iget_file_id", dataset), H5Fclose);
  hsize_t file_bytes = 0;  // of the file that a link may have led to
  check(H5Fget_filesize(file.get(), &file_bytes), "H5Fget_filesize", dataset);
  constexpr hsize_t densest = 4096;  // deflate makes zeros smaller by 1030
  const hsize_t most = densest * std::min(H5Dget_storage_size(set), file_bytes);
  if (count > most / std::max<std::size_t>(1, bytes))
    fail(ExitCode::bad_data, "{}: {} is [{}], far more than is stored; the file is damaged", path_,
         dataset, fmt::join(info(dataset).shape, ", "));
  return count;
}

void File::write_raw(const std::string& dataset, hid_t type, const void* data, const Shape& shape,
                     Layout layout) {
  const Handle space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr),
                     H5Sclose);
  const Handle properties = timeless(H5P_DATASET_CREATE);
  // Scalars and empty arrays cannot be chunked; HDF5 limits a chunk to 4 GiB.
  if (layout == Layout::checked && elements(shape) > 0 && !shape.empty()) {
    Shape chunk = shape;
    constexpr hsize_t largest = hsize_t{1} << 20;  // elements
    for (std::size_t d = 0; d < chunk.size() && elements(chunk) > largest; ++d)
      chunk[d] = std::max<hsize_t>(1, largest * chunk[d] / elements(chunk));
    H5Pset_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data());
    H5Pset_fletcher32(properties.get());
  }
  const Handle set = create_dataset(dataset, type, space.get(), properties.get());
  if (elements(shape) > 0)
    check(H5Dwrite(set.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "H5Dwrite", dataset);
}

void File::append_raw(const std::string& dataset, hid_t type, const void* data, std::size_t count,
                      const Shape& row) {
  Shape block{count / std::max<std::size_t>(1, elements(row))};
  block.insert(block.end(), row.begin(), row.end());
  CAROUSEL_CHECK(elements(block) == count, "{}: {} values are no whole rows", dataset, count);
  Shape start(block.size(), 0);
  Handle set;
  if (contains(dataset)) {
    set = open_dataset(dataset);
    start[0] = info(dataset).shape[0];
  } else {
    Shape limits = block, empty = block, chunk = block;
    limits[0] = H5S_UNLIMITED;
    empty[0] = 0;
    chunk[0] = std::max<hsize_t>(1, 4096 / std::max<hsize_t>(1, elements(row)) / 8);
    const Handle space(
        H5Screate_simple(static_cast<int>(block.size()), empty.data(), limits.data()), H5Sclose);
    const Handle properties = timeless(H5P_DATASET_CREATE);
    H5Pset_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data());
    H5Pset_fletcher32(properties.get());
    set = create_dataset(dataset, type, space.get(), properties.get());
  }
  if (count == 0) return;
  Shape whole = block;
  whole[0] += start[0];
  check(H5Dset_extent(set.get(), whole.data()), "H5Dset_extent", dataset);
  const Handle target(check(H5Dget_space(set.get()), "H5Dget_space", dataset), H5Sclose);
  const Handle source(H5Screate_simple(static_cast<int>(block.size()), block.data(), nullptr),
                      H5Sclose);
  check(H5Sselect_hyperslab(target.get(), H5S_SELECT_SET, start.data(), nullptr, block.data(),
                            nullptr),
        "H5Sselect_hyperslab", dataset);
  check(H5Dwrite(set.get(), type, source.get(), target.get(), H5P_DEFAULT, data), "H5Dwrite",
        dataset);
}

void File::reserve(const std::string& dataset, hid_t type, const Shape& shape) {
  const Handle space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr),
                     H5Sclose);
  const Handle properties = timeless(H5P_DATASET_CREATE);
  H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER);
  if (elements(shape) > 0) H5Pset_alloc_time(properties.get(), H5D_ALLOC_TIME_EARLY);
  const Handle made = create_dataset(dataset, type, space.get(), properties.get());
}

std::int64_t File::reserve_like(const File& other, const std::string& dataset) {
  const Handle set = other.open_dataset(dataset);
  const Handle type(other.check(H5Dget_type(set.get()), "H5Dget_type", dataset), H5Tclose);
  reserve(dataset, type.get(), other.info(dataset).shape);
  return info(dataset).offset;
}

void File::read_box(const std::string& dataset, const Shape& first, const Shape& extents,
                    std::span<std::byte> numbers) const {
  const Handle set = open_dataset(dataset);
  const Handle type(check(H5Dget_type(set.get()), "H5Dget_type", dataset), H5Tclose);
  CAROUSEL_CHECK(numbers.size() == elements(extents) * H5Tget_size(type.get()),
                 "{}: {} bytes for a box of {} numbers", dataset, numbers.size(),
                 elements(extents));
  const Handle all(check(H5Dget_space(set.get()), "H5Dget_space", dataset), H5Sclose);
  check(H5Sselect_hyperslab(all.get(), H5S_SELECT_SET, first.data(), nullptr, extents.data(),
                            nullptr),
        "H5Sselect_hyperslab", dataset);
  const Handle box(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
                   H5Sclose);
  check(H5Dread(set.get(), type.get(), box.get(), all.get(), H5P_DEFAULT, numbers.data()),
        "H5Dread", dataset);
}

template <class T>
void File::write(const std::string& dataset, std::span<const T> values, const Shape& shape,
                 Layout layout) {
  CAROUSEL_CHECK(values.size() == elements(shape), "{}: {} values for a shape of {}", dataset,
                 values.size(), elements(shape));
  write_raw(dataset, native_type<T>(), values.data(), shape, layout);
}

template <class T>
std::int64_t File::reserve(const std::string& dataset, const Shape& shape) {
  reserve(dataset, native_type<T>(), shape);
  return info(dataset).offset;
}

template <class T>
void File::append(const std::string& dataset, std::span<const T> values, const Shape& row) {
  append_raw(dataset, native_type<T>(), values.data(), values.size(), row);
}

template <class T>
std::vector<T> File::read(const std::string& dataset) const {
  const DatasetInfo found = info(dataset);
  if (std::is_integral_v<T> ? !found.integers() : !found.type.starts_with("float"))
    fail(ExitCode::bad_data, "{}: {} holds {}, not {}", path_, dataset, found.type,
         std::is_integral_v<T> ? "integers" : "floating-point numbers");
  const Handle set = open_dataset(dataset);
  std::vector<T> values(plausible_size(set.get(), sizeof(T), dataset));
  if (!values.empty())
    check(H5Dread(set.get(), native_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
          "H5Dread", dataset);
  return values;
}

#define CAROUSEL_INSTANTIATE(T)                                                               \
  template void File::write<T>(const std::string&, std::span<const T>, const Shape&, Layout); \
  template std::int64_t File::reserve<T>(const std::string&, const Shape&);                   \
  template void File::append<T>(const std::string&, std::span<const T>, const Shape&);        \
  template std::vector<T> File::read<T>(const std::string&) const;
CAROUSEL_INSTANTIATE(std::uint8_t)
CAROUSEL_INSTANTIATE(std::uint16_t)
CAROUSEL_INSTANTIATE(std::uint32_t)
CAROUSEL_INSTANTIATE(int)
CAROUSEL_INSTANTIATE(std::int64_t)
CAROUSEL_INSTANTIATE(std::uint64_t)
CAROUSEL_INSTANTIATE(float)
CAROUSEL_INSTANTIATE(double)
#undef CAROUSEL_INSTANTIATE

void File::close() {
  // Errors of the system show up in the flush; a close after that has nothing left to write.
  if (writable_) check(H5Fflush(id_.get(), H5F_SCOPE_GLOBAL), "H5Fflush", "/");
  check(id_.reset(), "H5Fclose", "/");
}

std::string library_version() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("HDF5 {}.{}.{}", major, minor, release);
}

}  // namespace carousel::hdf5
