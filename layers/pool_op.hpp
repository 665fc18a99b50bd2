// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What kinds of layers that pool have in common.

#include "core/base/check.hpp"
#include "core/model/op.hpp"

namespace carousel::ops {

/// The window of a pooling. Error(usage) where one would lie in nothing but padding.
[[nodiscard]] inline Window pool_window_of(const GivenArguments& arguments,
                                           const Surroundings& around) {
  const Window window = window_of(arguments, around);
  if (2 * window.padding > window.kernel)
    fail(ExitCode::usage, "padding = {} is more than half of kernel = {}", window.padding,
         window.kernel);
  return window;
}

}  // namespace carousel::ops
