//===- svg.cpp - a drawing as SVG -----------------------------------------------------------------------===//
#include "timing_report/svg.h"

#include <fmt/format.h>

namespace sluice::timing_report {

namespace {

/// Hundredths are finer than any screen; integers, which most values are, stay short.
std::string number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string end_of_tag(std::string_view tag, std::string_view tip) {
  return tip.empty() ? "/>\n" : fmt::format("><title>{}</title></{}>\n", xml_escaped(tip), tag);
}

} // namespace

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    switch (c) {
    case '&':
      escaped += "&amp;";
      break;
    case '<':
      escaped += "&lt;";
      break;
    case '>':
      escaped += "&gt;";
      break;
    case '"':
      escaped += "&quot;";
      break;
    default:
      escaped += c;
    }
  }
  return escaped;
}

Svg::Svg(double width, double height)
    : body(fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
                       "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"11\">\n"
                       "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
                       number(width), number(height))) {}

void Svg::style(std::string_view rules) {
  body += fmt::format("<style>\n{}</style>\n", rules);
}

void Svg::hatch(std::string_view name, std::string_view colour, double degrees) {
  body += fmt::format("<pattern id=\"{0}\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\" "
                      "patternTransform=\"rotate({2})\"><rect width=\"4\" height=\"4\" fill=\"{1}\" "
                      "fill-opacity=\"0.3\"/><rect width=\"1.2\" height=\"4\" fill=\"{1}\"/></pattern>\n",
                      name, colour, number(degrees));
}

void Svg::begin_group(std::string_view id) {
  body += fmt::format("<g id=\"{}\">\n", xml_escaped(id));
}

void Svg::end_group() {
  body += "</g>\n";
}

void Svg::rectangle(std::string_view classes, double x, double y, double width, double height,
                    std::string_view tip) {
  body += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}", classes, number(x),
                      number(y), number(width), number(height), end_of_tag("rect", tip));
}

void Svg::strokes(std::string_view classes, double y, double width,
                  const std::vector<std::pair<double, double>> &from_to) {
  if (from_to.empty()) return;
  body += fmt::format("<path class=\"{}\" stroke-width=\"{}\" d=\"", classes, number(width));
  for (const auto &[from, to] : from_to)
    body += fmt::format("M{} {}H{}", number(from), number(y), number(to));
  body += "\"/>\n";
}

void Svg::line(std::string_view classes, double x1, double y1, double x2, double y2) {
  body += fmt::format("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", classes, number(x1),
                      number(y1), number(x2), number(y2));
}

void Svg::polygon(std::string_view classes, std::string_view points, std::string_view tip) {
  body += fmt::format("<polygon class=\"{}\" points=\"{}\"{}", classes, points, end_of_tag("polygon", tip));
}

void Svg::text(std::string_view classes, double x, double y, std::string_view text, Anchor anchor,
               double degrees) {
  constexpr std::string_view anchors[] = {"start", "middle", "end"};
  const std::string turned =
      degrees == 0 ? ""
                   : fmt::format(" transform=\"rotate({} {} {})\"", number(degrees), number(x), number(y));
  body += fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"{}\"{}>{}</text>\n", classes,
                      number(x), number(y), anchors[size_t(anchor)], turned, xml_escaped(text));
}

std::string Svg::finish() && {
  return std::move(body) + "</svg>\n";
}

} // namespace sluice::timing_report
