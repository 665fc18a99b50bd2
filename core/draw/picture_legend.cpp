// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/draw/picture_legend.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace carousel {
namespace {

constexpr double size = 12;  // of the font
constexpr double line_height = 22;
constexpr double box_width = 22;
constexpr double box_height = 14;

/// Places entries side by side, in a new line where they do not fit.
class Flow {
 public:
  Flow(SvgWriter& svg, double left, double right, double y)
      : svg_(svg), left_(left), right_(right), x_(left), y_(y) {}

  /// Room for a symbol with a text behind it; returns where the symbol begins.
  double add(double symbol_width, const std::string& text) {
    const double gap = symbol_width > 0 ? 7 : 0;
    const double width = symbol_width + gap + text_width(text, size);
    if (x_ > left_ && x_ + width > right_) next_line();
    const double x = x_;
    svg_.text("", x + symbol_width + gap, y_ + 4, text, Anchor::start, size);
    x_ += width + 22;
    return x;
  }
  void next_line() {
    if (x_ == left_) return;
    x_ = left_;
    y_ += line_height;
  }
  [[nodiscard]] double y() const { return y_; }

 private:
  SvgWriter& svg_;
  double left_;
  double right_;
  double x_;
  double y_;
};

void add_stages(SvgWriter& svg, const Legend& legend, Flow& flow) {
  const int stages = static_cast<int>(legend.colours.size());
  const auto pair = [&](int stage, const std::string& text) {
    const double x = flow.add(2 * box_width + 2, text);
    const double y = flow.y() - box_height / 2;
    svg.rectangle(fmt::format("f{}", stage), x, y, box_width, box_height);
    svg.rectangle(fmt::format("b{}", stage), x + box_width + 2, y, box_width, box_height);
  };
  flow.add(0, "forward light, backward strong:");
  // Of a ramp a few colours tell the rest.
  const int entries = std::min(stages, 7);
  for (int k = 0; k < entries; ++k) {
    const int stage = entries == 1 ? 0 : k * (stages - 1) / (entries - 1);
    pair(stage, fmt::format("stage {}", stage));
  }
}

void add_boxes(SvgWriter& svg, const Legend& legend, Flow& flow) {
  const std::string number = legend.numbers_are_stages ? "stage" : "micro-batch";
  const auto box = [&](const std::string& css_class, double cut, const std::string& mark,
                       const std::string& text) {
    const double x = flow.add(box_width, text);
    const double y = flow.y() - box_height / 2;
    svg.path(css_class,
             fmt::format("M{} {}h{}l{} {}V{}H{}z", pixels(x), pixels(y), pixels(box_width - cut),
                         pixels(cut), pixels(cut), pixels(y + box_height), pixels(x)));
    svg.text("", x + box_width / 2, flow.y() + 4, mark, Anchor::middle, 11);
  };
  if (legend.outlines)
    box("f0", 0, "2", fmt::format("{} 2, reads the step's own parameters θ(t)", number));
  if (legend.stale)
    box("f0", 6, legend.outlines ? "2′" : "", "corner cut: reads those of the step before, θ(t−1)");
  if (legend.outlines) box("f0 odd", 0, "", "outlined: odd training step");
  if (!legend.holds) return;
  const double x = flow.add(box_width, "idle, holds activations");
  svg.rectangle("idle", x, flow.y() - box_height / 2, box_width, box_height);
  svg.rectangle("f0", x, flow.y() - box_height / 8, box_width, box_height / 4);
}

std::string collective_name(ActionKind kind, int travel) {
  switch (kind) {
    case ActionKind::all_reduce:
      return travel == travel_kind(Payload::norms) ? "all-reduce of norms"
                                                   : "all-reduce of gradients";
    case ActionKind::reduce_scatter:
      return "reduce-scatter of gradients";
    case ActionKind::all_gather:
      return "all-gather of parameters";
    case ActionKind::reduce:
      return "reduction of gradients to the device with a ring";
    default:
      return "broadcast of parameters by the device with a ring";
  }
}

void add_travels(SvgWriter& svg, const Legend& legend, Flow& flow) {
  flow.add(0, fmt::format("Messages of training step {}{}:", legend.step, legend.only));
  for (const int kind : legend.arrows) {
    const TravelStyle& style = travel_styles()[kind];
    const double x = flow.add(34, style.name);
    svg.line(style.css_class, x, flow.y(), x + 34, flow.y());
  }
  if (legend.upright) flow.add(0, "(upright: no time step to hide in)");
  for (const auto& [kind, travel] : legend.bars) {
    const std::string& style = travel_styles()[travel].css_class;
    const double x = 5 + flow.add(10, collective_name(kind, travel));
    svg.line(fmt::format("bar-{}", style), x, flow.y() - 7, x, flow.y() + 7);
    svg.circle(fmt::format("bar-{}", style), x, flow.y() - 6, 2);
    const bool rooted = kind == ActionKind::reduce || kind == ActionKind::broadcast;
    svg.circle(fmt::format("{}-{}", rooted ? "root" : "bar", style), x, flow.y() + 5,
               rooted ? 3.5 : 2);
  }
}

}  // namespace

double draw_legend(SvgWriter& svg, const Legend& legend, double left, double right, double y) {
  Flow flow(svg, left, right, y + line_height / 2);
  add_stages(svg, legend, flow);
  flow.next_line();
  add_boxes(svg, legend, flow);
  if (!legend.arrows.empty() || !legend.bars.empty()) {
    flow.next_line();
    add_travels(svg, legend, flow);
  }
  return flow.y() + line_height;
}

}  // namespace carousel
