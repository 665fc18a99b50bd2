// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/draw/picture_style.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace carousel {
namespace {

struct Colour {
  double red = 0;
  double green = 0;
  double blue = 0;
};

/// Okabe and Ito without yellow, which is no strong colour on paper; neighbours differ in grey.
constexpr Colour okabe_ito[] = {{0, 114, 178},   {230, 159, 0},  {0, 158, 115},
                                {204, 121, 167}, {86, 180, 233}, {213, 94, 0}};

/// Viridis without its yellow end.
constexpr Colour ramp[] = {
    {68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {74, 174, 109}, {122, 209, 81}};

Colour mixed(const Colour& a, const Colour& b, double share) {
  const auto mix = [&](double x, double y) { return x + (y - x) * share; };
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

std::string hex(const Colour& colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", static_cast<int>(std::lround(colour.red)),
                     static_cast<int>(std::lround(colour.green)),
                     static_cast<int>(std::lround(colour.blue)));
}

Colour strong_colour(int stage, int stages) {
  if (stages <= std::ssize(okabe_ito)) return okabe_ito[stage];
  const double at = static_cast<double>(stage) / (stages - 1) * (std::ssize(ramp) - 1);
  const int below = std::min(static_cast<int>(at), static_cast<int>(std::ssize(ramp)) - 2);
  return mixed(ramp[below], ramp[below + 1], at - below);
}

}  // namespace

std::vector<StageColour> stage_colours(int stages) {
  std::vector<StageColour> result;
  for (int j = 0; j < stages; ++j) {
    const Colour strong = strong_colour(j, stages);
    const double brightness = 0.299 * strong.red + 0.587 * strong.green + 0.114 * strong.blue;
    result.push_back({hex(mixed(strong, {255, 255, 255}, 0.72)), hex(strong), brightness < 140});
  }
  return result;
}

const std::array<TravelStyle, travel_kinds>& travel_styles() {
  static const std::array<TravelStyle, travel_kinds> styles = {{
      {"activations", "#777777", "", "activations and their gradients"},
      {"gradients", "#111111", "", "partial sums of gradients"},
      {"totals", "#b00020", "", "complete sums"},
      {"parameters", "#1f3fbf", "5 2", "parameters"},
      {"norms", "#7a3e9d", "", "norms of gradients"},
  }};
  return styles;
}

int travel_kind(Payload payload) {
  switch (payload) {
    case Payload::activations:
    case Payload::d_activations:
      return 0;
    case Payload::part:
    case Payload::gradient:
      return 1;
    case Payload::total:
      return 2;
    case Payload::norms:
      return 4;
    default:
      return 3;
  }
}

std::string picture_definitions(const std::vector<StageColour>& colours) {
  std::string text = "<defs>\n";
  for (const TravelStyle& style : travel_styles())
    text += fmt::format(
        "<marker id=\"head-{}\" viewBox=\"0 0 6 6\" refX=\"5.5\" refY=\"3\" markerWidth=\"5.5\" "
        "markerHeight=\"5.5\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">"
        "<path d=\"M0 0L6 3L0 6z\" fill=\"{}\"/></marker>\n",
        style.css_class, style.colour);
  text +=
      "</defs>\n<style>\n"
      "text{font-family:sans-serif;fill:#222}\n"
      ".title{font-weight:bold}\n.quiet{fill:#666}\n.white{fill:#fff}\n"
      ".paper{fill:#fff}\n.idle{fill:#f1f1f1}\n.border{stroke:#fff;stroke-width:2.5}\n.odd{stroke:#"
      "000;stroke-width:1.3}\n"
      ".axis{stroke:#999;stroke-width:1;fill:none}\n"
      ".limit{stroke:#000;stroke-width:1.2;stroke-dasharray:6 4;fill:none}\n"
      ".steady{stroke:#000;stroke-width:1;stroke-dasharray:1 3;fill:none}\n"
      ".held{fill:#cfcfcf;stroke:#333;stroke-width:1.4}\n"
      ".even-step{stroke:#777;stroke-width:1;fill:none}\n"
      ".odd-step{stroke:#000;stroke-width:2.4;fill:none}\n";
  for (std::size_t j = 0; j < colours.size(); ++j)
    text += fmt::format(".f{0}{{fill:{1}}}\n.b{0}{{fill:{2}}}\n", j, colours[j].light,
                        colours[j].strong);
  for (const TravelStyle& style : travel_styles()) {
    text += fmt::format(
        ".{0}{{stroke:{1};stroke-width:1.2;stroke-opacity:0.8;fill:none;marker-end:url(#head-{0})",
        style.css_class, style.colour);
    text += style.dashes.empty() ? "}\n" : fmt::format(";stroke-dasharray:{}}}\n", style.dashes);
    text += fmt::format(".bar-{0}{{stroke:{1};fill:{1};stroke-width:2.4;stroke-opacity:0.8}}\n",
                        style.css_class, style.colour);
    text += fmt::format(".root-{0}{{stroke:{1};fill:#fff;stroke-width:2}}\n", style.css_class,
                        style.colour);
  }
  return text + "</style>\n";
}

}  // namespace carousel
