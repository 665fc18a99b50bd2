// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether a model sees what it was trained to see: what deck, data set and weights say of inputs,
// brought together. It reads no pixels.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/run_config.hpp"
#include "core/data/data_set.hpp"
#include "core/model/model.hpp"
#include "core/state/checkpoint.hpp"

namespace carousel {

/// How a deck makes inputs of a data set. Error(usage) with the place in the deck where it cannot.
[[nodiscard]] InputRecord inputs_of(const RunConfig& config, const DataSet& dataset);
/// The same without a look at the numbers: statistics that the deck does not give are 0.
[[nodiscard]] InputRecord planned_inputs(const RunConfig& config, const DataSet& dataset);

/// That a checkpoint of an earlier version does not say what a data set could be compared with.
[[nodiscard]] std::string untold_inputs(const std::string& checkpoint, const std::string& dataset);

/// Error(usage) where inputs are not those that a checkpoint was trained with; `subject` begins the
/// line, and `advice` ends it, or `on_statistics`, if there is such, where mean or std alone
/// differ. A checkpoint that does not tell has nothing to compare.
void check_inputs(const InputRecord& inputs, const Checkpoint& checkpoint,
                  const std::string& subject, const std::string& advice,
                  const std::string& on_statistics = {});

/// Whether a key says statistics that a checkpoint tells as well, so that these are compared.
[[nodiscard]] bool is_statistic(std::string_view key);

/// Mean and standard deviation of a record, unless the deck gives its own; `origin` is where they
/// are from.
void take_statistics(RunConfig& config, const InputRecord& known, const std::string& origin);

/// Lets a run that began with weights, or with arrays, go on with the statistics that it began
/// with, which its checkpoint has and its deck may not have.
void keep_statistics(RunConfig& config, const Checkpoint& checkpoint);

/// Names of the tensors that a training with train.start begins anew.
[[nodiscard]] std::set<std::string> begun_anew(const RunConfig& config, const Model& model);

/// Lets a training begin with weights as they were trained: with their statistics, unless the deck
/// gives its own. Error(usage) where they are of other classes and the last layer of the model does
/// not begin anew. Returns remarks for the user, a line each. `known` is what the file of the
/// weights tells, `path` that file.
[[nodiscard]] std::vector<std::string> begin_with_weights(RunConfig& config, const DataSet& dataset,
                                                          const std::optional<InputRecord>& known,
                                                          const std::string& path,
                                                          const Model& model);

}  // namespace carousel
