// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// What a model sees of pictures is what torchvision shows with the same random numbers; see
// make_view_fixtures.py. From the file to the kernel, with any number of threads. Pillow 12 and
// later resize columns before rows where that is less work, which changes some values by one.

#include "core/train/shown_images.hpp"

#include <gtest/gtest.h>

#include "core/data/dataset_writer.hpp"
#include "core/data/image_source.hpp"
#include "core/data/prefetcher.hpp"
#include "tests/core/support.hpp"
#include "tests/layers/device.hpp"

namespace carousel {
namespace {

constexpr std::uint64_t seed = 7;  // of random_numbers.py
const std::string views = CAROUSEL_SOURCE "/tests/reference/views.h5";
constexpr std::int64_t epochs[] = {0, 1, 5};

/// A configuration as the script keeps it.
AugmentConfig configuration(const hdf5::File& file, const std::string& name) {
  AugmentConfig config;
  const auto integer = [&](const char* key, int& value) {
    if (file.has(name, key)) value = static_cast<int>(file.integer(name, key));
  };
  integer("size", config.size);
  integer("resize", config.resize);
  integer("padding", config.padding);
  if (file.has(name, "flip")) config.flip = file.reals(name, "flip").front();
  if (file.has(name, "scale")) config.scale = file.reals(name, "scale");
  if (file.has(name, "ratio")) config.ratio = file.reals(name, "ratio");
  if (file.has(name, "crop"))
    config.crop = file.string(name, "crop") == "resized" ? CropKind::resized : CropKind::random;
  return config;
}

/// What the kernel makes of a batch, where a level is its number.
std::vector<real> shown(const SourceSpec& source, const Batch& batch) {
  std::vector<real> numbers(static_cast<std::size_t>(source.shown.channels) * 256);
  for (std::size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<real>(k % 256);
  const auto on_device = [](const auto& values) {
    return test::to_device(std::vector(values.begin(), values.end()));
  };
  const auto* first = reinterpret_cast<const std::uint8_t*>(batch.inputs.data());
  const auto images = on_device(std::span(first, batch.inputs.size()));
  const auto parts = on_device(batch.parts);
  const auto levels = test::to_device(numbers);
  const auto count = static_cast<int>(batch.samples.size());
  const test::Device<real> result("carousel::test::shown", count * source.shown.size());
  show_images(ExecutionSpace(), source, count, images.data(), parts.data(), levels.data(),
              result.data());
  Kokkos::fence("carousel::test::shown");
  return test::to_host(result);
}

/// Compares a pass with what is expected of each sample, [samples, shape of the image]; values may
/// be off by `most`.
void expect_pass(Prefetcher& prefetcher, const std::vector<BatchRequest>& requests,
                 std::span<const std::uint8_t> expected, int most) {
  const SourceSpec& source = prefetcher.source().spec();
  const auto image = static_cast<std::size_t>(source.shown.size());
  prefetcher.start(requests);
  for (const BatchRequest& request : requests) {
    const Batch& batch = prefetcher.acquire(request.step, request.micro_batch);
    const std::vector<real> values = shown(source, batch);
    for (std::size_t k = 0; k < batch.samples.size(); ++k) {
      const auto wanted = expected.subspan(static_cast<std::size_t>(batch.samples[k]) * image);
      int largest = 0;
      for (std::size_t x = 0; x < image; ++x)
        largest = std::max(largest, std::abs(static_cast<int>(values[k * image + x]) - wanted[x]));
      EXPECT_LE(largest, most) << "sample " << batch.samples[k] << " of epoch " << request.epoch;
    }
    prefetcher.release();
  }
}

/// All epochs of the script.
void expect_training(Prefetcher& prefetcher, std::int64_t samples,
                     std::span<const std::uint8_t> expected, int most) {
  const std::size_t bytes = expected.size() / std::size(epochs);
  for (std::size_t k = 0; k < std::size(epochs); ++k) {
    const BatchRequest all = {.pass = Pass::training,
                              .step = 0,
                              .micro_batch = 0,
                              .epoch = epochs[k],
                              .first = 0,
                              .count = static_cast<int>(samples)};
    expect_pass(prefetcher, {all}, expected.subspan(k * bytes, bytes), most);
  }
}

class Pictures : public ::testing::TestWithParam<std::string> {};

TEST_P(Pictures, AreThoseOfTorchvision) {
  const hdf5::File file = hdf5::File::open(views);
  const std::string name = "/cases/" + GetParam();
  const AugmentConfig config = configuration(file, name);
  const Dataset dataset(views);
  const std::int64_t samples = dataset.train().samples();
  const auto train = file.read<std::uint8_t>(name + "/train");
  const auto test = file.read<std::uint8_t>(name + "/test");
  const ImageSource source(dataset, config, seed);
  for (const int workers : {1, 3}) {
    Prefetcher prefetcher({.source = source,
                           .seed = seed,
                           .largest_batch = static_cast<int>(samples),
                           .workers = workers});
    expect_pass(prefetcher, evaluation_requests(dataset.test().samples(), 3, 0), test, 1);
    expect_training(prefetcher, samples, train, 1);
  }
}

TEST(Views, OfPixelsAreCutOutByTheDevice) {
  constexpr SampleShape shape = {3, 20, 22};
  constexpr int samples = 7;
  const testing::TemporaryFolder folder;
  DatasetSpec spec = {
      .shape = shape, .class_names = {"only"}, .source = "a test", .licence = "none"};
  spec.labels = {std::vector<int>(samples), std::vector<int>(1)};
  DatasetWriter writer(folder / "a.h5", spec);
  std::vector<std::uint8_t> image(static_cast<std::size_t>(shape.size()));
  for (std::int64_t k = 0; k < samples; ++k) {
    for (std::int64_t x = 0; x < shape.size(); ++x)
      image[static_cast<std::size_t>(x)] =
          static_cast<std::uint8_t>(37 * (k * shape.size() + x) % 251);
    writer.put(Half::train, k, image);
  }
  writer.put(Half::test, 0, image);
  writer.finish();
  const Dataset dataset(folder / "a.h5");
  const AugmentConfig config = {.crop = CropKind::random, .padding = 4, .flip = 0.4};
  const ImageSource source(dataset, config, seed);
  Prefetcher prefetcher({.source = source, .seed = seed, .largest_batch = samples});
  expect_training(prefetcher, samples, hdf5::File::open(views).read<std::uint8_t>("/pixels"), 0);
  expect_pass(prefetcher, evaluation_requests(1, 1, 0), image, 0);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Pictures,
                         ::testing::ValuesIn(hdf5::File::open(views).children("/cases")),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace carousel
