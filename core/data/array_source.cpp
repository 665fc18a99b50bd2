// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/array_source.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/check.hpp"

namespace carousel {
namespace {

// Files that a reader keeps open.
constexpr std::size_t most_open = 8;

std::int64_t frame_size(const ArrayFile& file, bool targets) {
  return (targets ? file.target : file.input).size();
}

FramePart part_of(const FieldPart& part, int depth) {
  return {part.crop.top,        part.crop.left, part.crop.size.height,
          part.crop.size.width, part.mirrored,  depth};
}

class ArrayReader final : public SourceReader {
 public:
  ArrayReader(const ArraySet& set, const DataConfig& config, const DataStatistics& statistics,
              std::uint64_t seed, const Reads& reads)
      : set_(set), config_(config), statistics_(statistics), seed_(seed) {
    const ArrayFile& file = set.first_file();
    if (reads.inputs) inputs_.emplace(file, set.room(false), config.input.arrays.transform, false);
    if (reads.targets) targets_.emplace(file, set.room(true), config.target.arrays.transform, true);
  }

  [[nodiscard]] ShownPart read_input(Pass pass, std::int64_t epoch, std::int64_t index,
                                     std::span<std::byte> input) override {
    CAROUSEL_CHECK(inputs_, "a reader of targets is asked for input {}", index);
    const SamplePlace place = set_.split(pass).place(index);
    const FramePart part = part_of_sample(pass, epoch, index, place.file->input);
    const auto frames = static_cast<std::size_t>(config_.input.history);
    const std::size_t bytes = input.size() / frames;
    for (std::size_t k = 0; k < frames; ++k) {
      FramePlace frame = place.frame;
      frame.time += static_cast<std::int64_t>(k);
      normalise(place, inputs_->read(*place.file, frame, part), statistics_.mean, statistics_.std,
                input.subspan(k * bytes, bytes));
    }
    return {};
  }

  void read_target(Pass pass, std::int64_t epoch, std::int64_t index,
                   std::span<std::byte> target) override {
    CAROUSEL_CHECK(targets_, "a reader of inputs is asked for target {}", index);
    const SamplePlace place = set_.split(pass).place(index);
    const SampleShape& shape = place.file->target;
    const FramePart part = place.file->has_target_fields()
                               ? part_of_sample(pass, epoch, index, shape)
                               : FramePart::whole(shape);
    FramePlace frame = place.frame;
    if (place.file->targets.front().has(ArrayAxis::t))
      frame.time += config_.input.history - 1 + config_.target.ahead;
    else
      frame.time = 0;
    if (config_.target.classes == 0) {
      normalise(place, targets_->read(*place.file, frame, part), statistics_.target_mean,
                statistics_.target_std, target);
      if (config_.target.are_shares) check_shares(place, target);
      return;
    }
    const std::span<const std::int64_t> labels = targets_->read_labels(
        *place.file, frame, part, config_.target.classes, config_.target.ignore);
    CAROUSEL_CHECK(labels.size() * sizeof(std::int32_t) == target.size(), "{} labels for {} bytes",
                   labels.size(), target.size());
    for (std::size_t k = 0; k < labels.size(); ++k) {
      const auto label = static_cast<std::int32_t>(labels[k]);
      std::memcpy(target.data() + k * sizeof label, &label, sizeof label);
    }
  }

 private:
  [[nodiscard]] FramePart part_of_sample(Pass pass, std::int64_t epoch, std::int64_t index,
                                         const SampleShape& frame) const {
    const PictureSize size = {frame.height, frame.width};
    if (pass == Pass::evaluation) return part_of(plain_part(config_.augment, size), frame.depth);
    return part_of(augmented_part(config_.augment, size, {seed_, epoch, index}), frame.depth);
  }

  /// Rounded once, from double.
  static void normalise(const SamplePlace& place, std::span<const double> numbers,
                        const std::vector<double>& mean, const std::vector<double>& std,
                        std::span<std::byte> to) {
    CAROUSEL_CHECK(numbers.size_bytes() / sizeof(double) * sizeof(real) == to.size(),
                   "{} numbers for {} bytes", numbers.size(), to.size());
    auto* out = reinterpret_cast<real*>(to.data());
    const std::size_t plane = numbers.size() / mean.size();
    bool too_large = false;
    for (std::size_t c = 0; c < mean.size(); ++c) {
      for (std::size_t k = c * plane; k < (c + 1) * plane; ++k) {
        out[k] = static_cast<real>((numbers[k] - mean[c]) / std[c]);
        too_large = too_large || std::isinf(out[k]);
      }
    }
    if (too_large)
      fail(ExitCode::bad_data,
           "{}: sample {} has numbers that {} cannot hold; normalise them, or leave them out",
           place.file->path, place.frame.sample, to_string(full_numbers()));
  }

  /// What no number is is a gap; a bound may be missed by rounding.
  static void check_shares(const SamplePlace& place, std::span<const std::byte> target) {
    constexpr real rounding = 1e-6;
    const std::span numbers(reinterpret_cast<const real*>(target.data()),
                            target.size() / sizeof(real));
    if (std::ranges::any_of(numbers, [](real x) { return x < -rounding || x > 1 + rounding; }))
      fail(ExitCode::bad_data,
           "{}: sample {} has targets that do not lie between 0 and 1, as task.loss wants them; "
           "data.target.normalise = \"minmax\" brings them there",
           place.file->path, place.frame.sample);
  }

  const ArraySet& set_;
  const DataConfig& config_;
  const DataStatistics& statistics_;
  std::uint64_t seed_;
  std::optional<FrameReader> inputs_;
  std::optional<FrameReader> targets_;
};

}  // namespace

double transformed(Transform transform, double value) {
  switch (transform) {
    case Transform::none:
      return value;
    case Transform::log:
      return std::log(value);
    case Transform::log1p:
      return std::log1p(value);
    case Transform::asinh:
      return std::asinh(value);
  }
  return value;
}

double restored(Transform transform, double value) {
  switch (transform) {
    case Transform::none:
      return value;
    case Transform::log:
      return std::exp(value);
    case Transform::log1p:
      return std::expm1(value);
    case Transform::asinh:
      return std::sinh(value);
  }
  return value;
}

FrameReader::FrameReader(const ArrayFile& like, const ArrayRoom& room, Transform transform,
                         bool targets)
    : transform_(transform), targets_(targets), buffer_(room) {
  numbers_.resize(static_cast<std::size_t>(frame_size(like, targets)));
  if (targets) labels_.resize(static_cast<std::size_t>(like.target.pixels()));
}

std::int64_t FrameReader::bytes(const ArrayFile& like, const ArrayRoom& room, bool targets) {
  return room.bytes() + frame_size(like, targets) * std::int64_t{sizeof(double)} +
         (targets ? like.target.pixels() * std::int64_t{sizeof(std::int64_t)} : 0);
}

const Descriptor& FrameReader::descriptor(const std::string& path) {
  const auto found = std::ranges::find(open_, path, &std::pair<std::string, Descriptor>::first);
  if (found != open_.end()) {
    open_.splice(open_.begin(), open_, found);
  } else {
    if (open_.size() == most_open) open_.pop_back();
    open_.emplace_front(path, Descriptor::open(path));
  }
  return open_.front().second;
}

std::span<const double> FrameReader::read(const ArrayFile& file, const FramePlace& place,
                                          const FramePart& part) {
  const Descriptor& bytes = descriptor(file.path);
  const std::size_t pixels = part.pixels();
  std::size_t first = 0;
  for (const DataArray& array : targets_ ? file.targets : file.inputs) {
    const std::size_t count = pixels * static_cast<std::size_t>(array.extent(ArrayAxis::c));
    const std::span<double> numbers = std::span(numbers_).subspan(first, count);
    array.read(bytes, place, part, buffer_, numbers);
    first += count;
  }
  if (targets_ && file.mask) hide(file, place, part);
  first = 0;
  for (const DataArray& array : targets_ ? file.targets : file.inputs) {
    const std::size_t count = pixels * static_cast<std::size_t>(array.extent(ArrayAxis::c));
    const std::span<double> numbers = std::span(numbers_).subspan(first, count);
    if (transform_ != Transform::none)
      for (double& number : numbers) number = transformed(transform_, number);
    check(file, array, place, part, numbers);
    first += count;
  }
  return std::span(numbers_).first(first);
}

/// Leaves NaN where the mask is 0, whatever was there.
void FrameReader::hide(const ArrayFile& file, const FramePlace& place, const FramePart& part) {
  const std::size_t pixels = part.pixels();
  const std::span<std::int64_t> shows = std::span(labels_).first(pixels);
  file.mask->read(descriptor(file.path), place, part, buffer_, shows);
  for (std::size_t k = 0; k < numbers_.size(); ++k)
    if (shows[k % pixels] == 0) numbers_[k] = std::numeric_limits<double>::quiet_NaN();
}

void FrameReader::check(const ArrayFile& file, const DataArray& array, const FramePlace& place,
                        const FramePart& part, std::span<const double> numbers) const {
  // The sum of differences of numbers from themselves is 0 unless one is not finite.
  double sum = 0;
  for (const double number : numbers) sum += number - number;
  if (sum == 0) return;
  const bool hides = targets_ && file.mask.has_value();
  const std::size_t pixels = part.pixels();
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    if (std::isfinite(numbers[k]) || (hides && labels_[k % pixels] == 0)) continue;
    fail(ExitCode::bad_data, "{}: {} {}", file.path,
         array.place_of(place, part, static_cast<std::int64_t>(k)),
         transform_ == Transform::none
             ? std::string("is not a finite number")
             : fmt::format("has no finite {}, which transform asks for", to_string(transform_)));
  }
}

std::span<const std::int64_t> FrameReader::read_labels(const ArrayFile& file,
                                                       const FramePlace& place,
                                                       const FramePart& part, int classes,
                                                       int ignore) {
  const std::span<std::int64_t> labels = std::span(labels_).first(part.pixels());
  const DataArray& array = file.targets.front();
  array.read(descriptor(file.path), place, part, buffer_, labels);
  for (std::size_t k = 0; k < labels.size(); ++k) {
    if ((labels[k] >= 0 && labels[k] < classes) || (ignore >= 0 && labels[k] == ignore)) continue;
    fail(ExitCode::bad_data, "{}: {} is {}, and labels lie between 0 and {}", file.path,
         array.place_of(place, part, static_cast<std::int64_t>(k)), labels[k], classes - 1);
  }
  return labels;
}

ArraySource::ArraySource(const ArraySet& set, const DataConfig& config, DataStatistics statistics,
                         std::uint64_t seed)
    : set_(set),
      config_(config),
      statistics_(std::move(statistics)),
      seed_(seed),
      spec_(set.source_spec(config)) {}

std::unique_ptr<SourceReader> ArraySource::reader(const Reads& reads) const {
  return std::make_unique<ArrayReader>(set_, config_, statistics_, seed_, reads);
}

}  // namespace carousel
