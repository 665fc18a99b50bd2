// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// `[data]`: where samples come from and what the model sees of them.

#include <string>
#include <vector>

#include "core/data/augment.hpp"

namespace carousel {

struct DataConfig {
  std::string file;  // can be opened from where the command runs
  int workers = 1;   // threads of a device
  AugmentConfig augment;

  [[nodiscard]] static std::vector<Row<DataConfig>> rows();
};

}  // namespace carousel
