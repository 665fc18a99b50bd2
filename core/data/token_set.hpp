// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A text in tokens as the data of a deck: a sample is a window of it, and its target the same one
// token later.

#include <memory>
#include <string>
#include <vector>

#include "core/data/data_set.hpp"
#include "core/data/token_file.hpp"

namespace carousel {

class TokenSet final : public DataSet {
 public:
  /// Error(usage) where a split has no window.
  explicit TokenSet(const DataConfig& config);

  [[nodiscard]] const std::string& name() const override { return file_.path(); }
  /// Windows side by side: in training as many as there are wherever the first one begins, in
  /// evaluations all. What is left at the end has no window.
  [[nodiscard]] std::int64_t samples(Pass pass) const override;
  [[nodiscard]] std::uint64_t fingerprint() const override;
  /// One, of all tokens.
  [[nodiscard]] std::vector<std::string> class_names() const override;
  [[nodiscard]] DataRemarks remarks() const override;
  [[nodiscard]] TargetSpec target(const DataConfig& config) const override;
  [[nodiscard]] SourceSpec source_spec(const DataConfig& config) const override;
  [[nodiscard]] DataStatistics statistics(const DataConfig& config) const override;
  [[nodiscard]] DataStatistics count_of_statistics(const DataConfig& config) const override {
    return statistics(config);
  }
  [[nodiscard]] std::unique_ptr<Source> source(const DataConfig& config,
                                               std::uint64_t seed) const override;

  [[nodiscard]] const TokenFile& file() const { return file_; }
  /// Of evaluations, the split that was asked for, or validation where there is one, else test.
  [[nodiscard]] const TokenRow& row(Pass pass) const;

 private:
  TokenFile file_;
  int context_;
  SplitName evaluated_;
};

/// "65 tokens, characters 0123456789abcdef": the same where tokens stand for the same texts. Of
/// thousands of them, records of what a network was shown have no more.
[[nodiscard]] std::string name_of_tokens(const TokenFile& file);

/// The token of /train at which the first window of an epoch begins: one of the first `context`, so
/// that epochs differ. floor(u context), where u = uniform01(random_key(seed, "windows"), epoch,
/// 0).
[[nodiscard]] std::int64_t first_window(std::uint64_t seed, std::int64_t epoch, int context);

}  // namespace carousel
