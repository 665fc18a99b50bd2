// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The grid of a schedule's picture: a box per pass, and lines for what travels between rows. What
// stands around it, titles and axes and the memory curve, is drawn elsewhere.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/draw/picture_style.hpp"
#include "core/draw/svg.hpp"
#include "core/draw/timeline.hpp"

namespace carousel {

inline constexpr double grid_left = 176;  // labels of rows
inline constexpr double grid_top = 128;   // title, training steps, numbers of time steps

/// Where rows and time steps stand.
struct PictureScale {
  double cell = 0;   // width of a time step
  double pitch = 0;  // height of a row
  double box = 0;    // height of what is in it

  explicit PictureScale(const Timeline& timeline)
      : cell(std::clamp(1000.0 / static_cast<double>(timeline.times), 3.0, 42.0)),
        pitch(std::clamp(800.0 / static_cast<double>(timeline.rows.size()), 6.0, 46.0)),
        box(pitch * (pitch > 14 ? 0.6 : 0.88)) {}

  /// Whether boxes have room for numbers and outlines.
  [[nodiscard]] bool roomy() const { return cell >= 10; }
  [[nodiscard]] double x(std::int64_t edge) const {
    return grid_left + cell * static_cast<double>(edge);
  }
  [[nodiscard]] double y(int row) const { return grid_top + pitch * row + (pitch - box) / 2; }
  [[nodiscard]] double middle(int row) const { return grid_top + pitch * (row + 0.5); }
};

/// What travels in the picture: messages and collectives of one training step.
struct PictureTravels {
  std::int64_t step = 0;
  Travels travels = {};
  bool thinned = false;  // too many: those of one stage and of the activations of one micro-batch
};

/// The training step, 0 or 1, more of whose messages lie within the window.
[[nodiscard]] PictureTravels picture_travels(const Schedule& schedule, const Timeline& timeline,
                                             int most_arrows);

/// The stage and the micro-batch that are followed where not all messages can be drawn.
[[nodiscard]] inline int followed(int count) {
  return count / 2;
}

/// Draws the boxes, what travels above them, and above that the numbers in the boxes.
class PictureGrid {
 public:
  PictureGrid(SvgWriter& svg, const PictureScale& scale, const Timeline& timeline,
              const std::vector<StageColour>& colours)
      : svg_(svg), scale_(scale), timeline_(timeline), colours_(colours) {}

  void draw(const Travels& travels, bool show_holding);

 private:
  void draw_holding();
  void draw_pass(const DrawnPass& pass);
  void draw_number(const DrawnPass& pass);
  void draw_step_borders();
  void draw_bar(const Bar& bar);
  void draw_arrow(const Arrow& arrow);

  SvgWriter& svg_;
  const PictureScale& scale_;
  const Timeline& timeline_;
  const std::vector<StageColour>& colours_;
};

}  // namespace carousel
