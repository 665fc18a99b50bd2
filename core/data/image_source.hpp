// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A data set of images as a source: inputs are decoded, cropped and resized to one shape, targets
// are labels. What is left to be done with an image on the device is a few numbers.

#include <cstdint>
#include <memory>
#include <vector>

#include "core/data/augment.hpp"
#include "core/data/dataset.hpp"
#include "core/data/source.hpp"

namespace carousel {

/// Error(usage), beginning with the name of a key, where the data set cannot be shown so.
[[nodiscard]] SourceSpec source_spec(const Dataset& dataset, const AugmentConfig& config);

/// Mean or standard deviation per channel: those of the configuration, if it has any.
[[nodiscard]] const std::vector<double>& mean_of(const Dataset& dataset,
                                                 const AugmentConfig& config);
[[nodiscard]] const std::vector<double>& std_of(const Dataset& dataset,
                                                const AugmentConfig& config);

class ImageSource final : public Source {
 public:
  /// Data set and configuration outlive it; the seed is that of random crops and mirror images.
  /// Throws as source_spec().
  ImageSource(const Dataset& dataset, const AugmentConfig& config, std::uint64_t seed);

  [[nodiscard]] const SourceSpec& spec() const override { return spec_; }
  [[nodiscard]] std::int64_t samples(Pass pass) const override;
  [[nodiscard]] std::unique_ptr<SourceReader> reader(const Reads& reads) const override;

 private:
  const Dataset& dataset_;
  const AugmentConfig& config_;
  std::uint64_t seed_;
  SourceSpec spec_;
};

}  // namespace carousel
