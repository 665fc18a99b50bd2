// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which part of a picture a sample shows, as numbers: torchvision's Resize, CenterCrop, RandomCrop,
// RandomResizedCrop and RandomHorizontalFlip. What is random is a pure function of (seed, epoch,
// sample). It touches no pixels.
//
// Draw k of sample s in an epoch is uniform01(random_key(seed, "augment"), epoch, 64 s + k), see
// core/base/random.hpp; of n equally likely numbers 0 .. n - 1 a draw u chooses floor(n u).
//   k = 0            mirrored, if it is below `flip`
//   k = 1, 2         crop = random: top and left, among all places in the padded picture
//   k = 4 + 4 a ...  crop = resized, attempt a = 0 .. 9: share of the area, logarithm of the aspect
//                    ratio, both uniform within their bounds, then top and left of the box, of
//                    round(sqrt(area ratio)) by round(sqrt(area / ratio)) pixels; the first box
//                    within the picture counts

#include <cstdint>
#include <vector>

#include "core/base/words.hpp"
#include "core/data/picture.hpp"

namespace carousel {

template <class Struct>
struct Row;

/// How training chooses its part of a picture. centre: as evaluations do. random: any place.
/// resized: any box of some area and aspect ratio, which is resized.
enum class CropKind : std::uint8_t { centre, random, resized };
constexpr auto words_of(CropKind) {
  return all_words<CropKind>("centre", "random", "resized");
}

/// `[data.augment]`.
struct AugmentConfig {
  int size = 0;    // side of the images that the model sees; 0: pictures as they are
  int resize = 0;  // shorter side of a picture before its crop; 0: size
  CropKind crop = CropKind::centre;
  int padding = 0;                        // of random crops, pixels of zeros on every side
  std::vector<double> scale = {0.08, 1};  // of resized crops, least and greatest share of the area
  std::vector<double> ratio = {0.75, 1.3333333333333333};  // likewise, width / height
  double flip = 0;                // probability that training mirrors a picture
  std::vector<double> mean = {};  // per channel, of values in [0, 1]; empty: the data set's
  std::vector<double> std = {};   // likewise

  [[nodiscard]] static std::vector<Row<AugmentConfig>> rows();
};

/// A part of a picture, in pixels, not all of them whole.
struct Box {
  double top = 0;
  double left = 0;
  double height = 0;
  double width = 0;
  bool operator==(const Box&) const = default;
};

/// Whole pixels, of which some may lie outside of a picture.
struct Crop {
  int top = 0;
  int left = 0;
  PictureSize size;
  bool operator==(const Crop&) const = default;
};

/// What the model sees of a picture: `box` of it, resized to `size`, of that `crop`, and this
/// mirrored or not.
struct View {
  Box box;
  PictureSize size;
  Crop crop;
  bool mirrored = false;
  bool operator==(const View&) const = default;
};

/// What the random numbers of a sample are drawn for.
struct AugmentKey {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t sample = 0;
};

/// Of evaluations: the picture resized, and its centre.
[[nodiscard]] View plain_view(const AugmentConfig& config, PictureSize picture);
/// The part of a field, which nothing resizes, that evaluations see, its centre, or training.
struct FieldPart {
  Crop crop;
  bool mirrored = false;
};
[[nodiscard]] FieldPart plain_part(const AugmentConfig& config, PictureSize field);
[[nodiscard]] FieldPart augmented_part(const AugmentConfig& config, PictureSize field,
                                       const AugmentKey& key);
/// Of training.
[[nodiscard]] View augmented_view(const AugmentConfig& config, PictureSize picture,
                                  const AugmentKey& key);

}  // namespace carousel
