//===- picture_test.cpp - pictures of timelines and launches --------------------------------------------===//
//
// The SVG is read by an XML library and measured: a row of the picture is as wide as its part of the window,
// and the expected positions follow from clk that are counted by hand.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>
#include <libxml/parser.h>
#include <libxml/xpath.h>
#include <libxml/xpathInternals.h>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "timing/timed_kernel.h"
#include "timing_report/roofline.h"
#include "timing_report/timeline_picture.h"

namespace sluice::test {

namespace {

using timing_report::Roofline;

constexpr uint64_t start = 188;
const std::string mfma16 = "v_mfma_f32_16x16x16_f16 v[4:7], v[8:9], v[10:11], v[4:7]\n";
const std::string add = "v_add_f32_e32 v1, v2, v2\n";
const std::string exponential = "v_exp_f32_e32 v3, v2\n";
const std::string overlap = mfma16 + add + exponential + mfma16 + end_program;

/// A parsed picture. Throws if it is not XML.
class Drawing {
public:
  explicit Drawing(const std::string &svg)
      : document(xmlReadMemory(svg.data(), int(svg.size()), "svg", nullptr, XML_PARSE_NOERROR), &xmlFreeDoc) {
    if (!document) throw std::runtime_error("not XML: " + svg);
  }

  /// `path` has s: before each name.
  std::vector<xmlNode *> nodes(const std::string &path) const {
    const std::unique_ptr<xmlXPathContext, void (*)(xmlXPathContext *)> context(
        xmlXPathNewContext(document.get()), &xmlXPathFreeContext);
    xmlXPathRegisterNs(context.get(), BAD_CAST "s", BAD_CAST "http://www.w3.org/2000/svg");
    const std::unique_ptr<xmlXPathObject, void (*)(xmlXPathObject *)> found(
        xmlXPathEvalExpression(BAD_CAST path.c_str(), context.get()), &xmlXPathFreeObject);
    if (!found) throw std::runtime_error("no XPath: " + path);
    std::vector<xmlNode *> all;
    for (int i = 0; found->nodesetval && i < found->nodesetval->nodeNr; ++i)
      all.push_back(found->nodesetval->nodeTab[i]);
    return all;
  }

  xmlNode *only(const std::string &path) const {
    const std::vector<xmlNode *> all = nodes(path);
    if (all.size() != 1) throw std::runtime_error(std::to_string(all.size()) + " of " + path);
    return all[0];
  }

  static std::string text(xmlNode *node) {
    const std::unique_ptr<xmlChar, void (*)(void *)> content(xmlNodeGetContent(node), xmlFree);
    return reinterpret_cast<const char *>(content.get());
  }

  static std::string attribute(xmlNode *node, const char *name) {
    const std::unique_ptr<xmlChar, void (*)(void *)> value(xmlGetProp(node, BAD_CAST name), xmlFree);
    if (!value) throw std::runtime_error(std::string("no attribute ") + name);
    return reinterpret_cast<const char *>(value.get());
  }
  static double number(xmlNode *node, const char *name) { return std::stod(attribute(node, name)); }

private:
  std::unique_ptr<xmlDoc, void (*)(xmlDoc *)> document;
};

/// The place of a bar in its row: clk since the row's beginning, and shares of the row's height.
struct Place {
  std::string kind;
  double begin, end;
  double top, bottom;
};

std::vector<Place> places(const Drawing &drawing, const std::string &row, double clk) {
  const std::string group = "//s:g[@id='" + row + "']";
  xmlNode *const frame = drawing.only(group + "/s:rect[@class='row']");
  const double x = Drawing::number(frame, "x"), y = Drawing::number(frame, "y");
  const double clk_width = Drawing::number(frame, "width") / clk, height = Drawing::number(frame, "height");
  std::vector<Place> all;
  for (xmlNode *bar : drawing.nodes(group + "/s:rect[@class!='row']")) {
    const double left = (Drawing::number(bar, "x") - x) / clk_width,
                 top = (Drawing::number(bar, "y") - y) / height;
    all.push_back({Drawing::attribute(bar, "class"), left, left + Drawing::number(bar, "width") / clk_width,
                   top, top + Drawing::number(bar, "height") / height});
  }
  return all;
}

void check_places(const std::vector<Place> &found, const std::vector<Place> &expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    INFO(i << ": " << found[i].kind << " " << found[i].begin << " to " << found[i].end);
    CHECK(found[i].kind == expected[i].kind);
    CHECK(found[i].begin == Approx(expected[i].begin).margin(0.01));
    CHECK(found[i].end == Approx(expected[i].end).margin(0.01));
    CHECK(found[i].top == Approx(expected[i].top).margin(0.001));
    CHECK(found[i].bottom == Approx(expected[i].bottom).margin(0.001));
  }
}

struct Drawn {
  emulator::Program program;
  Timeline timeline;
  std::string svg(bool tips) const { return timing_report::timeline_svg(program, timeline, tips); }
};

Drawn draw(const std::string &source, uint64_t begin, uint64_t end, const TimedShape &shape = {}) {
  return {emulator::Program(code_object_of(source)),
          timeline_of(source, {.iteration = {}, .window = std::pair(begin, end)}, shape)};
}

} // namespace

//===--- Timelines --------------------------------------------------------------------------------------===//

TEST_CASE("bars of a wave are as long as their instructions take", "[timing]") {
  // At 0 the MFMA, at 4 the addition, at 8 the exponential, at 24 the second MFMA, at 28 the end.
  const Drawing drawing(draw(overlap, start, start + 40).svg(true));
  check_places(places(drawing, "wave-0-0-0", 40), {{"wait_pipe_busy", 12, 24, 0, 1},
                                                   {"matrix", 0, 16, 0, 1. / 3},
                                                   {"matrix", 24, 40, 0, 1. / 3},
                                                   {"valu", 4, 8, 1. / 3, 2. / 3},
                                                   {"transcendental", 8, 24, 1. / 3, 2. / 3},
                                                   {"internal", 28, 32, 2. / 3, 1}});
  check_places(places(drawing, "matrix-0-0", 40), {{"matrix", 0, 16, 0, 1}, {"matrix", 24, 40, 0, 1}});
  CHECK(places(drawing, "matrix-1-0", 40).empty());
  // Beside the rows, the share of time that they were busy.
  CHECK(drawing.nodes("//s:text[text()='80.0 %']").size() == 1);
  // A bar says which instruction it is.
  xmlNode *const tip = drawing.only("//s:g[@id='wave-0-0-0']/s:rect[@class='transcendental']/s:title");
  CHECK(Drawing::text(tip).find("v_exp_f32_e32 v3, v2\ntranscendental, clk 196 to 212") != std::string::npos);
}

TEST_CASE("bars end with the window", "[timing]") {
  const Drawing drawing(draw(overlap, start + 10, start + 20).svg(true));
  check_places(places(drawing, "wave-0-0-0", 10), {{"wait_pipe_busy", 2, 10, 0, 1},
                                                   {"matrix", 0, 6, 0, 1. / 3},
                                                   {"transcendental", 0, 10, 1. / 3, 2. / 3}});
  CHECK(drawing.nodes("//s:text[text()='60.0 %']").size() == 1);
}

TEST_CASE("shared resources have separate rows", "[timing]") {
  const std::string reads =
      "v_lshlrev_b32_e32 v0, 4, v0\n ds_read_b128 v[4:7], v0\n ds_read_b128 v[4:7], v0\n" + end_program;
  // Four waves; SIMDs 0 and 1 share a port, and all share the banks; a wave's read keeps the banks busy for
  // as long as a port.
  const Drawing drawing(draw(reads, start, start + 400, {.waves = 4, .lds_bytes = 4096}).svg(true));
  for (const char *row : {"lds-0-0", "lds-1-0"}) {
    const std::vector<Place> bars = places(drawing, row, 400);
    REQUIRE(bars.size() == 4);
    for (size_t i = 0; i < 4; ++i) {
      CHECK(bars[i].kind.starts_with("lds"));
      CHECK(bars[i].end - bars[i].begin == Approx(16).margin(0.1));
      if (i > 0) CHECK(bars[i].begin >= bars[i - 1].end - 0.1);
    }
  }
  // By the first wave of each port, and by its second.
  CHECK(drawing.nodes("//s:g[@id='lds-0-0']/s:rect[@class='lds odd']").size() == 2);
}

TEST_CASE("a long window is drawn in strips", "[timing]") {
  const std::string source = repeat(600, exponential) + end_program;
  const Drawn drawn = draw(source, start, start + 9000);
  const Drawing drawing(drawn.svg(true));
  REQUIRE(drawing.nodes("//s:g[starts-with(@id, 'strip-')]").size() == 3);
  double all = 0;
  for (const char *row : {"wave-0-0-0", "wave-0-0-3000", "wave-0-0-6000"})
    for (const Place &bar : places(drawing, row, 3000))
      if (bar.kind == "transcendental") all += bar.end - bar.begin;
  CHECK(all == Approx(9000).epsilon(0.001));
  // The bar from 2992 to 3008 is in both.
  CHECK(places(drawing, "wave-0-0-0", 3000).back().end == Approx(3000).margin(0.05));
  CHECK(drawing.nodes("//s:g[starts-with(@id, 'strip-')]//s:text[text()='3000']").size() >= 1);
}

TEST_CASE("without tips the same picture takes fewer bytes", "[timing]") {
  const Drawn drawn = draw(two_waves(repeat(9, mfma16 + exponential + add), repeat(40, add)), start,
                           start + 600, {.waves = 8});
  const std::string with = drawn.svg(true), without = drawn.svg(false);
  CHECK(without.size() < with.size() / 2);
  const Drawing bars(with), strokes(without);
  CHECK(strokes.nodes("//s:title").empty());
  std::map<std::string, double> painted[2]; // by row, kind and height
  for (xmlNode *bar : bars.nodes("//s:g[contains(@id, '-0')]/s:rect[@class!='row']"))
    painted[0][Drawing::attribute(bar->parent, "id") + Drawing::attribute(bar, "class") + " " +
               Drawing::attribute(bar, "height")] += Drawing::number(bar, "width");
  for (xmlNode *path : strokes.nodes("//s:path")) {
    std::istringstream moves(Drawing::attribute(path, "d"));
    char letter;
    double from, y, to;
    double &sum = painted[1][Drawing::attribute(path->parent, "id") + Drawing::attribute(path, "class") +
                             " " + Drawing::attribute(path, "stroke-width")];
    while (moves >> letter >> from >> y >> letter >> to)
      sum += to - from;
  }
  CHECK(painted[0].size() > 20);
  REQUIRE(painted[0].size() == painted[1].size());
  for (const auto &[what, width] : painted[0]) {
    INFO(what);
    CHECK(painted[1].at(what) == Approx(width).margin(0.5));
  }
}

TEST_CASE("every pipe and every reason is in the legend, and no two look the same", "[timing]") {
  const Drawing drawing(draw(overlap, start, start + 40).svg(false));
  const std::string style = Drawing::text(drawing.only("//s:style"));
  std::set<std::string> paints;
  for (xmlNode *box : drawing.nodes("//s:g[@id='legend']/s:rect")) {
    const std::string rule = "." + Drawing::attribute(box, "class") + "{fill:";
    const size_t at = style.find(rule);
    REQUIRE(at != std::string::npos);
    paints.insert(style.substr(at + rule.size(), style.find('}', at) - at - rule.size()));
  }
  CHECK(paints.size() == emulator::timing::pipe_count + emulator::timing::stall_count);
  CHECK(drawing.nodes("//s:pattern").size() == emulator::timing::stall_count);
}

TEST_CASE("a timeline in letters", "[timing]") {
  auto lines = [](const Timeline &timeline, const timing_report::TerminalStyle &style) {
    std::istringstream text(timing_report::timeline_text(timeline, style));
    std::vector<std::string> all;
    for (std::string line; std::getline(text, line);)
      all.push_back(line);
    return all;
  };
  const Timeline timeline = draw(overlap, start, start + 40).timeline;
  // Ten columns would be too few to read: there are at least 20, of two clk each.
  const std::vector<std::string> narrow = lines(timeline, {.columns = 10, .colours = false});
  CHECK(narrow[1] == "clk 188 to 228, 2.0 clk a column");
  CHECK(narrow[2] == "SIMD 0 matrix core    ########....########");
  CHECK(narrow[3] == "  wg 0 wave 0         MMVVTTTTTTTTMMIIMMMM");
  // The window has fewer clk than a wide terminal has columns.
  const std::vector<std::string> wide = lines(timeline, {.columns = 500, .colours = false});
  CHECK(wide[3].substr(22) == "MMMMVVVVTTTTTTTTTTTTTTTTMMMMIIIIMMMMMMMM");
  CHECK(wide[3].size() == 22 + 40);
  const Timeline waiting = draw("s_nop 7\n s_nop 7\n" + end_program, start, start + 60).timeline;
  CHECK(lines(waiting, {.columns = 500, .colours = false})[3].substr(22) ==
        "IIII" + std::string(28, 'n') + "IIII" + std::string(24, 'n'));
  SECTION("tenths of a stretch") {
    const Timeline long_one =
        draw(repeat(10, exponential + mfma16) + end_program, start, start + 200).timeline;
    // Each pair takes 20 clk, of which the matrix core 16.
    CHECK(lines(long_one, {.columns = 22 + 20, .colours = false})[2].substr(22).find_first_of("89#") !=
          std::string::npos);
  }
  SECTION("colours change no letter") {
    std::string coloured = timing_report::timeline_text(timeline, {.columns = 100, .colours = true});
    CHECK(coloured.find("\x1b[38;5;27mM\x1b[0m") != std::string::npos);
    for (size_t at; (at = coloured.find('\x1b')) != std::string::npos;)
      coloured.erase(at, coloured.find('m', at) - at + 1);
    CHECK(coloured == timing_report::timeline_text(timeline, {.columns = 100, .colours = false}));
  }
}

//===--- Rooflines --------------------------------------------------------------------------------------===//

namespace {

/// A launch that multiplies and reads 1024 bytes of HBM.
const std::string reading =
    "s_load_dwordx2 s[8:9], s[0:1], 0x0\n v_lshlrev_b32_e32 v0, 4, v0\n s_waitcnt lgkmcnt(0)\n"
    "global_load_dwordx4 v[12:15], v0, s[8:9]\n s_waitcnt vmcnt(0)\n" +
    repeat(3, mfma16) + end_program;

struct Reading {
  Memory memory;
  emulator::Program program{code_object_of(reading)};
  TimingResult result;
  explicit Reading(const TimingOptions &options = {}) {
    auto *data = static_cast<std::byte *>(memory.allocate(4096));
    result = time_program(reading, {}, {reinterpret_cast<uint64_t>(data)}, options, memory);
  }
};

} // namespace

TEST_CASE("a launch is placed in the roofline by its figures", "[timing]") {
  const Reading launch;
  Roofline roofline;
  roofline.add("a", launch.program, launch.result);
  REQUIRE(roofline.peaks.size() == 1);
  CHECK(roofline.peaks[0].type == "f16");
  // 16 * 16 * 16 * 2 FLOP in 16 clk, on 1216 matrix cores at 2.1 GHz.
  CHECK(roofline.peaks[0].tflops == Approx(512 * 1216 * 2.1e-3));
  // The load, a line of kernel arguments, and no LDS.
  CHECK(roofline.points.size() == 4);
  const double flops = 3 * 8192, seconds = double(launch.result.device_clk) / 2.1e9;
  for (const timing_report::RooflinePoint &point : roofline.points) {
    CHECK(point.label == "a");
    CHECK(point.tflops == Approx(flops / seconds * 1e-12));
    CHECK(point.flops_per_byte ==
          Approx(flops / (point.level == emulator::timing::Level::vector_cache ? 1024 : 1024 + 128)));
  }
}

TEST_CASE("a roofline's ceilings and points match its axes", "[timing]") {
  Roofline roofline;
  roofline.title = "a & b";
  const Reading launch;
  roofline.add("first", launch.program, launch.result);
  roofline.points.clear();
  using emulator::timing::Level;
  roofline.points = {
      {"first", Level::hbm, 100, 200}, {"first", Level::l2, 20, 200}, {"<second>", Level::hbm, 50, 100}};
  const Drawing drawing(timing_report::roofline_svg(roofline));
  CHECK(Drawing::text(drawing.only("//s:text[@class='title']")) == "a & b");

  // Axes, from the numbers beside them.
  auto axis = [&](const std::string &select, const char *coordinate) {
    std::vector<std::pair<double, double>> ticks; // logarithm, coordinate
    for (xmlNode *node : drawing.nodes("//s:text[@class='note'][" + select + "]")) {
      char *end = nullptr;
      const std::string text = Drawing::text(node);
      const double value = std::strtod(text.c_str(), &end);
      if (*end == 0) ticks.emplace_back(std::log10(value), Drawing::number(node, coordinate));
    }
    REQUIRE(ticks.size() >= 3);
    const auto [a, from] = ticks.front();
    const auto [b, to] = ticks.back();
    for (const auto &[value, at] : ticks)
      CHECK(at == Approx(from + (value - a) / (b - a) * (to - from)).margin(0.1));
    return [=](double value) { return from + (std::log10(value) - a) / (b - a) * (to - from); };
  };
  const auto x = axis("@text-anchor='middle'", "x");
  const auto y_of_text = axis("@text-anchor='end'", "y");
  const auto y = [&](double value) { return y_of_text(value) - 4; }; // numbers are slightly below their lines

  auto centre = [](xmlNode *polygon) {
    std::istringstream points(Drawing::attribute(polygon, "points"));
    double sum_x = 0, sum_y = 0, px, py, count = 0;
    char comma;
    for (; points >> px >> comma >> py; ++count)
      sum_x += px, sum_y += py;
    return std::pair(sum_x / count, sum_y / count);
  };
  const auto first = drawing.nodes("//s:g[@id='first']/s:polygon");
  REQUIRE(first.size() == 2);
  CHECK(Drawing::attribute(first[0], "class") == "hbm_point");
  CHECK(centre(first[0]).first == Approx(x(100)).margin(0.2));
  CHECK(centre(first[0]).second == Approx(y(200)).margin(0.2));
  CHECK(centre(first[1]).first == Approx(x(20)).margin(0.2));
  const auto second = drawing.nodes("//s:g[@id='<second>']/s:polygon");
  REQUIRE(second.size() == 1);
  CHECK(centre(second[0]).second == Approx(y(100)).margin(0.2));

  // Ceilings: TFLOPS are TB/s times FLOP per byte, up to the peak. 39 TB/s and so on are of the device.
  const std::pair<const char *, double> levels[] = {{"lds", 128 * 304 * 2.1e-3},
                                                    {"vector_cache", 64 * 304 * 2.1e-3},
                                                    {"l2", 28},
                                                    {"mall", 17.2},
                                                    {"hbm", 4.14}};
  const double peak = 512 * 1216 * 2.1e-3;
  for (const auto &[name, terabytes] : levels) {
    INFO(name);
    xmlNode *const line = drawing.nodes(std::string("//s:line[@class='") + name + "']").at(0);
    CHECK(Drawing::number(line, "x2") == Approx(x(peak / terabytes)).margin(0.3));
    CHECK(Drawing::number(line, "y2") == Approx(y(peak)).margin(0.3));
    // Another point of it: where it leaves the picture.
    const double low_x = Drawing::number(line, "x1"), low_y = Drawing::number(line, "y1");
    const double rise = (y(peak) - low_y) / (Drawing::number(line, "x2") - low_x);
    const double decade = (y(1000) - y(100)) / (x(1000) - x(100));
    CHECK(rise == Approx(decade).epsilon(0.01));
  }
}

TEST_CASE("the legend of a roofline fits into the picture", "[timing]") {
  const Reading launch;
  Roofline roofline;
  roofline.add("attn_fwd_bf16_d128_q256_kv64_w8_paged", launch.program, launch.result);
  roofline.points.push_back(
      {"attn_fwd_bf16_d128_q256_kv64_w8_paged", emulator::timing::Level::vector_cache, 1204.8, 553.4});
  const Drawing drawing(timing_report::roofline_svg(roofline));
  const double width = Drawing::number(drawing.only("/s:svg"), "width");
  constexpr double letter = 0.6 * 11; // of a wide font
  const auto texts = drawing.nodes("//s:text[@text-anchor='start' and not(@transform)]");
  REQUIRE(texts.size() > 10);
  for (xmlNode *text : texts) {
    INFO(Drawing::text(text));
    CHECK(Drawing::number(text, "x") + letter * double(Drawing::text(text).size()) <= width);
  }
}

TEST_CASE("ceilings of a roofline are those of its device", "[timing]") {
  const Reading launch({.device = {.clock_mhz = 1050}});
  Roofline roofline;
  roofline.add("slow", launch.program, launch.result);
  const Drawing drawing(timing_report::roofline_svg(roofline));
  // On the line, and in the legend.
  for (const char *text :
       {"l2 14.0 TB/s", "l2: 14.0 TB/s", "hbm 4.1 TB/s", "hbm: 4.1 TB/s", "f16 654 TFLOPS"})
    CHECK(drawing.nodes(std::string("//s:text[text()='") + text + "']").size() == 1);
}

TEST_CASE("a roofline of unsupported data is refused", "[timing]") {
  Roofline roofline;
  CHECK_THROWS_WITH(timing_report::roofline_svg(roofline), Catch::Contains("one launch at least"));
  const emulator::Program program(code_object_of(add + end_program));
  CHECK_THROWS_WITH(roofline.add("a", program, time_program(add + end_program)),
                    Catch::Contains("ran no MFMA"));
  const emulator::Program idle(code_object_of(mfma16 + end_program));
  CHECK_THROWS_WITH(roofline.add("a", idle, time_program(mfma16 + end_program)),
                    Catch::Contains("moved no bytes"));
  const Reading fast, slow({.device = {.clock_mhz = 1200}});
  roofline.add("fast", fast.program, fast.result);
  CHECK_THROWS_WITH(roofline.add("slow", slow.program, slow.result),
                    Catch::Contains("\"slow\" was timed on 304") && Catch::Contains("1200 MHz"));
  CHECK(roofline.points.size() == 4);
}

TEST_CASE("each type that is multiplied has its peak", "[timing]") {
  const std::string source = mfma16 +
                             "v_mfma_f32_16x16x16_bf16 v[4:7], v[8:9], v[10:11], v[4:7]\n"
                             "v_mfma_f32_16x16x32_fp8_fp8 v[4:7], v[8:9], v[10:11], v[4:7]\n"
                             "v_mfma_f32_4x4x4_16b_f16 v[4:7], v[8:9], v[10:11], v[4:7]\n"
                             "v_mfma_f32_16x16x4_f32 v[4:7], v8, v9, v[4:7]\n s_branch past\n"
                             "v_mfma_i32_16x16x32_i8 v[4:7], v[8:9], v[10:11], v[4:7]\n past:\n" +
                             end_program;
  const emulator::Program program(code_object_of(source));
  TimingResult result = time_program(source);
  result.traffic.l2_bytes = 1;
  Roofline roofline;
  roofline.add("all", program, result);
  std::map<std::string, double> peaks;
  for (const timing_report::MatrixPeak &peak : roofline.peaks)
    peaks[peak.type] = std::round(peak.tflops);
  // The data sheet's: f16 and bf16 1307, fp8 2615, f32 163. Types that did not run are not shown.
  CHECK(peaks ==
        std::map<std::string, double>{{"bf16", 1307}, {"f16", 1307}, {"f32", 163}, {"fp8_fp8", 2615}});
}

} // namespace sluice::test
