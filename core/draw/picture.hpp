// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Draws a schedule as an SVG picture, the way the paper draws it (arXiv 2403.08837, figures 1 to
// 3): its first training steps, what travels, the memory curve. It only reads actions.

#include <cstdint>
#include <string>

#include "core/plan/schedule.hpp"

namespace carousel {

struct PictureSpec {
  int most_rows = 128;            // further ones are counted, not drawn
  std::int64_t most_times = 512;  // time steps
  int most_arrows = 150;          // otherwise those of one stage and one micro-batch
};

/// A whole SVG file: no scripts, no links, the same text for the same schedule. One row per device,
/// or per micro-batch where they share one. Every forward and backward is one element whose title
/// reads "step 1, micro-batch 2, forward of stage 3 with version 1".
[[nodiscard]] std::string draw_svg(const Schedule& schedule, const PictureSpec& spec = {});

}  // namespace carousel
