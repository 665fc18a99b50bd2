// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/draw/svg.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace carousel {

std::string xml_escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else if (c == '\'')
      result += "&apos;";
    else if (static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\t')
      result += c;
  }
  return result;
}

std::string pixels(double length) {
  return fmt::format("{:g}", std::round(length * 10) / 10 + 0.0);
}

double text_width(std::string_view text, double size) {
  // UTF-8: bytes that continue a character have no width.
  const auto characters =
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; });
  return 0.56 * size * static_cast<double>(characters);
}

void SvgWriter::element(std::string_view name, std::string_view css_class,
                        std::string_view attributes, std::string_view title) {
  body_ += fmt::format("<{} class=\"{}\" {}", name, css_class, attributes);
  body_ +=
      title.empty() ? "/>\n" : fmt::format("><title>{}</title></{}>\n", xml_escaped(title), name);
}

void SvgWriter::path(std::string_view css_class, std::string_view outline, std::string_view title) {
  element("path", css_class, fmt::format("d=\"{}\"", outline), title);
}

void SvgWriter::rectangle(std::string_view css_class, double x, double y, double width,
                          double height, std::string_view title) {
  element("rect", css_class,
          fmt::format("x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", pixels(x), pixels(y),
                      pixels(width), pixels(height)),
          title);
}

void SvgWriter::line(std::string_view css_class, double x1, double y1, double x2, double y2,
                     std::string_view title) {
  element("line", css_class,
          fmt::format("x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"", pixels(x1), pixels(y1), pixels(x2),
                      pixels(y2)),
          title);
}

void SvgWriter::circle(std::string_view css_class, double x, double y, double radius) {
  element("circle", css_class,
          fmt::format("cx=\"{}\" cy=\"{}\" r=\"{}\"", pixels(x), pixels(y), pixels(radius)), {});
}

void SvgWriter::text(std::string_view css_class, double x, double y, std::string_view text,
                     Anchor anchor, double size) {
  constexpr const char* names[] = {"start", "middle", "end"};
  body_ += fmt::format(
      "<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"{}\" font-size=\"{}\">{}</text>\n",
      css_class, pixels(x), pixels(y), names[static_cast<int>(anchor)], pixels(size),
      xml_escaped(text));
}

void SvgWriter::open_clipped(std::string_view clip_path) {
  body_ += fmt::format("<g clip-path=\"url(#{})\">\n", clip_path);
}

void SvgWriter::close_clipped() {
  body_ += "</g>\n";
}

std::string SvgWriter::document(double width, double height, std::string_view title,
                                std::string_view definitions) const {
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\">\n<title>{2}</title>\n{3}{4}</svg>\n",
      pixels(width), pixels(height), xml_escaped(title), definitions, body_);
}

}  // namespace carousel
