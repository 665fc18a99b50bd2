// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What layer norms have in common.

namespace carousel {

/// That of torchvision's vision transformers, not the default of torch.nn.LayerNorm.
inline constexpr double layer_norm_epsilon = 1e-6;

}  // namespace carousel
