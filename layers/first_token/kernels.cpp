// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/engine/layer.hpp"
#include "layers/channels_last/first_token.hpp"
#include "layers/first_token/first_token.hpp"

namespace carousel::kernels {

std::unique_ptr<Layer> first_token(const LayerSpec& spec, int /*samples*/,
                                   const Engine& /*engine*/) {
  if (spec.kernels == Kernels::channels_last)
    return std::make_unique<channels_last::FirstToken>(spec);
  return std::make_unique<FirstToken>(spec);
}

}  // namespace carousel::kernels
