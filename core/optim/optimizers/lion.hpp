// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lion (Chen et al. 2023, arXiv 2302.06675, algorithm 2): every number moves by the rate, in the
// direction of a mean of gradients.

#include <string>
#include <vector>

#include "core/deck/row.hpp"

namespace carousel {

struct StageUpdate;  // core/train/update.hpp

struct Lion {
  static constexpr const char* name = "lion";
  static constexpr const char* doc =
      "steps by the sign of a mean of gradients, with rates about a tenth of those of adamw.";

  double beta1 = 0.9;
  double beta2 = 0.99;

  [[nodiscard]] static std::vector<Row<Lion>> rows();
  [[nodiscard]] std::vector<std::string> states() const { return {"exp_avg"}; }
  void update(const StageUpdate& update) const;
};

}  // namespace carousel
