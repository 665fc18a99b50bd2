// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/vendor/vendor.hpp"

#include "core/base/check.hpp"
#include "layers/patch_embedding/op.hpp"
#include "layers/vendor/graph_layers.hpp"
#include "layers/vendor/handles.hpp"
#include "layers/vendor/linear.hpp"
#include "layers/vendor/patch_embedding.hpp"

namespace carousel {

VendorHandles::VendorHandles(const ExecutionSpace& exec) : graphs(vendor::make_graphs(exec)) {
  const cublasStatus_t status = cublasLtCreate(&cublas);
  if (status != CUBLAS_STATUS_SUCCESS)
    fail(ExitCode::internal, "cublasLtCreate: {}", cublasLtGetStatusString(status));
}

VendorHandles::~VendorHandles() {
  cublasLtDestroy(cublas);
}

namespace vendor {

std::shared_ptr<VendorHandles> make_handles(const ExecutionSpace& exec) {
  return std::make_shared<VendorHandles>(exec);
}

std::unique_ptr<Layer> linear(const LayerSpec& spec, int samples, const Engine& engine) {
  return std::make_unique<Linear>(spec, samples, engine);
}

std::unique_ptr<Layer> patch_embedding(const LayerSpec& spec, int samples, const Engine& engine) {
  return std::make_unique<PatchEmbedding>(spec, samples, engine);
}

}  // namespace vendor
}  // namespace carousel
