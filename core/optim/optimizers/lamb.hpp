// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// LAMB (You et al. 2020, arXiv 1904.00962, algorithm 2): AdamW's direction, whose length is made
// that of the parameter which it changes, tensor by tensor.

#include <cstdint>
#include <string>
#include <vector>

#include "core/deck/row.hpp"
#include "core/optim/norm_blocks.hpp"

namespace carousel {

struct StageUpdate;  // core/train/update.hpp

struct Lamb {
  static constexpr const char* name = "lamb";
  static constexpr const char* doc =
      "for large steps: adamw's direction as long as the parameter itself, tensor by tensor.";

  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;

  [[nodiscard]] static std::vector<Row<Lamb>> rows();
  [[nodiscard]] std::vector<std::string> states() const { return {"exp_avg", "exp_avg_sq"}; }
  /// Two doubles for each block and two for the tensor.
  [[nodiscard]] static std::int64_t workspace_bytes(std::int64_t largest_tensor) {
    return 2 * (norm_bytes(largest_tensor) + std::int64_t{sizeof(double)});
  }
  void update(const StageUpdate& update) const;
};

}  // namespace carousel
