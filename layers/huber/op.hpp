// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a Huber loss was told.

namespace carousel::op {

struct Huber {
  double delta = 1;  // from which error on it grows with the error, not with its square
};

}  // namespace carousel::op
