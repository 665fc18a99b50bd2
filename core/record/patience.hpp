// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Early stopping: whether a run ends because its evaluations get no better. A pure function of what
// was evaluated, so that a run that goes on and `verify` come to the same as the run itself.

#include <span>
#include <string>

#include "core/train/records.hpp"

namespace carousel {

/// Whether the best of these evaluations, by the first of the metrics or else by the loss, has
/// `patience` others behind it, or more. Of equals the first one is the best. A patience of 0 never
/// ends.
[[nodiscard]] bool is_out_of_patience(std::span<const EvaluationRecord> evaluations,
                                      std::span<const std::string> metrics, int patience);

}  // namespace carousel
