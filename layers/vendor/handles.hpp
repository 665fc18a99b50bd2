// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is inside core/engine's VendorHandles.

#include <cublasLt.h>

#include <memory>

#include "core/engine/engine.hpp"
#include "layers/vendor/graph_layers.hpp"

namespace carousel {

struct VendorHandles {
  explicit VendorHandles(const ExecutionSpace& exec);
  VendorHandles(const VendorHandles&) = delete;
  VendorHandles& operator=(const VendorHandles&) = delete;
  ~VendorHandles();

  cublasLtHandle_t cublas = nullptr;
  std::shared_ptr<vendor::Graphs> graphs;  // null in builds without cuDNN
};

}  // namespace carousel
