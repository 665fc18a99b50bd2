// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the kernels of one compute queue of a device are made with. It owns nothing and knows no
// vendor.

#include <cstddef>
#include <span>

#include "core/base/view.hpp"

namespace carousel {

/// Handles of vendor libraries; layers/ alone knows what is inside.
struct VendorHandles;

struct Engine {
  ExecutionSpace exec;
  std::span<std::byte> workspace = {};  // device memory, free again when a call is over
  VendorHandles* vendor = nullptr;      // null where no vendor's kernels are used
};

}  // namespace carousel
