// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// torch.optim.AdamW (Loshchilov & Hutter 2019, arXiv 1711.05101).

#include <string>
#include <vector>

#include "core/deck/row.hpp"

namespace carousel {

struct StageUpdate;  // core/train/update.hpp

struct AdamW {
  static constexpr const char* name = "adamw";
  static constexpr const char* doc = "PyTorch's AdamW, there with a weight decay of 0.01.";

  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;

  [[nodiscard]] static std::vector<Row<AdamW>> rows();
  [[nodiscard]] std::vector<std::string> states() const { return {"exp_avg", "exp_avg_sq"}; }
  void update(const StageUpdate& update) const;
};

}  // namespace carousel
