// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/upsample.hpp"

namespace carousel::kernels {

std::unique_ptr<Layer> upsample_linear(const LayerSpec& spec, int /*samples*/,
                                       const Engine& /*engine*/) {
  return std::make_unique<Upsample<LinearRows>>(spec);
}

}  // namespace carousel::kernels
