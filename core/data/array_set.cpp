// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/array_set.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"
#include "core/base/digest.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/data/array_source.hpp"
#include "core/data/checksums.hpp"
#include "core/data/sampler.hpp"

namespace carousel {
namespace {

/// What a fraction of so many units is: at least one, where it is more than nothing.
std::int64_t share_of(double fraction, std::int64_t units) {
  if (fraction == 0) return 0;
  return std::max<std::int64_t>(1, std::llround(fraction * static_cast<double>(units)));
}

void check_count(const char* key, const std::vector<double>& values, int channels) {
  if (!values.empty() && std::ssize(values) != channels)
    fail(ExitCode::usage, "{} has {} values, and the arrays have {} channel{}", key, values.size(),
         channels, channels == 1 ? "" : "s");
}

/// Of axes, type and numbers of an array, at so many places of the file.
std::uint64_t digest_of(const DataArray& array, const Descriptor& file, std::int64_t most) {
  constexpr std::int64_t piece_bytes = 1 << 16;
  std::uint64_t sum = 0;
  std::uint64_t count = 0;
  const auto add = [&](std::uint64_t value) { sum += digest_term(count++, value); };
  add(static_cast<std::uint64_t>(array.layout().kind));
  add(static_cast<std::uint64_t>(array.layout().bytes));
  for (const ArrayAxis axis :
       {ArrayAxis::n, ArrayAxis::t, ArrayAxis::c, ArrayAxis::y, ArrayAxis::x})
    add(static_cast<std::uint64_t>(array.extent(axis)));
  if (array.has(ArrayAxis::z)) add(static_cast<std::uint64_t>(array.extent(ArrayAxis::z)));
  const std::int64_t pieces = array.pieces(piece_bytes);
  const std::int64_t looks = std::min(pieces, most);
  std::vector<std::byte> bytes;
  for (std::int64_t k = 0; k < looks; ++k) {
    const hdf5::ChunkPlace place = array.piece(k * pieces / looks, piece_bytes);
    bytes.resize(static_cast<std::size_t>(place.bytes));
    file.read_at(place.offset, bytes);
    Checksum checksum;
    checksum.add(bytes);
    add(checksum.value());
  }
  return sum;
}

/// Which part of a frame a model sees.
SampleShape shown_of(const AugmentConfig& augment, const SampleShape& frame) {
  const PictureSize size = plain_part(augment, {frame.height, frame.width}).crop.size;
  return {frame.channels, size.height, size.width, frame.depth};
}

}  // namespace

void ArraySplit::add(const ArrayFile& file, std::int64_t sample) {
  first_.push_back({&file, {sample, 0}});
  ends_.push_back(samples() + file.windows);
}

SamplePlace ArraySplit::place(std::int64_t index) const {
  const auto at = std::ranges::upper_bound(ends_, index) - ends_.begin();
  SamplePlace place = first_[static_cast<std::size_t>(at)];
  place.frame.time = index - (at == 0 ? 0 : ends_[static_cast<std::size_t>(at) - 1]);
  return place;
}

ArraySet::ArraySet(const DataConfig& config)
    : name_(fmt::format("{}", fmt::join(config.files, ", "))),
      classes_(config.target.classes),
      workers_(config.workers),
      evaluated_(config.evaluated) {
  divide(open("data.files", config.files, config), config);
  const auto take = [&](SplitName name, const char* key, const std::vector<std::string>& paths) {
    for (const ArrayFile* file : open(key, paths, config))
      for (std::int64_t n = 0; n < file->samples; ++n)
        splits_[static_cast<std::size_t>(name)].add(*file, n);
  };
  take(SplitName::validation, "data.validation_files", config.validation_files);
  take(SplitName::test, "data.test_files", config.test_files);
  if (evaluated_ && split(Pass::evaluation).samples() == 0)
    fail(ExitCode::usage, "{}: has no samples for {}", name_, to_string(*evaluated_));
  if (split(Pass::evaluation).samples() == 0)
    fail(ExitCode::usage,
         "data.validation_fraction is missing: nothing is left to evaluate with; give it, "
         "data.validation_files, or the same of test");
  for (const SplitName name : {SplitName::train, SplitName::validation, SplitName::test})
    if (split(name).samples() > INT32_MAX)
      fail(ExitCode::usage, "data.files: {} samples are more than a run can count",
           split(name).samples());
}

std::vector<const ArrayFile*> ArraySet::open(const std::string& key,
                                             const std::vector<std::string>& paths,
                                             const DataConfig& config) {
  std::vector<const ArrayFile*> opened;
  for (const std::string& path : expand_paths(key, paths)) {
    if (!paths_.insert(path).second)
      fail(ExitCode::usage, "{}: {} is named twice; a sample belongs to one split", key, path);
    files_.push_back(std::make_unique<ArrayFile>(open_array_file(path, config)));
    const ArrayFile& file = *files_.back();
    input_room_.include(room_for(file, false));
    target_room_.include(room_for(file, true));
    const auto check = [&](const char* what, const SampleShape& own, const SampleShape& first) {
      if (own != first)
        fail(ExitCode::bad_data, "{}: {} of {}, and those of {} are {}", path, what, to_string(own),
             first_file().path, to_string(first));
    };
    check("inputs", file.input, first_file().input);
    check("targets", file.target, first_file().target);
    opened.push_back(&file);
  }
  return opened;
}

/// The units of each split, in the order of the files.
void ArraySet::divide(const std::vector<const ArrayFile*>& files, const DataConfig& config) {
  if (config.whole) {
    for (const ArrayFile* file : files)
      for (std::int64_t n = 0; n < file->samples; ++n)
        for (ArraySplit& split : splits_) split.add(*file, n);
    return;
  }
  const bool by_file = config.split == SplitUnit::file;
  std::vector<std::int64_t> ends;  // units up to the end of each file
  for (const ArrayFile* file : files)
    ends.push_back((ends.empty() ? 0 : ends.back()) + (by_file ? 1 : file->samples));
  const std::int64_t units = ends.back();
  const std::int64_t validation = share_of(config.validation_fraction, units);
  const std::int64_t test = share_of(config.test_fraction, units);
  if (validation + test >= units)
    fail(ExitCode::usage,
         "data.validation_fraction = {} and data.test_fraction = {} leave nothing of {} {}{} to "
         "train with",
         config.validation_fraction, config.test_fraction, units, by_file ? "file" : "sample",
         units == 1 ? "" : "s");
  std::vector<SplitName> names(static_cast<std::size_t>(units), SplitName::train);
  if (validation + test > 0) {
    Sampler sampler(random_key(static_cast<std::uint64_t>(config.split_seed), "split"), units);
    const std::span<const int> order = sampler.permutation(0);
    for (std::int64_t k = 0; k < validation + test; ++k)
      names[static_cast<std::size_t>(order[static_cast<std::size_t>(k)])] =
          k < validation ? SplitName::validation : SplitName::test;
  }
  std::size_t unit = 0;
  for (const ArrayFile* file : files) {
    for (std::int64_t n = 0; n < file->samples; ++n) {
      splits_[static_cast<std::size_t>(names[unit])].add(*file, n);
      if (!by_file) ++unit;
    }
    if (by_file) ++unit;
  }
}

const ArraySplit& ArraySet::split(Pass pass) const {
  if (pass == Pass::training) return split(SplitName::train);
  if (evaluated_) return split(*evaluated_);
  const ArraySplit& validation = split(SplitName::validation);
  return validation.samples() > 0 ? validation : split(SplitName::test);
}

/// Of axes, types and up to 16 MiB of numbers that lie evenly in all files.
std::uint64_t ArraySet::fingerprint() const {
  constexpr std::int64_t most_looks = 256;
  std::uint64_t sum = 0;
  std::uint64_t count = 0;
  const auto add = [&](std::uint64_t value) { sum += digest_term(count++, value); };
  std::int64_t arrays = 0;
  for (const auto& file : files_) arrays += std::ssize(file->inputs) + std::ssize(file->targets);
  const std::int64_t looks =
      std::max<std::int64_t>(1, most_looks / std::max<std::int64_t>(1, arrays));
  for (const auto& file : files_) {
    const Descriptor bytes = Descriptor::open(file->path);
    add(static_cast<std::uint64_t>(file->samples));
    add(static_cast<std::uint64_t>(file->windows));
    for (const auto* group : {&file->inputs, &file->targets})
      for (const DataArray& array : *group) add(digest_of(array, bytes, looks));
  }
  return sum;
}

std::vector<std::string> ArraySet::class_names() const {
  std::vector<std::string> names;
  for (int k = 0; k < classes_; ++k) names.push_back(std::to_string(k));
  return names;
}

DataRemarks ArraySet::remarks() const {
  const ArrayFile& file = first_file();
  DataRemarks remarks;
  if (classes_ == 0)
    remarks.targets = fmt::format("numbers, {}", to_string(file.target));
  else
    remarks.targets = to_string(TargetSpec::of_pixels(classes_, file.target));
  const std::int64_t held_out = split(SplitName::test).samples();
  if (split(SplitName::validation).samples() > 0 && held_out > 0)
    remarks.targets += fmt::format("; {} test samples held out", human_count(held_out));
  return remarks;
}

TargetSpec ArraySet::target(const DataConfig& config) const {
  const ArrayFile& file = first_file();
  SampleShape shape = file.target;
  if (file.has_target_fields()) shape = shown_of(config.augment, file.target);
  if (classes_ == 0) {
    TargetSpec target = TargetSpec::of_numbers(shape);
    target.has_gaps = !config.target.mask.empty();
    return target;
  }
  TargetSpec target = TargetSpec::of_pixels(classes_, shape);
  target.ignored = config.target.ignore;
  return target;
}

SourceSpec ArraySet::source_spec(const DataConfig& config) const {
  const ArrayFile& file = first_file();
  const AugmentConfig& augment = config.augment;
  const int size = augment.size;
  if (size > 0 && (size > file.input.height || (file.input.width > 1 && size > file.input.width)))
    fail(ExitCode::usage, "data.augment.size = {} is more than inputs of {} have", size,
         to_string(file.input));
  if (size > 0 && file.input.axes() == 3)
    fail(ExitCode::usage,
         "data.augment.size = {} cuts out of images; volumes of {} are shown whole, remove it",
         size, to_string(file.input));
  const bool moves = size > 0 || augment.flip > 0;
  if (moves && file.has_target_fields() &&
      file.target.with_channels(1) != file.input.with_channels(1))
    fail(ExitCode::usage,
         "data.augment.{}: inputs of {} and targets of {} have no pixels in common to cut out or "
         "mirror",
         size > 0 ? "size" : "flip", to_string(file.input), to_string(file.target));
  if (augment.crop == CropKind::resized)
    fail(ExitCode::usage, "data.augment.crop = \"resized\" is of images; arrays are not resized");
  if (config.target.classes > 0 &&
      (config.target.arrays.normalise != Normalise::none ||
       config.target.arrays.transform != Transform::none || !config.target.arrays.mean.empty()))
    fail(ExitCode::usage, "data.target.normalise: labels are not scaled; remove it");
  if (config.target.classes == 0 && config.target.ignore >= 0)
    fail(ExitCode::usage, "data.target.ignore is of labels; data.target.mask hides numbers");
  if (config.target.classes > 0 && !config.target.mask.empty())
    fail(ExitCode::usage, "data.target.mask is of numbers; data.target.ignore hides labels");
  check_count("data.input.mean", config.input.arrays.mean, file.input.channels);
  check_count("data.input.std", config.input.arrays.std, file.input.channels);
  if (!config.without_targets) {
    check_count("data.target.mean", config.target.arrays.mean, file.target.channels);
    check_count("data.target.std", config.target.arrays.std, file.target.channels);
  }
  SampleShape shown = shown_of(augment, file.input);
  shown.channels *= config.input.history;
  return {.input = {full_numbers(), shown},
          .target = tensor_of(target(config)),
          .shown = shown,
          .reader_bytes = FrameReader::bytes(file, room(false), false),
          .target_reader_bytes = FrameReader::bytes(file, room(true), true)};
}

DataStatistics ArraySet::count_of_statistics(const DataConfig& config) const {
  const auto zeros = [](int count) {
    return std::vector<double>(static_cast<std::size_t>(count), 0.0);
  };
  const int inputs = first_file().input.channels;
  const int targets = config.target.classes > 0 ? 0 : first_file().target.channels;
  return {zeros(inputs), zeros(inputs), zeros(targets), zeros(targets)};
}

DataStatistics ArraySet::statistics(const DataConfig& config) const {
  DataStatistics result = count_of_statistics(config);
  std::ranges::fill(result.std, 1.0);
  std::ranges::fill(result.target_std, 1.0);
  const bool wanted =
      config.input.arrays.needs_statistics() ||
      (classes_ == 0 && !config.without_targets && config.target.arrays.needs_statistics());
  if (wanted) {
    const std::lock_guard lock(mutex_);
    if (!statistics_) {
      statistics_ = result;
      measure(*this, config, workers_, *statistics_);
    }
    result = *statistics_;
  }
  const auto take = [](std::vector<double>& to, const std::vector<double>& from) {
    if (!from.empty()) to = from;
  };
  take(result.mean, config.input.arrays.mean);
  take(result.std, config.input.arrays.std);
  if (classes_ == 0) take(result.target_mean, config.target.arrays.mean);
  if (classes_ == 0) take(result.target_std, config.target.arrays.std);
  return result;
}

std::unique_ptr<Source> ArraySet::source(const DataConfig& config, std::uint64_t seed) const {
  return std::make_unique<ArraySource>(*this, config, statistics(config), seed);
}

}  // namespace carousel
