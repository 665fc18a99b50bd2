// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How far queries and keys are turned.

namespace carousel::op {

struct Rotary {
  int heads = 1;
  double base = 10000;
};

}  // namespace carousel::op
