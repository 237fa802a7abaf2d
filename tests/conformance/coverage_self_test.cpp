//===- coverage_self_test.cpp - the cases cover what the suite promises ---------------------------------===//

#include "conformance/attention/choices.h"
#include "conformance/attention/sample.h"
#include "perfect.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

using namespace sluice::conformance;

namespace {

const Shapes shipped_shapes = {{{Dtype::f16, 128}, {Dtype::f16, 64}, {Dtype::bf16, 128}, {Dtype::bf16, 64}}};

struct Named {
  std::string name;
  size_t feature;
  Choice choice;
};

std::vector<Named> all_choices() {
  std::vector<Named> result;
  for (size_t feature = 0; feature < features().size(); ++feature) {
    int number = 0;
    for (Choice choice : features()[feature].choices)
      result.push_back({features()[feature].name + (" " + std::to_string(++number)), feature, choice});
  }
  return result;
}

/// The head sizes of the shape that a case was made of: rows may end inside eight elements.
HeadSizes rows_of(const Case &c) {
  return {int(row_elements(c.head_size.qk)), int(row_elements(c.head_size.v))};
}

/// Whether two choices can be together in some mode.
bool can_meet(Choice a, Choice b) {
  for (Mode mode : {Mode::dense, Mode::ragged, Mode::paged})
    for (int q_len : {4, 20})
      for (const auto &[first, second] : {std::pair{a, b}, {b, a}}) {
        Case c{.batch = 3, .q_heads = 2, .q_len = q_len, .kv_len = 20, .mode = mode};
        first(c);
        second(c);
        c = meaningful(c);
        if (has(c, a) && has(c, b)) return true;
      }
  return false;
}

} // namespace

TEST_CASE("the suite has at least 900 feature cases with unique names and small sizes") {
  const std::vector<Case> cases = feature_cases(shipped_shapes);
  CHECK(cases.size() >= 1100);
  std::set<std::string> names;
  for (const Case &c : cases) {
    CAPTURE(c.name);
    CHECK(c.name == make_name(c));
    CHECK(names.insert(c.name).second);
    CHECK(meaningful(c) == c);
    CHECK(int64_t(c.q_len) * c.kv_len * c.q_heads * c.batch <= 100000);
    CHECK(c.batch <= 5);
    CHECK(std::count(shipped_shapes.all.begin(), shipped_shapes.all.end(),
                     Shapes::Shape{c.dtype, rows_of(c)}) == 1);
  }
  for (const Case &c : dense_cases(shipped_shapes))
    CHECK(names.insert(c.name).second);
}

TEST_CASE("every two choices that can be together are, and each is in the sample, in every mode") {
  const std::vector<Case> cases = feature_cases(shipped_shapes);
  const std::vector<Named> choices = all_choices();
  std::vector<std::vector<bool>> made; // [choice][case]
  for (const Named &choice : choices) {
    std::vector<bool> &row = made.emplace_back();
    for (const Case &c : cases)
      row.push_back(has(c, choice.choice));
  }
  size_t pairs = 0;
  for (size_t a = 0; a < choices.size(); ++a)
    for (size_t b = 0; b < a; ++b) {
      bool together = false;
      for (size_t i = 0; i < cases.size() && !together; ++i)
        together = made[a][i] && made[b][i];
      pairs += together;
      if (!together) {
        CAPTURE(choices[a].name, choices[b].name);
        CHECK(!can_meet(choices[a].choice, choices[b].choice));
      }
    }
  CHECK(pairs > 2000);

  const std::vector<bool> in_sample = sample_of(cases);
  CHECK(std::count(in_sample.begin(), in_sample.end(), true) >= 400);
  for (size_t a = 0; a < choices.size(); ++a)
    for (Mode mode : {Mode::dense, Mode::ragged, Mode::paged}) {
      size_t sampled = 0, all = 0;
      for (size_t i = 0; i < cases.size(); ++i) {
        all += made[a][i] && cases[i].mode == mode;
        sampled += made[a][i] && cases[i].mode == mode && in_sample[i];
      }
      CAPTURE(choices[a].name, int(mode));
      CHECK((sampled > 0) == (all > 0));
    }
}

TEST_CASE("a new shape gets every choice, with two head sizes as with one") {
  const Shapes shapes = {{{Dtype::f16, 128}, {Dtype::bf16, {192, 128}}, {Dtype::f16, {576, 512}}}};
  const std::vector<Case> cases = feature_cases(shapes);
  for (const Shapes::Shape &shape : shapes.all)
    for (const Named &choice : all_choices()) {
      CAPTURE(shape.head_size.qk, choice.name);
      // No kernel converts rows of K of more than 512 elements, except those of E4M3FNUZ.
      Case chosen{.head_size = shape.head_size};
      choice.choice(chosen);
      if (shape.head_size.qk > 512 && chosen.cache > Cache::e4m3fnuz_as_q) continue;
      // Nor does one have more than 128 columns of V by columns.
      if (shape.head_size.qk > 128 && chosen.v_columns != Columns::none) continue;
      CHECK(std::any_of(cases.begin(), cases.end(), [&](const Case &c) {
        return c.dtype == shape.dtype && rows_of(c) == shape.head_size && has(c, choice.choice);
      }));
    }
}

TEST_CASE("each of many shapes gets some cases in every mode, and every choice some shapes") {
  Shapes shapes;
  for (Dtype dtype : {Dtype::f16, Dtype::bf16})
    for (int head_size : {32, 64, 80, 96, 112, 128, 160, 192, 256})
      shapes.all.push_back({dtype, head_size});
  const std::vector<Case> cases = single_feature_cases(shapes);
  CHECK(cases.size() < 700);
  for (const Shapes::Shape &shape : shapes.all)
    for (Mode mode : {Mode::dense, Mode::ragged, Mode::paged}) {
      CAPTURE(int(shape.dtype), shape.head_size.qk, int(mode));
      CHECK(std::count_if(cases.begin(), cases.end(), [&](const Case &c) {
              return c.dtype == shape.dtype && c.head_size == shape.head_size && c.mode == mode;
            }) >= 2);
    }
  for (const Named &choice : all_choices()) {
    CAPTURE(choice.name);
    std::set<std::pair<Dtype, HeadSizes>> found;
    for (const Case &c : cases)
      if (has(c, choice.choice)) found.insert({c.dtype, c.head_size});
    CHECK(!found.empty());
  }
}

TEST_CASE("kernels which read V from K have cases of nothing else") {
  const Shapes shapes = {{{Dtype::f16, 128}, {Dtype::f16, {576, 512}, true}}};
  size_t mla = 0;
  for (const Case &c : feature_cases(shapes))
    if (c.head_size == HeadSizes(576, 512)) {
      ++mla;
      CHECK(c.v_in_k);
    }
  CHECK(mla > 100);
  for (const Case &c : dense_cases(shapes))
    CHECK(c.head_size == HeadSizes(128));
  CHECK(dense_cases({{{Dtype::f16, {576, 512}, true}}}).empty());
}

TEST_CASE("a name states all choices of a case, and no two names are the same") {
  for (Mode mode : {Mode::dense, Mode::ragged, Mode::paged}) {
    const Case plain = meaningful({.batch = 3, .q_heads = 2, .q_len = 4, .kv_len = 20, .mode = mode});
    std::vector<Case> cases = {plain};
    for (const Named &choice : all_choices()) {
      Case c = plain;
      choice.choice(c);
      cases.push_back(meaningful(c));
    }
    for (const Case &a : cases)
      for (const Case &b : cases) {
        CAPTURE(make_name(a), make_name(b));
        CHECK((a == b) == (make_name(a) == make_name(b)));
      }
  }
}

TEST_CASE("decoding sequences have one row each, however it is given") {
  size_t found = 0;
  for (const Case &c : feature_cases(shipped_shapes))
    if (c.lengths == Lengths::decode) {
      ++found;
      CHECK(Sequences(c).q_lengths == std::vector<int>(size_t(c.batch), 1));
    }
  CHECK(found > 50);
}

TEST_CASE("sequences without rows, without keys, and with one of each are among the cases") {
  const std::vector<Case> cases = feature_cases(shipped_shapes);
  for (Mode mode : {Mode::dense, Mode::ragged, Mode::paged}) {
    size_t no_rows = 0, no_keys = 0, one_row = 0, one_key = 0, longer_q = 0;
    for (const Case &c : cases) {
      if (c.mode != mode || c.rows == Rows::bounds) continue;
      const Sequences sequences(c);
      for (size_t b = 0; b < size_t(c.batch); ++b) {
        const int q = sequences.q_lengths[b], kv = sequences.kv_lengths[b];
        CHECK(q <= c.q_len);
        CHECK(kv <= c.kv_len);
        no_rows += q == 0 && kv > 0;
        no_keys += kv == 0 && q > 0;
        one_row += q == 1 && kv > 1;
        one_key += kv == 1 && q > 1;
        longer_q += q > kv && kv > 0;
      }
    }
    CHECK(no_rows >= 3);
    CHECK(no_keys >= 3);
    CHECK(one_row >= 3);
    CHECK(one_key >= 3);
    CHECK(longer_q >= 3);
  }
}
