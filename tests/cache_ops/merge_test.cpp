//===- merge_test.cpp - the bits of results that are merged from parts of the keys ----------------------===//
//
// The conformance kit compares merges with an oracle, within a margin. These tests compare bits: with those
// of the same parts merged in another way, and with those of the only part that counts.
//
//===----------------------------------------------------------------------------------------------------===//
#include "cache_ops/device.h"

#include <functional>
#include <limits>

using namespace sluice::test;

namespace {

constexpr int rows = 2;

/// A merge in F32: [part][row][element], and LSEs [part][row].
struct Merged {
  std::vector<float> partial, partial_lse, o, lse;
};

/// Merges parts with `gap` elements and LSEs between them; only those count that `counts` names. The numbers
/// of a part are the same in all calls with equal widths.
Merged merge(int parts, int dim, int gap, const std::function<bool(int part)> &counts) {
  Numbers numbers{uint64_t(dim)};
  const int part_elements = rows * dim + gap, part_lses = rows + gap;
  Visible<float> partial(size_t(parts * part_elements), 0.0f), partial_lse(size_t(parts * part_lses), 0.0f);
  for (int part = 0; part < parts; ++part)
    for (int row = 0; row < rows; ++row) {
      const auto drawn = float(numbers.between(-4, 4));
      partial_lse[size_t(part * part_lses + row)] =
          counts(part) ? drawn : -std::numeric_limits<float>::infinity();
      for (int e = 0; e < dim; ++e)
        partial[size_t(part * part_elements + row * dim + e)] = float(numbers.between(-3, 3));
    }
  Visible<float> o(size_t(rows * dim), 77.0f), lse(size_t(rows), 77.0f);
  sluice_merge_args call = {};
  call.struct_size = sizeof call;
  call.parts.type = call.o_format.type = SLUICE_F32;
  call.parts.count = parts;
  call.tokens = rows;
  call.heads = 1;
  call.head_dim = dim;
  call.lse_base = SLUICE_LSE_LN;
  call.parts.o = {partial.data(), {part_elements, dim, dim, 1}};
  call.parts.lse = {partial_lse.data(), {part_lses, 1, 1, 0}};
  call.o = {o.data(), {0, dim, dim, 1}};
  call.lse = {lse.data(), {0, 1, 1, 0}};
  run_on_device(call, sluice_attention_merge);
  return {partial.copy(), partial_lse.copy(), o.copy(), lse.copy()};
}

/// The first `counting` parts of all.
Merged merge_first(int counting, int parts, int dim, int gap = 0) {
  return merge(parts, dim, gap, [=](int part) { return part < counting; });
}

} // namespace

TEST_CASE("the only part that counts is copied, wherever it is", "[merge]") {
  constexpr int most_parts = 65536, dim = 8;
  for (const int parts : {4, 40, 130, most_parts})
    for (const int only : {0, 2, parts - 1}) {
      INFO("part " << only << " of " << parts);
      const Merged merged = merge(parts, dim, 0, [=](int part) { return part == only; });
      const auto first = merged.partial.begin() + only * rows * dim;
      CHECK(merged.o == std::vector<float>(first, first + rows * dim));
      const auto first_lse = merged.partial_lse.begin() + only * rows;
      CHECK(merged.lse == std::vector<float>(first_lse, first_lse + rows));
    }
}

TEST_CASE("bits do not depend on how many parts follow without a weight", "[merge]") {
  // A batch-invariant plan has as many splits as its bound on the keys allows.
  for (const int dim : {8, 64, 128, 512})
    for (const int parts : {1, 2, 3, 4, 5, 7, 9, 17, 33, 70}) {
      const Merged expected = merge_first(parts, parts, dim);
      for (const int more : {1, 3, 13, 60, 190}) {
        INFO(parts << " of " << parts + more << " parts, rows of " << dim);
        const Merged merged = merge_first(parts, parts + more, dim);
        CHECK(merged.o == expected.o);
        CHECK(merged.lse == expected.lse);
      }
    }
}

TEST_CASE("bits do not depend on whether the parts are read at once", "[merge]") {
  for (const int dim : {8, 40, 128, 512})
    for (const int parts : {1, 2, 4, 7, 16, 33}) {
      INFO(parts << " parts, rows of " << dim);
      const Merged at_once = merge_first(parts, parts, dim), apart = merge_first(parts, parts, dim, 8);
      CHECK(at_once.o == apart.o);
      CHECK(at_once.lse == apart.lse);
    }
}
