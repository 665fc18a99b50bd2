// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The legend of a schedule's picture: what its boxes, lines and colours mean. It explains only
// what is there.

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/draw/picture_style.hpp"
#include "core/draw/svg.hpp"

namespace carousel {

/// What a picture shows and its legend has to explain.
struct Legend {
  std::vector<StageColour> colours = {};           // [S]
  bool numbers_are_stages = false;                 // in boxes; otherwise micro-batches
  bool stale = false;                              // some box reads theta_{t-1}
  bool outlines = true;                            // boxes of odd training steps have one
  bool holds = false;                              // some device holds activations while it idles
  std::set<int> arrows = {};                       // kinds of travel
  bool upright = false;                            // some arrow starts and ends at one time
  std::set<std::pair<ActionKind, int>> bars = {};  // collectives, and kinds of travel
  std::int64_t step = 0;                           // of what travels
  std::string only = {};                           // which of the messages are drawn; empty: all
};

/// Draws it below `y`, no wider than from `left` to `right`; returns the y where it ends.
[[nodiscard]] double draw_legend(SvgWriter& svg, const Legend& legend, double left, double right,
                                 double y);

}  // namespace carousel
