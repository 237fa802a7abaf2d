//===- svg.h - a drawing as SVG -------------------------------------------------------------------------===//
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::timing_report {

/// Escapes text for use between and inside XML tags.
std::string xml_escaped(std::string_view text);

class Svg {
public:
  enum class Anchor : uint8_t { start, middle, end };

  Svg(double width, double height);

  /// CSS rules; the rules of a class set its fill and stroke.
  void style(std::string_view rules);
  /// A fill pattern for `url(#name)`: stripes on a tint.
  void hatch(std::string_view name, std::string_view colour, double degrees);
  /// Everything until `end_group` is one group.
  void begin_group(std::string_view id);
  void end_group();
  /// Viewers show `tip` when pointed at the rectangle; empty for no tip.
  void rectangle(std::string_view classes, double x, double y, double width, double height,
                 std::string_view tip = {});
  /// Horizontal strokes from left to right, as one path: rectangles need several times the bytes.
  void strokes(std::string_view classes, double y, double width,
               const std::vector<std::pair<double, double>> &from_to);
  void line(std::string_view classes, double x1, double y1, double x2, double y2);
  /// Closed; `points` are coordinates "x,y x,y".
  void polygon(std::string_view classes, std::string_view points, std::string_view tip = {});
  void text(std::string_view classes, double x, double y, std::string_view text,
            Anchor anchor = Anchor::start, double degrees = 0);

  std::string finish() &&;

private:
  std::string body;
};

} // namespace sluice::timing_report
