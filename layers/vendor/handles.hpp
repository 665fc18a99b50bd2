// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is inside core/engine's VendorHandles.

#include <cublasLt.h>

#include "core/engine/engine.hpp"

namespace carousel {

struct VendorHandles {
  VendorHandles();
  VendorHandles(const VendorHandles&) = delete;
  VendorHandles& operator=(const VendorHandles&) = delete;
  ~VendorHandles();

  cublasLtHandle_t cublas = nullptr;
};

}  // namespace carousel
