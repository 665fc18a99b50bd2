// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// torch.optim.SGD: weight decay is part of the gradient.

#include <string>
#include <vector>

#include "core/deck/row.hpp"

namespace carousel {

struct StageUpdate;  // core/train/update.hpp

struct Sgd {
  static constexpr const char* name = "sgd";
  static constexpr const char* doc = "PyTorch's SGD.";

  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;

  [[nodiscard]] static std::vector<Row<Sgd>> rows();
  [[nodiscard]] std::vector<NoEffect> without_effect() const;
  void check() const;
  [[nodiscard]] std::vector<std::string> states() const;
  void update(const StageUpdate& update) const;
};

}  // namespace carousel
