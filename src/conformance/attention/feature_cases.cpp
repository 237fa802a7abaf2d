//===- feature_cases.cpp - modes, masks, score changes and caches, separately and together --------------===//
//
// Every choice separately, for every shape or, if it has many choices, for some shapes; every pair of
// features without others, so that a kernel that gains one or two of them has its cases; and everything
// together, drawn so that all pairs of choices occur. Cases known to be difficult are in edge_cases.cpp, and
// shared prefixes, which exclude many of the choices, in prefix_cases.cpp.
//
//===----------------------------------------------------------------------------------------------------===//
#include "conformance/attention/choices.h"
#include "conformance/attention/collector.h"
#include "conformance/attention/edge_cases.h"
#include "conformance/attention/prefix_cases.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::conformance {

namespace {

// The number of cases drawn with everything together.
constexpr int drawn_cases = 360;
constexpr int candidates_per_case = 24;
// A case of this suite stays below this product of rows, keys, query heads and sequences.
constexpr int64_t largest_work = 60000;

struct Size {
  int q, kv;
};
// Edges of fragments, KV tiles and query tiles; sizes that fit in a page and that do not.
constexpr std::array<Size, 15> sizes = {{{33, 70},
                                         {1, 257},
                                         {17, 65},
                                         {64, 64},
                                         {130, 67},
                                         {3, 300},
                                         {20, 200},
                                         {1, 1},
                                         {48, 48},
                                         {100, 40},
                                         {5, 128},
                                         {65, 130},
                                         {257, 33},
                                         {1, 600},
                                         {2, 16}}};
constexpr std::array modes = {Mode::dense, Mode::ragged, Mode::paged};

/// The case to which features are added: a few sequences, as is usual for the mode.
Case base(Mode mode, Shapes::Shape shape, int turn) {
  const Size size = sizes[size_t(turn) % sizes.size()];
  Case c{.dtype = shape.dtype,
         .head_size = shape.head_size,
         .batch = 2,
         .q_heads = 2,
         .kv_heads = 1,
         .q_len = size.q,
         .kv_len = size.kv,
         .mode = mode,
         .v_in_k = shape.v_in_k};
  if (mode != Mode::dense) c.batch = 3;
  if (mode == Mode::ragged) c.lengths = Lengths::mixed;
  if (mode == Mode::paged) {
    c.pages.size = 16;
    c.lengths = Lengths::chunked;
  }
  return c;
}

Case limited(Case c) {
  const auto work = [&] { return int64_t(c.q_len) * c.kv_len * c.q_heads * c.batch; };
  while (c.batch > 2 && work() > largest_work)
    --c.batch;
  if (work() > largest_work) {
    c.q_heads /= c.kv_heads;
    c.kv_heads = 1;
  }
  while (c.q_heads % 2 == 0 && work() > largest_work)
    c.q_heads /= 2;
  return c;
}

bool is_plain_dense(const Case &c) {
  const Case plain{.dtype = c.dtype,
                   .head_size = c.head_size,
                   .batch = c.batch,
                   .q_heads = c.q_heads,
                   .kv_heads = c.kv_heads,
                   .q_len = c.q_len,
                   .kv_len = c.kv_len,
                   .mask = c.mask,
                   .layout = c.layout,
                   .pattern = c.pattern,
                   .scale = c.scale,
                   .lse = c.lse,
                   .bounded = c.bounded,
                   .name = c.name};
  return c == plain && c.pattern < Pattern::codes;
}

void add(Collector &out, Case c) {
  c = meaningful(limited(std::move(c)));
  if (!is_plain_dense(c)) out.add(std::move(c));
}

/// With many shapes, each gets one case in this many: together as many as four shapes would.
size_t part_of_each(const Collector &out) {
  return std::max<size_t>(1, out.shapes.size() / 4);
}

void add_modes(Collector &out) {
  int turn = 0;
  for (Shapes::Shape shape : out.shapes)
    for (Mode mode : {Mode::ragged, Mode::paged})
      for (size_t i = 0; i < sizes.size(); i += 2 * part_of_each(out))
        add(out, base(mode, shape, turn++));
}

void add_single_features(Collector &out) {
  int turn = 0;
  size_t shape_turn = 0;
  for (Shapes::Shape shape : out.shapes) {
    size_t choice_turn = shape_turn++;
    for (const Feature &feature : features())
      for (Choice choice : feature.choices) {
        if (choice_turn++ % part_of_each(out) != 0) continue;
        Case c = base(modes[choice_turn / part_of_each(out) % modes.size()], shape, turn++);
        choice(c);
        add(out, std::move(c));
      }
  }
}

void add_pairs_of_features(Collector &out) {
  const std::vector<Feature> &all = features();
  size_t turn = 0;
  for (size_t first = 0; first < all.size(); ++first)
    for (size_t second = first + 1; second < all.size(); ++second, ++turn) {
      Case c = base(modes[turn % modes.size()], out.shape(int(turn / 3)), int(turn));
      all[first].choices[turn % all[first].choices.size()](c);
      all[second].choices[(turn / 5) % all[second].choices.size()](c);
      add(out, std::move(c));
    }
}

/// Draws cases with all features chosen: of several candidates, each time the one with the most pairs of
/// rarely met choices.
class Drawing {
public:
  explicit Drawing(const Collector &out) : out(out) {
    for (const Feature &feature : features())
      for (Choice choice : feature.choices)
        choices.push_back(choice);
    met.resize(choices.size() * choices.size());
  }

  Case next() {
    Case best;
    std::vector<size_t> best_choices;
    int64_t best_score = -1;
    for (int i = 0; i < candidates_per_case; ++i) {
      Case c = candidate();
      std::vector<size_t> made = choices_in(c);
      const int64_t score = score_of(made);
      if (score <= best_score) continue;
      best_score = score;
      best = std::move(c);
      best_choices = std::move(made);
    }
    for (size_t a : best_choices)
      for (size_t b : best_choices)
        ++met[a * choices.size() + b];
    return best;
  }

private:
  size_t below(size_t end) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return size_t(state >> 33) % end;
  }

  /// Two choices that no case has had together, while such a pair exists.
  std::pair<size_t, size_t> unmet_pair() {
    const size_t from = below(met.size());
    for (size_t i = 0; i < met.size(); ++i) {
      const size_t pair = (from + i) % met.size();
      if (met[pair] == 0) return {pair / choices.size(), pair % choices.size()};
    }
    return {from / choices.size(), from % choices.size()};
  }

  Case candidate() {
    const auto turn = int(below(1000));
    const Mode mode = modes[below(modes.size())];
    Case c = base(mode, out.shape(int(below(1000))), turn);
    c.batch = 1 + int(below(5));
    // Two features in five, so that a choice is not always hidden by another one.
    for (const Feature &feature : features())
      if (below(5) < 2) feature.choices[below(feature.choices.size())](c);
    c.mode = mode; // choices about pages had changed it
    const auto [first, second] = unmet_pair();
    choices[first](c);
    choices[second](c);
    return meaningful(limited(std::move(c)));
  }

  std::vector<size_t> choices_in(const Case &c) const {
    std::vector<size_t> result;
    for (size_t i = 0; i < choices.size(); ++i)
      if (has(c, choices[i])) result.push_back(i);
    return result;
  }

  int64_t score_of(const std::vector<size_t> &made) const {
    int64_t score = 0;
    for (size_t a : made)
      for (size_t b : made)
        if (a < b) {
          constexpr std::array<int64_t, 3> worth = {1000, 30, 1};
          const size_t times = met[a * choices.size() + b];
          if (times < worth.size()) score += worth[times];
        }
    return score;
  }

  const Collector &out;
  std::vector<Choice> choices;
  std::vector<uint32_t> met; // how often pairs of choices occurred together
  uint64_t state = 1;
};

void add_everything_together(Collector &out) {
  Drawing drawing(out);
  for (int i = 0; i < drawn_cases; ++i)
    add(out, drawing.next());
}

} // namespace

std::vector<Case> single_feature_cases(const Shapes &shapes) {
  Collector out(shapes);
  add_modes(out);
  add_single_features(out);
  return std::move(out.cases);
}

std::vector<Case> feature_cases(const Shapes &shapes) {
  Collector out(shapes);
  add_modes(out);
  add_single_features(out);
  add_pairs_of_features(out);
  add_everything_together(out);
  for (Case &c : edge_cases(out))
    add(out, std::move(c));
  for (Case &c : prefix_cases(out))
    add(out, std::move(c));
  return std::move(out.cases);
}

} // namespace sluice::conformance
