//===- svg.h - a drawing as SVG -------------------------------------------------------------------------===//
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::timing_report {

/// Text as XML has it between and inside tags.
std::string xml_escaped(std::string_view text);

class Svg {
public:
  enum class Anchor : uint8_t { start, middle, end };

  Svg(double width, double height);

  /// Rules of CSS; those of a class say how it is filled and drawn.
  void style(std::string_view rules);
  /// A pattern that `url(#name)` fills with: stripes on a tint.
  void hatch(std::string_view name, std::string_view colour, double degrees);
  /// What follows until `end_group` belongs together.
  void begin_group(std::string_view id);
  void end_group();
  /// `tip` is what a viewer shows when it is pointed at; none if empty.
  void rectangle(std::string_view classes, double x, double y, double width, double height,
                 std::string_view tip = {});
  /// Level strokes from left to right, as one path: a rectangle needs several times the bytes.
  void strokes(std::string_view classes, double y, double width,
               const std::vector<std::pair<double, double>> &from_to);
  void line(std::string_view classes, double x1, double y1, double x2, double y2);
  /// Closed, from pairs of coordinates "x,y x,y".
  void polygon(std::string_view classes, std::string_view points, std::string_view tip = {});
  void text(std::string_view classes, double x, double y, std::string_view text,
            Anchor anchor = Anchor::start, double degrees = 0);

  std::string finish() &&;

private:
  std::string body;
};

} // namespace sluice::timing_report
