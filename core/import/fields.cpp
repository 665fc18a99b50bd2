// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/import/fields.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/descriptor.hpp"
#include "core/base/hdf5.hpp"
#include "core/base/shared_work.hpp"
#include "core/data/array_files.hpp"
#include "core/data/block_checksums.hpp"
#include "core/data/checksums.hpp"
#include "core/data/chunk_reader.hpp"

namespace carousel {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

/// An array on its way into one piece.
struct MovedArray {
  std::string name;
  hdf5::Shape shape;
  int number_bytes = 0;
  hdf5::ChunkLayout chunks;  // as it is; no places: in one piece
  std::int64_t from = 0;     // its first byte there
  std::int64_t to = 0;       // and in the new file
  std::int64_t sums = 0;     // where its checksums go

  [[nodiscard]] std::int64_t bytes() const {
    std::int64_t count = number_bytes;
    for (const hsize_t extent : shape) count *= static_cast<std::int64_t>(extent);
    return count;
  }
  [[nodiscard]] std::int64_t stored_bytes() const {
    if (chunks.places.empty()) return bytes();
    std::int64_t sum = 0;
    for (const hdf5::ChunkPlace& place : chunks.places) sum += place.bytes;
    return sum;
  }
  [[nodiscard]] bool needs_plug_in() const { return !chunks.other_filter.empty(); }
  /// Chunks, or MiB of an array in one piece.
  [[nodiscard]] std::int64_t parts() const {
    return chunks.places.empty() ? (bytes() + mebibyte - 1) / mebibyte : std::ssize(chunks.places);
  }
};

struct MovedFile {
  std::string from;
  std::string to;
  std::vector<MovedArray> arrays;
};

MovedArray array_of(const hdf5::File& file, const std::string& name) {
  const hdf5::DatasetInfo info = array_info(file, name);
  MovedArray array{.name = name,
                   .shape = info.shape,
                   .number_bytes = info.numbers->bytes,
                   .chunks = {},
                   .from = info.offset};
  if (!info.contiguous) array.chunks = file.chunks(name);
  return array;
}

/// Names of all arrays that samples are read from.
std::set<std::string> arrays_of(const DataConfig& config) {
  std::set<std::string> names(config.input.arrays.from.begin(), config.input.arrays.from.end());
  names.insert(config.target.arrays.from.begin(), config.target.arrays.from.end());
  if (!config.target.mask.empty()) names.insert(config.target.mask);
  return names;
}

std::vector<MovedFile> files_of(const DataConfig& config, const fs::path& folder, bool overwrite) {
  std::vector<MovedFile> files;
  std::map<std::string, std::string> taken;  // names in the folder
  const std::set<std::string> names = arrays_of(config);
  for (const auto& [key, paths] : {std::pair("data.files", &config.files),
                                   {"data.validation_files", &config.validation_files},
                                   {"data.test_files", &config.test_files}}) {
    for (const std::string& path : expand_paths(key, *paths)) {
      MovedFile file{
          .from = path, .to = (folder / fs::path(path).filename()).string(), .arrays = {}};
      if (const auto [other, is_new] = taken.emplace(file.to, path); !is_new)
        fail(ExitCode::usage, "{} and {} would both become {}; import them into two folders",
             other->second, path, file.to);
      if (identity_of(file.to) && identity_of(file.to) == identity_of(path))
        fail(ExitCode::usage, "{}: is read, and would be lost; name another folder", path);
      if (!overwrite && fs::exists(file.to))
        fail(ExitCode::usage, "{}: already exists; give --overwrite to replace it", file.to);
      const hdf5::File opened = hdf5::File::open_with_reason(path);
      for (const std::string& name : names) file.arrays.push_back(array_of(opened, name));
      files.push_back(std::move(file));
    }
  }
  return files;
}

/// Runs work(part, buffers) for all parts of an array, by several threads.
class Moving {
 public:
  Moving(const MovedFile& file, Descriptor& to, const FieldsProgress& progress, std::size_t all)
      : file_(file), from_(Descriptor::open(file.from)), to_(to), progress_(progress), all_(all) {}

  /// `done` are MiB of the files before.
  void run(const MovedArray& array, int workers, std::atomic<std::int64_t>& done) {
    const hdf5::File* const plug_in = array.needs_plug_in() ? &opened() : nullptr;
    const int threads = plug_in == nullptr ? workers : 1;
    share_work(array.parts(), threads, [&](int thread) {
      return [&, thread, buffers = Buffers()](std::int64_t part) mutable {
        done += move(array, part, plug_in, buffers);
        if (thread == 0) progress_(static_cast<std::size_t>(done / mebibyte), all_);
      };
    });
  }

 private:
  struct Buffers {
    std::vector<std::byte> bytes;
    std::vector<std::byte> spare;
  };

  const hdf5::File& opened() {
    if (!file_of_plug_ins_) file_of_plug_ins_.emplace(hdf5::File::open_with_reason(file_.from));
    return *file_of_plug_ins_;
  }

  /// Returns how many bytes were written.
  std::int64_t move(const MovedArray& array, std::int64_t part, const hdf5::File* plug_in,
                    Buffers& buffers) {
    if (array.chunks.places.empty()) {
      const std::int64_t begin = part * mebibyte;
      buffers.bytes.resize(static_cast<std::size_t>(std::min(mebibyte, array.bytes() - begin)));
      from_.read_at(array.from + begin, buffers.bytes);
      to_.write_at(array.to + begin, buffers.bytes);
      return std::ssize(buffers.bytes);
    }
    const hdf5::Shape& extents = array.chunks.extents;
    hdf5::Shape first(extents.size());
    hdf5::Shape here = extents;  // less at the ends
    std::int64_t left = part;
    for (std::size_t d = extents.size(); d-- > 0;) {
      const auto along = static_cast<std::int64_t>((array.shape[d] + extents[d] - 1) / extents[d]);
      first[d] = static_cast<hsize_t>(left % along) * extents[d];
      left /= along;
      here[d] = std::min(extents[d], array.shape[d] - first[d]);
    }
    std::size_t whole = static_cast<std::size_t>(array.number_bytes);
    for (const hsize_t extent : plug_in != nullptr ? here : extents) whole *= extent;
    if (plug_in != nullptr) {
      buffers.bytes.resize(whole);
      plug_in->read_box(array.name, first, here, buffers.bytes);
      return scatter(array, first, here, here, buffers.bytes);
    }
    const hdf5::ChunkPlace& place = array.chunks.places[static_cast<std::size_t>(part)];
    buffers.bytes.resize(static_cast<std::size_t>(place.bytes));
    from_.read_at(place.offset, buffers.bytes);
    if (!unpack_chunk(array.chunks, place, array.number_bytes, whole, buffers.bytes, buffers.spare))
      fail(ExitCode::bad_data, "{}: chunk {} of {} of {} is damaged; copy the file again",
           file_.from, part + 1, array.chunks.places.size(), array.name);
    return scatter(array, first, here, extents, buffers.bytes);
  }

  /// Writes a box of the array, whose numbers lie in a box of `stored` extents.
  std::int64_t scatter(const MovedArray& array, const hdf5::Shape& first, const hdf5::Shape& here,
                       const hdf5::Shape& stored, std::span<const std::byte> numbers) {
    // Axes at the end that are whole make longer runs.
    std::size_t d = here.size() - 1;
    hsize_t run = here[d];
    while (d > 0 && here[d] == array.shape[d] && here[d] == stored[d]) run *= here[--d];
    const auto run_bytes = static_cast<std::size_t>(run) * array.number_bytes;
    hdf5::Shape at(d, 0);  // within the box, of the axes before
    std::int64_t written = 0;
    while (true) {
      std::int64_t from = 0;
      std::int64_t to = 0;
      for (std::size_t k = 0; k < here.size(); ++k) {
        const hsize_t in_box = k < d ? at[k] : 0;
        from = from * static_cast<std::int64_t>(stored[k]) + static_cast<std::int64_t>(in_box);
        to = to * static_cast<std::int64_t>(array.shape[k]) +
             static_cast<std::int64_t>(first[k] + in_box);
      }
      to_.write_at(array.to + to * array.number_bytes,
                   numbers.subspan(static_cast<std::size_t>(from * array.number_bytes), run_bytes));
      written += static_cast<std::int64_t>(run_bytes);
      std::size_t k = d;
      while (k > 0 && at[k - 1] + 1 == here[k - 1]) at[--k] = 0;
      if (k == 0) return written;
      ++at[k - 1];
    }
  }

  const MovedFile& file_;
  Descriptor from_;
  Descriptor& to_;
  std::optional<hdf5::File> file_of_plug_ins_;
  const FieldsProgress& progress_;
  std::size_t all_;
};

/// Writes one file to `path`.
void write(MovedFile& file, const std::string& path, int workers, const FieldsProgress& progress,
           std::size_t all, std::atomic<std::int64_t>& done) {
  {
    const hdf5::File from = hdf5::File::open_with_reason(file.from);
    hdf5::File made = hdf5::File::create(path);
    for (MovedArray& array : file.arrays) {
      array.to = made.reserve_like(from, array.name);
      array.sums = made.reserve<std::uint64_t>(
          checksums_of(array.name), {static_cast<hsize_t>(checksum_blocks(array.bytes()))});
    }
    made.close();
  }
  Descriptor to = Descriptor::update(path);
  Moving moving(file, to, progress, all);
  for (const MovedArray& array : file.arrays) {
    moving.run(array, workers, done);
    for (std::int64_t k = 0; k < checksum_blocks(array.bytes()); ++k) {
      const std::uint64_t sum = checksum(to, array.to, array.bytes(), k);
      to.write_at(array.sums + k * std::int64_t{sizeof(sum)},
                  std::as_bytes(std::span<const std::uint64_t>(&sum, 1)));
    }
  }
  to.sync();
  to.close();
}

}  // namespace

FieldsResult import_fields(const DataConfig& config, const std::string& folder, int workers,
                           bool overwrite, const FieldsProgress& progress) {
  std::vector<MovedFile> files = files_of(config, folder, overwrite);
  FieldsResult result;
  bool gains = false;
  for (const MovedFile& file : files) {
    for (const MovedArray& array : file.arrays) {
      gains = gains || !array.chunks.places.empty();
      result.stored_bytes += array.stored_bytes();
      result.written_bytes += array.bytes();
      ++result.arrays;
    }
  }
  if (!gains)
    fail(ExitCode::usage,
         "all {} arrays lie in one piece already; they are read as fast as they can be",
         result.arrays);
  fs::create_directories(folder);
  std::atomic<std::int64_t> done = 0;
  const auto all = static_cast<std::size_t>(result.written_bytes / mebibyte);
  for (MovedFile& file : files) {
    replacing(file.to,
              [&](const std::string& path) { write(file, path, workers, progress, all, done); });
    result.files.push_back(file.to);
  }
  return result;
}

}  // namespace carousel
