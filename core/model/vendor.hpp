// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which layers a vendor's libraries compute, and which others then have all channels side by side,
// as those want them; and what memory both work with. It is a part of the plan, so that it is made
// without these libraries.

#include "core/model/layer_spec.hpp"

namespace carousel {

/// What libraries may take for a product: NVIDIA advises 32 MiB for sm_90 (cuBLAS 13, section
/// "Workspace").
inline constexpr std::int64_t product_workspace = std::int64_t{32} << 20;

/// Sums of a batch norm over chunks of rows, of which there are the fewer the more channels there
/// are: so many teams of 32 channels, with two doubles each.
inline constexpr int norm_teams = 1024;
inline constexpr int norm_slab = 32;
inline constexpr std::int64_t norm_workspace =
    std::int64_t{norm_teams} * norm_slab * 2 * sizeof(double);

/// Marks a layer that has kernels of ours for tensors as they are stored, all of whose channels lie
/// side by side.
void choose_channels_last(LayerSpec& layer);

/// Leaves a layer to the vendor, in the formats that it has, where that has kernels for it.
void choose_vendor(LayerSpec& layer);

}  // namespace carousel
