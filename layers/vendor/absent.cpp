// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// In place of vendor.cpp in builds without such libraries.

#include "core/base/check.hpp"
#include "layers/vendor/vendor.hpp"

namespace carousel::vendor {

std::shared_ptr<VendorHandles> make_handles(const ExecutionSpace& /*exec*/) {
  return nullptr;
}

std::unique_ptr<Layer> make_layer(const LayerSpec& spec, int /*samples*/,
                                  const Engine& /*engine*/) {
  fail(ExitCode::internal, "{}: this program was built without the kernels of a vendor",
       spec.label());
}

}  // namespace carousel::vendor
