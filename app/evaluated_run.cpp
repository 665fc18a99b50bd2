// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/evaluated_run.hpp"

namespace carousel {
namespace {

/// Takes the data from elsewhere than the training did, or another part of them.
void choose_data(RunConfig& config, const std::string& dataset, const std::string& split) {
  DataConfig& data = config.data;
  if (data.kind == DataKind::images) {
    if (!split.empty()) fail(ExitCode::usage, "--split is of arrays; images are those of /test");
    if (!dataset.empty()) data.file = dataset;
    return;
  }
  if (!split.empty()) data.evaluated = value_named<SplitName>(split);
  if (data.kind == DataKind::tokens) {
    if (!dataset.empty()) data.tokens = dataset;
    return;
  }
  if (dataset.empty()) {
    // What no step of the training and none of its choices has seen.
    if (split.empty() && (data.test_fraction > 0 || !data.test_files.empty()))
      data.evaluated = SplitName::test;
    return;
  }
  data.files = {dataset};
  if (!split.empty()) return;
  data.whole = true;
  data.validation_files.clear();
  data.test_files.clear();
}

}  // namespace

RunConfig evaluated_run(const Checkpoint& checkpoint, const std::string& dataset,
                        const std::string& split) {
  RunConfig config = as_bad_data(
      [&] { return parse_run_config(checkpoint.info().deck, checkpoint.path() + ", deck", {}); });
  choose_data(config, dataset, split);
  config.parallel = ParallelConfig{.rule = RuleKind::dp};
  config.train.optimizer = {};  // which keeps nothing
  return config;
}

}  // namespace carousel
