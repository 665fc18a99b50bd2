// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// In place of vendor.cpp in builds without such libraries.

#include "core/base/check.hpp"
#include "layers/vendor/vendor.hpp"

namespace carousel::vendor {

std::shared_ptr<VendorHandles> make_handles(const ExecutionSpace& /*exec*/) {
  return nullptr;
}

namespace {

[[noreturn]] void refuse(const LayerSpec& spec) {
  fail(ExitCode::internal, "{}: this program was built without the kernels of a vendor",
       spec.label());
}

}  // namespace

std::unique_ptr<Layer> linear(const LayerSpec& spec, int /*samples*/, const Engine& /*engine*/) {
  refuse(spec);
}

std::unique_ptr<Layer> patch_embedding(const LayerSpec& spec, int /*samples*/,
                                       const Engine& /*engine*/) {
  refuse(spec);
}

std::unique_ptr<Layer> convolution(const LayerSpec& spec, int /*samples*/,
                                   const Engine& /*engine*/) {
  refuse(spec);
}

std::unique_ptr<Layer> attention(const LayerSpec& spec, const Engine& /*engine*/) {
  refuse(spec);
}

}  // namespace carousel::vendor
