// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What all numbers are multiplied by.

namespace carousel::op {

struct Scale {
  double factor = 1;
};

}  // namespace carousel::op
