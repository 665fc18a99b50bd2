// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A data set of images with labels as the data of a deck.

#include "core/data/data_set.hpp"
#include "core/data/dataset.hpp"

namespace carousel {

class ImageSet final : public DataSet {
 public:
  explicit ImageSet(const std::string& path) : dataset_(path) {}

  [[nodiscard]] const std::string& name() const override { return dataset_.path(); }
  [[nodiscard]] std::int64_t samples(Pass pass) const override;
  [[nodiscard]] std::uint64_t fingerprint() const override { return dataset_.fingerprint(); }
  [[nodiscard]] std::vector<std::string> class_names() const override {
    return dataset_.class_names();
  }
  [[nodiscard]] DataRemarks remarks() const override;
  [[nodiscard]] std::vector<std::string> warnings_of_evaluation() const override;
  [[nodiscard]] TargetSpec target(const DataConfig& /*config*/) const override {
    return dataset_.classes();
  }
  [[nodiscard]] SourceSpec source_spec(const DataConfig& config) const override;
  [[nodiscard]] DataStatistics statistics(const DataConfig& config) const override;
  [[nodiscard]] DataStatistics count_of_statistics(const DataConfig& config) const override {
    return statistics(config);
  }
  [[nodiscard]] std::unique_ptr<Source> source(const DataConfig& config,
                                               std::uint64_t seed) const override;

  [[nodiscard]] const Dataset& dataset() const { return dataset_; }

 private:
  Dataset dataset_;
};

}  // namespace carousel
