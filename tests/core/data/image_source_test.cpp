// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// A data set of images as a source: what it says of its tensors, labels as targets, and what
// readers allocate. Pixels are axes_test's and shown_images_test's.

#include "core/data/image_source.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <span>

#include "tests/core/data/small_dataset.hpp"
#include "tests/core/support.hpp"
#include "tests/layers/heap_counter.hpp"

namespace carousel {
namespace {

using test::HeapCounter;
using testing::failure;

class ImageSourceTest : public ::testing::Test {
 protected:
  static std::string written(const std::string& path) {
    testing::SmallDataset().write(path);
    return path;
  }

  const testing::TemporaryFolder folder_;
  const Dataset dataset_{written(folder_ / "a.h5")};
  const AugmentConfig plain_ = {};
  const ImageSource source_{dataset_, plain_, 1};
};

TEST_F(ImageSourceTest, HasImagesAndLabels) {
  const SourceSpec& spec = source_.spec();
  EXPECT_EQ(spec.input, (TensorSpec{NumberType::uint8, {2, 3, 4}}));
  EXPECT_EQ(spec.input.bytes(), 24);
  EXPECT_EQ(spec.target, (TensorSpec{NumberType::int32, {1, 1, 1}}));
  EXPECT_EQ(spec.target.bytes(), 4);
  EXPECT_EQ(spec.shown, (SampleShape{2, 3, 4}));
  EXPECT_EQ(source_.samples(Pass::training), 50);
  EXPECT_EQ(source_.samples(Pass::evaluation), 7);
}

TEST_F(ImageSourceTest, TargetsAreTheLabelsOfTheirHalf) {
  const std::unique_ptr<SourceReader> reader = source_.reader({.inputs = false});
  for (const Pass pass : {Pass::training, Pass::evaluation}) {
    const Split& split = pass == Pass::training ? dataset_.train() : dataset_.test();
    for (std::int64_t k = 0; k < split.samples(); ++k) {
      std::int32_t label = -1;
      reader->read_target(pass, 3, k, std::as_writable_bytes(std::span(&label, 1)));
      EXPECT_EQ(label, split.labels()[static_cast<std::size_t>(k)]);
    }
  }
}

TEST_F(ImageSourceTest, ReadersOfTargetsHoldNothing) {
  // Pictures are decoded and resized, which takes memory.
  const Dataset pictures(CAROUSEL_SOURCE "/tests/reference/views.h5");
  const AugmentConfig resized = {.size = 24, .crop = CropKind::resized};
  const ImageSource source(pictures, resized, 1);
  const HeapCounter heap;
  const std::unique_ptr<SourceReader> targets = source.reader({.inputs = false});
  EXPECT_EQ(heap.allocations(), 1) << "the reader itself";
  std::int32_t label = -1;
  targets->read_target(Pass::training, 0, 0, std::as_writable_bytes(std::span(&label, 1)));
  EXPECT_EQ(heap.allocations(), 1);
  const std::unique_ptr<SourceReader> inputs = source.reader({.targets = false});
  EXPECT_GT(heap.allocations(), 4);
  heap.pause();
  std::vector<std::byte> image(static_cast<std::size_t>(source.spec().input.bytes()));
  EXPECT_FALSE(failure(ExitCode::internal, [&] {
                 (void)targets->read_input(Pass::training, 0, 0, image);
               }).empty());
}

TEST(NumberType, IsReadAsItIsWritten) {
  for (const NumberType type : {NumberType::uint8, NumberType::int32})
    EXPECT_EQ(find_value<NumberType>(to_string(type)), type);
  EXPECT_EQ(find_value<NumberType>("int8"), std::nullopt);
  EXPECT_EQ(to_string(TensorSpec{NumberType::int32, {1, 2, 3}}), "int32 1x2x3");
}

}  // namespace
}  // namespace carousel
