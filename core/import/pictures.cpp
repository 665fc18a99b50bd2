// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/import/pictures.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <new>
#include <thread>

#include "core/base/check.hpp"
#include "core/data/picture.hpp"
#include "core/import/queue.hpp"

namespace carousel {
namespace {

constexpr int channels = Picture::channels;
constexpr std::int64_t most_pixel_bytes = std::int64_t{1} << 30;  // that are kept unasked

/// Where a file of the source goes.
struct Target {
  Half half = Half::train;
  std::int64_t index = -1;  // -1: nowhere
};

struct Encoded {
  std::size_t file = 0;
  std::vector<std::byte> bytes;
};

/// Pixels cannot be kept: a picture has another size than the first one.
struct SeveralSizes {};
/// Reading ends early, since something else has failed.
struct Stopped {};

/// One attempt at all pictures of a layout.
class Import {
 public:
  Import(const FileSource& source, const PictureLayout& layout, const ImportOptions& options)
      : source_(source), layout_(layout), options_(options), targets_(source.files().size()) {
    for (const Half half : both_halves) {
      std::int64_t index = 0;
      for (const PictureLayout::Item& item : layout.half(half))
        targets_[item.file] = {half, index++};
    }
  }

  ImportResult run(const std::string& path, const ImportProgress& progress) {
    if (options_.keep == Keep::files) return run(path, {channels, 0, 0}, progress);
    const SampleShape shape = find_shape();
    const auto images = std::ssize(layout_.halves[0]) + std::ssize(layout_.halves[1]);
    if (options_.keep == Keep::pixels || images * shape.size() <= most_pixel_bytes) {
      try {
        return run(path, shape, progress);
      } catch (const SeveralSizes&) {
        bad_.clear();
        failure_ = nullptr;
      }
    }
    return run(path, {channels, 0, 0}, progress);
  }

 private:
  ImportResult run(const std::string& path, const SampleShape& shape,
                   const ImportProgress& progress) {
    ImportResult result = {.shape = shape};
    DatasetSpec spec = {.shape = shape,
                        .class_names = layout_.class_names,
                        .source = options_.source,
                        .licence = options_.licence};
    for (const Half half : both_halves) {
      const auto k = index_of(half);
      for (const PictureLayout::Item& item : layout_.half(half)) {
        spec.labels[k].push_back(item.label);
        if (shape.height == 0) spec.file_bytes[k].push_back(source_.bytes()[item.file]);
      }
      result.images[k] = std::ssize(spec.labels[k]);
    }
    DatasetWriter writer(path, std::move(spec));
    decode_all(writer, shape, progress);
    std::ranges::sort(bad_, {}, &BadFile::path);
    result.bad = std::move(bad_);
    result.written = result.bad.empty();
    if (result.written) writer.finish();
    return result;
  }

  /// That of the first picture, in the order of paths, that can be decoded. The very first one is
  /// tried alone; if it is bad, all are, in one pass, since an archive has an order of its own.
  SampleShape find_shape() const {
    const std::vector<PictureLayout::Item>& items = layout_.half(Half::train);
    std::vector<bool> wanted(targets_.size());
    wanted[items.front().file] = source_.fault(items.front().file).empty();
    for (int attempt = 0; attempt < 2; ++attempt) {
      SampleShape shape;
      std::size_t first = targets_.size();
      source_.read(wanted, [&](std::size_t file, const std::vector<std::byte>& bytes) {
        Picture picture;
        if (file > first || !why_bad(bytes, picture).empty()) return;
        first = file;
        shape = {channels, picture.size.height, picture.size.width};
      });
      if (shape.channels > 0) return shape;
      for (const PictureLayout::Item& item : items)
        wanted[item.file] = source_.fault(item.file).empty();
    }
    fail(ExitCode::bad_data, "{}: no picture for training can be decoded, beginning with {}",
         source_.path(), source_.files()[items.front().file]);
  }

  void decode_all(DatasetWriter& writer, const SampleShape& shape, const ImportProgress& progress) {
    std::vector<bool> wanted(targets_.size());
    std::size_t all = 0;
    for (std::size_t k = 0; k < targets_.size(); ++k) {
      const std::string& fault = source_.fault(k);
      wanted[k] = targets_[k].index >= 0 && fault.empty();
      if (targets_[k].index >= 0 && !fault.empty()) bad_.push_back({source_.files()[k], fault});
      all += wanted[k] ? 1 : 0;
    }
    constexpr std::size_t ahead = 4;  // of a thread
    Queue<Encoded> queue(ahead * static_cast<std::size_t>(options_.workers));
    std::vector<std::thread> workers;
    try {
      for (int k = 0; k < options_.workers; ++k)
        workers.emplace_back([&] { decode_some(queue, writer, shape); });
      std::size_t done = 0;
      source_.read(wanted, [&](std::size_t file, std::vector<std::byte> bytes) {
        if (!queue.push({file, std::move(bytes)})) throw Stopped();
        progress(++done, all);
      });
    } catch (...) {
      note(std::current_exception());
    }
    queue.close();
    for (std::thread& worker : workers) worker.join();
    if (failure_) std::rethrow_exception(failure_);
  }

  void decode_some(Queue<Encoded>& queue, DatasetWriter& writer, const SampleShape& shape) {
    Picture picture;
    std::vector<std::uint8_t> planes(static_cast<std::size_t>(shape.size()));
    try {
      while (const std::optional<Encoded> encoded = queue.pop()) {
        const std::string reason = decode(*encoded, shape, picture);
        if (!reason.empty()) {
          const std::lock_guard lock(mutex_);
          bad_.push_back({source_.files()[encoded->file], reason});
          continue;
        }
        const auto [half, index] = targets_[encoded->file];
        if (planes.empty()) {
          writer.put(half, index, encoded->bytes, picture);
        } else {
          separate(picture, planes);
          writer.put(half, index, planes);
        }
      }
    } catch (...) {
      note(std::current_exception());
      queue.close();  // so that the reading thread does not wait for room
    }
  }

  /// Why a picture cannot be decoded; empty if it was.
  static std::string why_bad(const std::vector<std::byte>& bytes, Picture& picture) {
    try {
      decode_picture(bytes, picture);
      return "";
    } catch (const Error& error) {
      return error.what();
    } catch (const std::bad_alloc&) {
      return fmt::format("{} x {} pixels are more than there is memory for", picture.size.width,
                         picture.size.height);
    }
  }
  /// Why a picture cannot be taken; empty if it can.
  std::string decode(const Encoded& encoded, const SampleShape& shape, Picture& picture) const {
    const auto [height, width] = PictureSize{shape.height, shape.width};
    if (height == 0 && std::ssize(encoded.bytes) != source_.bytes()[encoded.file])
      return "it changed while it was read";
    std::string reason = why_bad(encoded.bytes, picture);
    if (!reason.empty() || height == 0 || picture.size == PictureSize{height, width}) return reason;
    if (options_.keep == Keep::automatic) throw SeveralSizes();
    return fmt::format("{} x {} pixels, not {} x {} as the first one", picture.size.width,
                       picture.size.height, width, height);
  }

  void note(const std::exception_ptr& failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = failure;
  }

  const FileSource& source_;
  const PictureLayout& layout_;
  const ImportOptions& options_;
  std::vector<Target> targets_;  // of each file

  std::mutex mutex_;  // guards what follows
  std::vector<BadFile> bad_;
  std::exception_ptr failure_;
};

void leave_out(PictureLayout& layout, const FileSource& source, const std::vector<BadFile>& bad) {
  for (std::vector<PictureLayout::Item>& half : layout.halves) {
    std::erase_if(half, [&](const PictureLayout::Item& item) {
      return std::ranges::binary_search(bad, source.files()[item.file], {}, &BadFile::path);
    });
    if (half.empty())
      fail(ExitCode::bad_data, "{}: no good picture is left for one of the halves", source.path());
  }
}

}  // namespace

ImportResult import_pictures(const FileSource& source, PictureLayout layout,
                             const std::string& path, const ImportOptions& options,
                             const ImportProgress& progress) {
  ImportResult result = Import(source, layout, options).run(path, progress);
  if (result.written || !options.skip_bad) return result;
  leave_out(layout, source, result.bad);
  ImportResult second = Import(source, layout, options).run(path, progress);
  second.bad.insert(second.bad.begin(), result.bad.begin(), result.bad.end());
  return second;
}

}  // namespace carousel
