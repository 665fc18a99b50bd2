// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/image_source.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "core/base/check.hpp"
#include "core/data/resize.hpp"

namespace carousel {
namespace {

/// Whether readers make the images of the model's size themselves, since pictures are resized.
bool renders(const Dataset& dataset, const AugmentConfig& config) {
  if (config.size == 0) return false;
  const PictureSize stored = {dataset.shape().height, dataset.shape().width};
  return !dataset.has_one_size() || config.crop == CropKind::resized ||
         plain_view(config, stored).size != stored;
}

/// Whether samples, as stored, are not the planes of channels that a model reads.
bool rearranges(const Dataset& dataset) {
  return dataset.encoded() || dataset.channels_last();
}

/// Of the largest picture that a reader holds.
std::size_t picture_bytes(const Dataset& dataset) {
  return static_cast<std::size_t>(dataset.largest().pixels * dataset.shape().channels);
}

PictureSize shown_size(const Dataset& dataset, const AugmentConfig& config) {
  return config.size > 0 ? PictureSize{config.size, config.size}
                         : PictureSize{dataset.shape().height, dataset.shape().width};
}

/// By how much a JPEG can be reduced when it is decoded and still be at least twice as large as
/// what the model sees of it: values then differ from those of the whole picture by 0.5 in the
/// mean, of photographs; just as large, by 1.5.
int reduction_for(const View& view) {
  const double smaller =
      std::min(view.box.height / view.size.height, view.box.width / view.size.width);
  for (const int reduction : {8, 4, 2})
    if (smaller >= 2 * reduction) return reduction;
  return 1;
}

const Split& split_of(const Dataset& dataset, Pass pass) {
  return pass == Pass::training ? dataset.train() : dataset.test();
}

class ImageReader final : public SourceReader {
 public:
  ImageReader(const Dataset& dataset, const AugmentConfig& config, std::uint64_t seed,
              bool reads_inputs);

  [[nodiscard]] ShownPart read_input(Pass pass, std::int64_t epoch, std::int64_t index,
                                     std::span<std::byte> input) override;
  void read_target(Pass pass, std::int64_t epoch, std::int64_t index,
                   std::span<std::byte> target) override;

 private:
  /// Returns by what the picture was reduced: not by more than asked for, and a PNG not at all.
  [[nodiscard]] int decode(const Split& split, std::int64_t index, int reduction);

  const Dataset& dataset_;
  const AugmentConfig& config_;
  std::uint64_t seed_;
  bool reads_inputs_;
  bool renders_;  // otherwise the device crops
  std::vector<std::uint8_t> stored_;
  Picture picture_;
  Resizer resizer_;
};

ImageReader::ImageReader(const Dataset& dataset, const AugmentConfig& config, std::uint64_t seed,
                         bool reads_inputs)
    : dataset_(dataset),
      config_(config),
      seed_(seed),
      reads_inputs_(reads_inputs),
      renders_(reads_inputs && renders(dataset, config)),
      resizer_(renders_ ? dataset.largest().sides : PictureSize{},
               renders_ ? shown_size(dataset, config) : PictureSize{}) {
  if (!reads_inputs || (!renders_ && !rearranges(dataset))) return;
  const LargestSample largest = dataset.largest();
  stored_.reserve(static_cast<std::size_t>(largest.bytes));
  picture_.pixels.reserve(picture_bytes(dataset));
}

int ImageReader::decode(const Split& split, std::int64_t index, int reduction) {
  if (split.channels_last()) {
    picture_.size = split.size(index);
    picture_.pixels.resize(static_cast<std::size_t>(split.bytes(index)));
    split.read(index, picture_.pixels);
    return 1;
  }
  stored_.resize(static_cast<std::size_t>(split.bytes(index)));
  split.read(index, stored_);
  if (!split.encoded()) {
    join(stored_, split.size(index), picture_);
    return 1;
  }
  try {
    decode_picture(std::as_bytes(std::span(stored_)), picture_,
                   {.reduction = reduction, .expected = split.size(index)});
  } catch (const Error& error) {
    fail(error.code(), "{}: picture {} of /{}: {}", dataset_.path(), index,
         &split == &dataset_.train() ? "train" : "test", error.what());
  }
  return picture_.size == split.size(index) ? 1 : reduction;
}

ShownPart ImageReader::read_input(Pass pass, std::int64_t epoch, std::int64_t index,
                                  std::span<std::byte> input) {
  CAROUSEL_CHECK(reads_inputs_, "a reader of targets is asked for input {}", index);
  const std::span image(reinterpret_cast<std::uint8_t*>(input.data()), input.size());
  const bool training = pass == Pass::training;
  const Split& split = split_of(dataset_, pass);
  const PictureSize size = split.size(index);
  const View view =
      training ? augmented_view(config_, size, {seed_, epoch, index}) : plain_view(config_, size);
  if (renders_) {
    const int reduction = decode(split, index, reduction_for(view));
    const Box box = {view.box.top / reduction, view.box.left / reduction,
                     view.box.height / reduction, view.box.width / reduction};
    resizer_.resize(picture_, box, view.size, view.crop, image);
    return {0, 0, view.mirrored ? 1 : 0};
  }
  if (split.encoded() || split.channels_last()) {
    static_cast<void>(decode(split, index, 1));
    separate(picture_.pixels, static_cast<std::size_t>(dataset_.shape().channels), image);
  } else {
    split.read(index, image);
  }
  return {view.crop.top, view.crop.left, view.mirrored ? 1 : 0};
}

void ImageReader::read_target(Pass pass, std::int64_t /*epoch*/, std::int64_t index,
                              std::span<std::byte> target) {
  const std::int32_t label = split_of(dataset_, pass).labels()[static_cast<std::size_t>(index)];
  CAROUSEL_CHECK(target.size() == sizeof label, "{} bytes for a label", target.size());
  std::memcpy(target.data(), &label, sizeof label);
}

}  // namespace

SourceSpec source_spec(const Dataset& dataset, const AugmentConfig& config) {
  const SampleShape& stored = dataset.shape();
  if (!dataset.has_one_size() && config.size == 0)
    fail(ExitCode::usage,
         "data.augment.size is missing: the pictures of {} have several sizes, the model needs one",
         dataset.path());
  for (const auto* values : {&config.mean, &config.std}) {
    if (!values->empty() && std::ssize(*values) != stored.channels)
      fail(ExitCode::usage, "data.augment.{} has {} values, the images of {} have {} channels",
           values == &config.mean ? "mean" : "std", values->size(), dataset.path(),
           stored.channels);
  }
  const bool renders = carousel::renders(dataset, config);
  if (renders && stored.channels != Picture::channels)
    fail(ExitCode::usage,
         "data.augment.size = {} resizes images, which needs {} channels; {} has {}", config.size,
         Picture::channels, dataset.path(), stored.channels);
  const auto [height, width] = shown_size(dataset, config);
  const SampleShape shown = {stored.channels, height, width};
  SourceSpec spec = {
      .input = {NumberType::uint8, renders ? shown : stored}, .target = label_spec, .shown = shown};
  const LargestSample largest = dataset.largest();
  if (renders || rearranges(dataset))
    spec.reader_bytes += largest.bytes + static_cast<std::int64_t>(picture_bytes(dataset));
  if (renders) spec.reader_bytes += Resizer::bytes(largest.sides, {height, width});
  return spec;
}

const std::vector<double>& mean_of(const Dataset& dataset, const AugmentConfig& config) {
  return config.mean.empty() ? dataset.mean() : config.mean;
}
const std::vector<double>& std_of(const Dataset& dataset, const AugmentConfig& config) {
  return config.std.empty() ? dataset.std() : config.std;
}

ImageSource::ImageSource(const Dataset& dataset, const AugmentConfig& config, std::uint64_t seed)
    : dataset_(dataset), config_(config), seed_(seed), spec_(source_spec(dataset, config)) {}

std::int64_t ImageSource::samples(Pass pass) const {
  return split_of(dataset_, pass).samples();
}

std::unique_ptr<SourceReader> ImageSource::reader(const Reads& reads) const {
  return std::make_unique<ImageReader>(dataset_, config_, seed_, reads.inputs);
}

}  // namespace carousel
