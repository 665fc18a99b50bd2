// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/augment.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/random.hpp"
#include "core/deck/row.hpp"

namespace carousel {
namespace {

constexpr int attempts = 10;  // at boxes, as torchvision makes

/// As Python rounds: to even between two.
int round_to_int(double value) {
  return static_cast<int>(std::lrint(value));
}

/// Numbers of one sample.
class Draws {
 public:
  explicit Draws(const AugmentKey& key) : key_(key) {}

  [[nodiscard]] double uniform(int draw) const {
    return uniform01(
        random_key(key_.seed, "augment"), static_cast<std::uint64_t>(key_.epoch),
        64 * static_cast<std::uint64_t>(key_.sample) + static_cast<std::uint64_t>(draw));
  }
  [[nodiscard]] double between(int draw, double low, double high) const {
    return low + (high - low) * uniform(draw);
  }
  [[nodiscard]] int below(int draw, int count) const {
    return static_cast<int>(count * uniform(draw));
  }

 private:
  AugmentKey key_;
};

Box whole(PictureSize picture) {
  return {0, 0, static_cast<double>(picture.height), static_cast<double>(picture.width)};
}

/// That of torchvision's Resize of the shorter side.
PictureSize resized(const AugmentConfig& config, PictureSize picture) {
  if (config.size == 0) return picture;
  const int shorter = config.resize > 0 ? config.resize : config.size;
  const bool upright = picture.height >= picture.width;
  const auto [small, large] = std::minmax(picture.height, picture.width);
  const auto longer = static_cast<int>(static_cast<double>(shorter) * large / small);
  return upright ? PictureSize{longer, shorter} : PictureSize{shorter, longer};
}

PictureSize output(const AugmentConfig& config, PictureSize picture) {
  return config.size == 0 ? picture : PictureSize{config.size, config.size};
}

/// torchvision's RandomResizedCrop.get_params.
Box random_box(const AugmentConfig& config, PictureSize picture, const Draws& draws) {
  const double height = picture.height;
  const double width = picture.width;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const int draw = 4 + 4 * attempt;
    const double area = height * width * draws.between(draw, config.scale[0], config.scale[1]);
    const double ratio =
        std::exp(draws.between(draw + 1, std::log(config.ratio[0]), std::log(config.ratio[1])));
    const int w = round_to_int(std::sqrt(area * ratio));
    const int h = round_to_int(std::sqrt(area / ratio));
    if (w < 1 || w > picture.width || h < 1 || h > picture.height) continue;
    return {static_cast<double>(draws.below(draw + 2, picture.height - h + 1)),
            static_cast<double>(draws.below(draw + 3, picture.width - w + 1)),
            static_cast<double>(h), static_cast<double>(w)};
  }
  // The centre, as large as the ratios allow.
  int w = picture.width;
  int h = picture.height;
  if (width / height < config.ratio[0])
    h = std::clamp(round_to_int(w / config.ratio[0]), 1, h);
  else if (width / height > config.ratio[1])
    w = std::clamp(round_to_int(h * config.ratio[1]), 1, w);
  return {std::floor((picture.height - h) / 2.0), std::floor((picture.width - w) / 2.0),
          static_cast<double>(h), static_cast<double>(w)};
}

}  // namespace

View plain_view(const AugmentConfig& config, PictureSize picture) {
  const PictureSize size = resized(config, picture);
  const PictureSize shown = output(config, picture);
  return {.box = whole(picture),
          .size = size,
          .crop = {round_to_int((size.height - shown.height) / 2.0),
                   round_to_int((size.width - shown.width) / 2.0), shown}};
}

View augmented_view(const AugmentConfig& config, PictureSize picture, const AugmentKey& key) {
  const Draws draws(key);
  View view = plain_view(config, picture);
  view.mirrored = draws.uniform(0) < config.flip;
  if (config.crop == CropKind::random) {
    const int padding = config.padding;
    const auto place = [&](int draw, int all, int shown) {
      return draws.below(draw, all + 2 * padding - shown + 1) - padding;
    };
    view.crop.top = place(1, view.size.height, view.crop.size.height);
    view.crop.left = place(2, view.size.width, view.crop.size.width);
  } else if (config.crop == CropKind::resized) {
    view.box = random_box(config, picture, draws);
    view.size = view.crop.size;
    view.crop.top = view.crop.left = 0;
  }
  return view;
}

FieldPart plain_part(const AugmentConfig& config, PictureSize field) {
  const PictureSize size = config.size == 0 ? field
                                            : PictureSize{std::min(config.size, field.height),
                                                          std::min(config.size, field.width)};
  return {.crop = {(field.height - size.height) / 2, (field.width - size.width) / 2, size}};
}

FieldPart augmented_part(const AugmentConfig& config, PictureSize field, const AugmentKey& key) {
  const Draws draws(key);
  FieldPart part = plain_part(config, field);
  part.mirrored = draws.uniform(0) < config.flip;
  if (config.crop != CropKind::random) return part;
  part.crop.top = draws.below(1, field.height - part.crop.size.height + 1);
  part.crop.left = draws.below(2, field.width - part.crop.size.width + 1);
  return part;
}

std::vector<Row<AugmentConfig>> AugmentConfig::rows() {
  // Of fields, parts are cut out and mirrored; nothing is resized.
  const Condition images = {"data.kind", {"images"}};
  const KeyTraits of_fields = only_with("data.kind", {"images", "arrays"});
  KeyTraits of_images;
  of_images.only_with = {images};
  KeyTraits random = only_with("data.augment.crop", {"random"});
  random.only_with.push_back(images);
  KeyTraits resized = only_with("data.augment.crop", {"resized"});
  resized.only_with.push_back(images);
  KeyTraits statistic = optional_key;
  statistic.only_with = {images};
  return {
      key("size", &AugmentConfig::size, within(0, 1 << 14, "pixels"),
          "Side of the square images that the model sees. 0: pictures as they are, which then must "
          "have one size.",
          of_fields),
      key("resize", &AugmentConfig::resize, within(0, 1 << 14, "pixels"),
          "Shorter side that pictures are resized to before size is cut out of their centre, or by "
          "crop = random. 0: size. With crop = resized it is of evaluations only.",
          of_images),
      key("crop", &AugmentConfig::crop, one_of<CropKind>(),
          "What training sees of a picture; evaluations see its centre. random: any place, after "
          "padding. resized: a box of random area, aspect ratio and place, resized to size.",
          of_fields),
      key("padding", &AugmentConfig::padding, within(0, 1 << 14, "pixels"),
          "Zeros around a picture on every side before a random crop.", random),
      key("scale", &AugmentConfig::scale, Allowed{.min = 0, .max = 1, .open_min = true},
          "Least and greatest share of a picture's area.", resized),
      key("ratio", &AugmentConfig::ratio, above(0),
          "Least and greatest aspect ratio, width / height.", resized),
      key("flip", &AugmentConfig::flip, zero_to_one, "Probability that training mirrors a picture.",
          of_fields),
      key("mean", &AugmentConfig::mean, anything,
          "Of each channel, of values from 0 to 1, which is taken off all pixels. Instead of the "
          "data set's, such as for imported weights that were trained on other images.",
          statistic),
      key("std", &AugmentConfig::std, above(0),
          "Of each channel, by which all pixels are divided. Likewise.", statistic),
  };
}

}  // namespace carousel
