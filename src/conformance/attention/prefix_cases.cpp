//===- prefix_cases.cpp - prefixes of keys that rows share ----------------------------------------------===//

#include "conformance/attention/prefix_cases.h"

#include "conformance/attention/choices.h"

#include <array>

namespace sluice::conformance {

namespace {

struct Size {
  int q, kv, prefixes, prefix;
};
// Prefixes shorter and longer than the own keys, of one key and of many splits; fewer rows than prefixes;
// rows of one tile and of several.
constexpr std::array<Size, 9> sizes = {{{1, 40, 1, 300},
                                        {3, 70, 2, 65},
                                        {20, 20, 3, 130},
                                        {1, 130, 4, 17},
                                        {65, 70, 2, 200},
                                        {1, 1, 1, 1},
                                        {7, 100, 5, 16},
                                        {130, 33, 1, 64},
                                        {2, 16, 6, 500}}};
constexpr std::array modes = {Mode::dense, Mode::ragged, Mode::paged};

class PrefixCases {
public:
  explicit PrefixCases(const Collector &shapes) : shapes(shapes) {}

  Case next() { return case_of(shapes.shape(turn)); }
  Case case_of(Shapes::Shape shape) {
    const Size size = sizes[size_t(turn) % sizes.size()];
    Case c{.dtype = shape.dtype,
           .head_size = shape.head_size,
           .batch = 1 + turn % 4,
           .q_heads = 2 + turn % 3 * 2,
           .kv_heads = 1 + turn % 2,
           .q_len = size.q,
           .kv_len = size.kv,
           .mask = turn % 2 ? Mask::bottom_right : Mask::none,
           .mode = modes[size_t(turn / 2) % modes.size()],
           .v_in_k = shape.v_in_k,
           .prefixes = {.count = size.prefixes, .keys = size.prefix, .outside = turn % 3 == 1}};
    if (c.mode == Mode::ragged) c.lengths = Lengths::mixed;
    if (c.mode == Mode::paged) {
      constexpr std::array rows = {Rows::bounds, Rows::starts, Rows::gaps};
      constexpr std::array page_sizes = {16, 3, 64};
      c.rows = rows[size_t(turn) % rows.size()];
      c.lengths = turn % 4 ? Lengths::chunked : Lengths::serving;
      c.pages = {.size = page_sizes[size_t(turn / 3) % page_sizes.size()], .csr = turn % 5 == 2};
    }
    ++turn;
    return c;
  }

  const Collector &shapes;

private:
  int turn = 0;
};

} // namespace

std::vector<Case> prefix_cases(const Collector &shapes) {
  PrefixCases made(shapes);
  std::vector<Case> cases;
  for (Shapes::Shape shape : shapes.shapes)
    cases.push_back(made.case_of(shape));
  // Beside everything else that a case can choose.
  for (const Feature &feature : features())
    for (Choice choice : feature.choices) {
      Case c = made.next();
      choice(c);
      cases.push_back(std::move(c));
    }
  // Sequences without rows and without own keys, and rows without any key.
  for (Mode mode : modes)
    for (int batch : {3, 4, 5}) {
      Case c = made.next();
      c.mode = mode;
      c.batch = batch;
      c.lengths = Lengths::mixed;
      c.rows = batch == 4 ? Rows::starts : Rows::gaps;
      c.prefixes.outside = true;
      c.sink_logits = batch == 5;
      cases.push_back(std::move(c));
    }
  // Rows of many sequences in one tile, and the results over fixed splits of both levels.
  for (Mode mode : modes)
    for (int keys : {100, 2048, 4500}) {
      Case c = made.next();
      c.mode = mode;
      c.batch = 5;
      c.q_heads = 4;
      c.kv_heads = 2;
      c.q_len = 1;
      c.kv_len = keys == 2048 ? 2500 : 60;
      c.lengths = Lengths::equal;
      c.rows = Rows::bounds;
      c.prefixes = {.count = 2, .keys = keys};
      c.batch_invariant = true;
      cases.push_back(std::move(c));
    }
  // Sequences with splits of their own keys beside long ones without, which a prefill kernel computes.
  for (Mode mode : modes) {
    Case c = made.next();
    c.mode = mode;
    c.batch = 2;
    c.q_heads = c.kv_heads = 1;
    c.q_len = 20;
    c.kv_len = 2100;
    c.lengths = Lengths::serving;
    c.rows = mode == Mode::dense ? Rows::lengths : Rows::gaps;
    c.batch_invariant = true;
    cases.push_back(std::move(c));
  }
  return cases;
}

} // namespace sluice::conformance
