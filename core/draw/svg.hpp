// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes the few elements of SVG that pictures need: shapes and texts that name a class, with their
// texts escaped. What is drawn, and how classes look, is for the caller to say.

#include <string>
#include <string_view>

namespace carousel {

/// The five characters of XML's markup replaced; characters that XML forbids left out.
[[nodiscard]] std::string xml_escaped(std::string_view text);

/// A length in pixels, rounded to a tenth.
[[nodiscard]] std::string pixels(double length);

enum class Anchor { start, middle, end };

class SvgWriter {
 public:
  /// A shape with an outline in SVG's path notation. A title is what a browser shows as tooltip.
  void path(std::string_view css_class, std::string_view outline, std::string_view title = {});
  void rectangle(std::string_view css_class, double x, double y, double width, double height,
                 std::string_view title = {});
  void line(std::string_view css_class, double x1, double y1, double x2, double y2,
            std::string_view title = {});
  void circle(std::string_view css_class, double x, double y, double radius);
  void text(std::string_view css_class, double x, double y, std::string_view text,
            Anchor anchor = Anchor::start, double size = 12);
  /// Until close_clipped(), nothing is drawn outside of the clip path of this name.
  void open_clipped(std::string_view clip_path);
  void close_clipped();

  /// The whole file. Definitions are markers, clip paths and a style sheet, as XML.
  [[nodiscard]] std::string document(double width, double height, std::string_view title,
                                     std::string_view definitions) const;

 private:
  void element(std::string_view name, std::string_view css_class, std::string_view attributes,
               std::string_view title);
  std::string body_;
};

/// Width of a text in pixels, near enough to see what fits.
[[nodiscard]] double text_width(std::string_view text, double size);

}  // namespace carousel
