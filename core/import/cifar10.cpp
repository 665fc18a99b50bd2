// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/import/cifar10.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <sstream>

#include "core/base/check.hpp"
#include "core/import/pickle.hpp"
#include "core/import/picture_layout.hpp"

namespace carousel {
namespace {

constexpr SampleShape shape = {3, 32, 32};
constexpr int classes = 10;
constexpr std::array batches = {"data_batch_1", "data_batch_2", "data_batch_3",
                                "data_batch_4", "data_batch_5", "test_batch"};

struct Batch {
  std::vector<int> labels;
  std::vector<std::uint8_t> images;  // [labels, 3, 32, 32]
};

/// How one of the published forms names its files.
struct Form {
  const char* ending;  // of batches
  const char* names;   // where the classes' names are
};
constexpr Form python = {"", "batches.meta"};
constexpr Form binary = {".bin", "batches.meta.txt"};

/// The number of the file of that name, in whatever folder that is not hidden or a system's. Of two
/// it cannot be known which is meant.
std::optional<std::size_t> find(const FileSource& source, const std::string& name) {
  std::optional<std::size_t> found;
  for (std::size_t k = 0; k < source.files().size(); ++k) {
    const std::string& path = source.files()[k];
    if (std::filesystem::path(path).filename() != name || is_service_path(path)) continue;
    if (found)
      fail(ExitCode::bad_data, "{}: has {} and {}; give the folder that holds one of them",
           source.path(), source.files()[*found], path);
    found = k;
  }
  return found;
}

const Pickled& entry(const Pickled& dictionary, const char* name) {
  const auto found = dictionary.entries.find(name);
  if (found == dictionary.entries.end()) fail(ExitCode::bad_data, "a pickle without '{}'", name);
  return *found->second;
}

Batch read_python(std::span<const std::byte> file) {
  const Pickled pickled = read_pickle(file);
  Batch batch;
  const Pickled& labels = entry(pickled, "labels");
  const auto is_integer = [](const auto& label) { return label->kind == Pickled::Kind::integer; };
  if (labels.kind != Pickled::Kind::sequence || !std::ranges::all_of(labels.items, is_integer))
    fail(ExitCode::bad_data, "'labels' are no list of integers");
  for (const auto& label : labels.items)
    batch.labels.push_back(static_cast<int>(std::clamp<std::int64_t>(label->integer, -1, classes)));
  const std::span<const std::uint8_t> images = bytes_of_array(entry(pickled, "data"));
  batch.images.assign(images.begin(), images.end());
  return batch;
}

/// Records of a label and an image.
Batch read_binary(std::span<const std::byte> file) {
  const auto record = static_cast<std::size_t>(1 + shape.size());
  if (file.size() % record != 0)
    fail(ExitCode::bad_data, "{} bytes are no whole number of records of {}", file.size(), record);
  Batch batch;
  for (; !file.empty(); file = file.subspan(record)) {
    batch.labels.push_back(std::to_integer<int>(file.front()));
    for (const std::byte value : file.subspan(1, record - 1))
      batch.images.push_back(std::to_integer<std::uint8_t>(value));
  }
  return batch;
}

void check(const Batch& batch) {
  if (batch.labels.empty() || std::ssize(batch.images) != std::ssize(batch.labels) * shape.size())
    fail(ExitCode::bad_data, "{} bytes of images for {} labels", batch.images.size(),
         batch.labels.size());
  for (const int label : batch.labels) {
    if (label < 0 || label >= classes) fail(ExitCode::bad_data, "a label outside 0..9");
  }
}

std::vector<std::string> read_names(const Form& form, std::span<const std::byte> file) {
  std::vector<std::string> names;
  if (&form == &python) {
    const Pickled meta = read_pickle(file);
    for (const auto& name : entry(meta, "label_names").items) names.push_back(name->text);
  } else {
    std::istringstream lines(std::string(reinterpret_cast<const char*>(file.data()), file.size()));
    for (std::string line; std::getline(lines, line);)
      if (!line.empty()) names.push_back(line);
  }
  if (names.size() != classes)
    fail(ExitCode::bad_data, "{} names of classes, not {}", names.size(), classes);
  return names;
}

}  // namespace

bool has_cifar10_batches(const FileSource& source) {
  return find(source, batches.front()) ||
         find(source, std::string(batches.front()) + binary.ending);
}

ImportResult import_cifar10_batches(const FileSource& source, const std::string& path,
                                    const ImportOptions& options, const ImportProgress& progress) {
  const Form& form = find(source, batches.front()) ? python : binary;
  std::vector<bool> wanted(source.files().size());
  std::array<std::size_t, batches.size()> files = {};
  const auto want = [&](const std::string& name) {
    const auto file = find(source, name);
    if (!file) fail(ExitCode::bad_data, "{}: {} is missing", source.path(), name);
    if (const std::string& fault = source.fault(*file); !fault.empty())
      fail(ExitCode::bad_data, "{}: {}: {}", source.path(), source.files()[*file], fault);
    wanted[*file] = true;
    return *file;
  };
  for (std::size_t k = 0; k < files.size(); ++k)
    files[k] = want(std::string(batches[k]) + form.ending);
  const std::size_t names = want(form.names);

  ImportResult result = {.shape = shape};
  DatasetSpec spec = {.shape = shape, .source = options.source, .licence = options.licence};
  std::array<Batch, batches.size()> read;
  source.read(wanted, [&](std::size_t file, const std::vector<std::byte>& bytes) {
    try {
      if (file == names) {
        spec.class_names = read_names(form, bytes);
        return;
      }
      Batch& batch = read[static_cast<std::size_t>(std::ranges::find(files, file) - files.begin())];
      batch = &form == &python ? read_python(bytes) : read_binary(bytes);
      check(batch);
    } catch (const Error& error) {
      fail(error.code(), "{}: {}: {}", source.path(), source.files()[file], error.what());
    }
  });

  const auto half_of = [](std::size_t batch) {
    return batch + 1 == batches.size() ? Half::test : Half::train;
  };
  for (std::size_t k = 0; k < read.size(); ++k) {
    auto& labels = spec.labels[index_of(half_of(k))];
    labels.insert(labels.end(), read[k].labels.begin(), read[k].labels.end());
  }
  for (const Half half : both_halves)
    result.images[index_of(half)] = std::ssize(spec.labels[index_of(half)]);
  const std::size_t all = spec.labels[0].size() + spec.labels[1].size();

  DatasetWriter writer(path, std::move(spec));
  std::size_t done = 0;
  std::int64_t index = 0;
  for (std::size_t k = 0; k < read.size(); ++k) {
    if (half_of(k) == Half::test) index = 0;
    const auto size = static_cast<std::size_t>(shape.size());
    for (std::size_t at = 0; at < read[k].images.size(); at += size) {
      writer.put(half_of(k), index++, std::span(read[k].images).subspan(at, size));
      progress(++done, all);
    }
  }
  writer.finish();
  result.written = true;
  return result;
}

}  // namespace carousel
