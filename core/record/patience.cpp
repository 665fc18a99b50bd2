// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/record/patience.hpp"

#include <limits>

namespace carousel {

bool is_out_of_patience(std::span<const EvaluationRecord> evaluations,
                        std::span<const std::string> metrics, int patience) {
  double best = -std::numeric_limits<double>::infinity();
  int behind = 0;
  for (const EvaluationRecord& evaluation : evaluations) {
    const double score = score_of(metrics, evaluation.loss, evaluation.metrics);
    behind = score > best ? 0 : behind + 1;
    if (score > best) best = score;
  }
  return patience > 0 && behind >= patience;
}

}  // namespace carousel
