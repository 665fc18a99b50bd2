// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which layers a vendor's libraries compute, and what memory they work with: a part of the plan, so
// that it is made without these libraries.

#include "core/model/layer_spec.hpp"

namespace carousel {

/// What libraries may take for a product: NVIDIA advises 32 MiB for sm_90 (cuBLAS 13, section
/// "Workspace").
inline constexpr std::int64_t product_workspace = std::int64_t{32} << 20;

/// Leaves a layer to the vendor, in the formats that it has, where that has kernels for it.
void choose_vendor(LayerSpec& layer);

}  // namespace carousel
