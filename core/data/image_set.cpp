// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/image_set.hpp"

#include "core/data/black_images.hpp"
#include "core/data/class_sizes.hpp"
#include "core/data/image_source.hpp"

namespace carousel {

std::int64_t ImageSet::samples(Pass pass) const {
  return pass == Pass::training ? dataset_.train().samples() : dataset_.test().samples();
}

DataRemarks ImageSet::remarks() const {
  const std::span<const int> labels = dataset_.train().labels();
  DataRemarks remarks{.targets = describe_classes(dataset_.class_names(), labels)};
  for (std::string& warning :
       std::vector{missing_classes(dataset_.class_names(), labels), black_images(dataset_)})
    if (!warning.empty()) remarks.warnings.push_back(std::move(warning));
  return remarks;
}

std::vector<std::string> ImageSet::warnings_of_evaluation() const {
  std::string black = black_test_images(dataset_);
  if (black.empty()) return {};
  return {std::move(black)};
}

SourceSpec ImageSet::source_spec(const DataConfig& config) const {
  return carousel::source_spec(dataset_, config.augment);
}

DataStatistics ImageSet::statistics(const DataConfig& config) const {
  return {.mean = mean_of(dataset_, config.augment), .std = std_of(dataset_, config.augment)};
}

std::unique_ptr<Source> ImageSet::source(const DataConfig& config, std::uint64_t seed) const {
  return std::make_unique<ImageSource>(dataset_, config.augment, seed);
}

}  // namespace carousel
