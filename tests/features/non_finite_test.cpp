//===- non_finite_test.cpp - infinity and NaN stay with the rows that see their key ---------------------===//
//
// Every KV head has one such element at a different key, so that one call has them at every offset of a tile.
// Rows that do not see the key have the bits of a call without it, and so do all other elements of O. The
// test computes which rows see it independently, by the header's words.
//
//===----------------------------------------------------------------------------------------------------===//
#include "bounds/batch.h"
#include "calls/problem.h"
#include "support/level.h"

#include <cmath>

using namespace sluice::test;
namespace calls = sluice::calls;

namespace {

enum class Special : uint8_t { nan, plus, minus };
enum class Hiding : uint8_t { none, bits, bias };

struct Call {
  const char *kernel; // a part of its name
  ProblemShape shape;
  int32_t rows, keys;
  int32_t first_key; // of head 0; head h has its at first_key + h
  int32_t head_dim_v = 0;
  uint32_t k_type = 0;
  bool fp8_queries = false;
  uint32_t alignment = SLUICE_BOTTOM_RIGHT;
  int32_t window_left = -1, sink_tokens = 0;
  Hiding hiding = Hiding::none;
  bool in_parts = false;
};

bool hides(const Call &call, int32_t row, int32_t key) {
  return call.hiding != Hiding::none && (row * 5 + key * 3) % 4 == 0;
}

bool sees(const Call &call, int32_t row, int32_t key) {
  const int32_t shift = call.alignment == SLUICE_TOP_LEFT ? 0 : call.keys - call.rows;
  const int32_t distance = key - row - shift;
  if ((call.shape.flags & calls::causal) && distance > 0) return false;
  if (call.window_left >= 0 && distance < -call.window_left && key >= call.sink_tokens) return false;
  return !hides(call, row, key);
}

calls::Problem problem_of_call(const Call &call) {
  calls::Problem problem = problem_of(call.shape);
  if (call.head_dim_v != 0) problem.head_dim_v = call.head_dim_v;
  if (call.k_type != 0) problem.k_type = problem.v_type = call.k_type;
  if (call.fp8_queries) problem.q_type = SLUICE_E4M3FNUZ;
  problem.mask_alignment = call.alignment;
  if (call.window_left >= 0) {
    problem.flags |= calls::window_left;
    problem.window_left = call.window_left;
    problem.sink_tokens = call.sink_tokens;
  }
  // The plan has one kernel, which is the one it names.
  problem.max_q_len = call.rows;
  if (call.in_parts) {
    problem.max_batch = 1;
    problem.max_kv_len = call.keys;
  }
  if (call.hiding == Hiding::bits) problem.flags |= calls::mask_bits;
  if (call.hiding == Hiding::bias) problem.bias_type = SLUICE_F32;
  return problem;
}

/// The call with memory, and with everything that hides keys by their numbers.
class Run {
public:
  explicit Run(const Call &call)
      : batch(problem_of_call(call), {{call.rows, call.keys, 5}}), mask(mask_of(call)), bias(bias_of(call)) {
    if (call.hiding == Hiding::bits) batch.args.mask = {mask.data(), {0, 0, (call.keys + 7) / 8, 1}};
    if (call.hiding == Hiding::bias) batch.args.bias = {bias.data(), {0, 0, call.keys, 1}};
  }

  Batch batch;

private:
  static Visible<uint8_t> mask_of(const Call &call) {
    const size_t row_bytes = size_t(call.keys + 7) / 8;
    std::vector<uint8_t> bytes(size_t(call.rows) * row_bytes);
    for (int32_t row = 0; row < call.rows; ++row)
      for (int32_t key = 0; key < call.keys; ++key)
        if (!hides(call, row, key)) bytes[size_t(row) * row_bytes + size_t(key / 8)] |= uint8_t(1 << key % 8);
    return Visible<uint8_t>(bytes);
  }
  static Visible<float> bias_of(const Call &call) {
    std::vector<float> values(size_t(call.rows) * size_t(call.keys));
    for (int32_t row = 0; row < call.rows; ++row)
      for (int32_t key = 0; key < call.keys; ++key)
        if (hides(call, row, key)) values[size_t(row) * size_t(call.keys) + size_t(key)] = -INFINITY;
    return Visible<float>(values);
  }

  Visible<uint8_t> mask;
  Visible<float> bias;
};

uint16_t bits_of(uint32_t type, Special special) {
  if (type == SLUICE_E4M3FNUZ) return 0x80;
  const uint16_t infinity = type == SLUICE_F16 ? 0x7c00 : 0x7f80;
  return special == Special::nan    ? infinity | 1 << 6
         : special == Special::plus ? infinity
                                    : infinity | 0x8000;
}

Special special_of(uint16_t bits, uint32_t type) {
  const uint16_t infinity = type == SLUICE_F16 ? 0x7c00 : 0x7f80;
  return bits == infinity ? Special::plus : bits == (infinity | 0x8000) ? Special::minus : Special::nan;
}

bool is_finite(uint16_t bits, uint32_t type) {
  return (bits & 0x7fff) < (type == SLUICE_F16 ? 0x7c00 : 0x7f80);
}

int32_t column_of(int32_t head, int32_t columns) {
  return head * 7 % columns;
}

void place(Batch &batch, const Call &call, bool in_k, Special special) {
  const size_t element = batch.problem.k_type == SLUICE_E4M3FNUZ ? 1 : 2;
  const int32_t columns = in_k ? batch.problem.head_dim_qk : batch.problem.head_dim_v;
  for (int32_t head = 0; head < batch.problem.kv_heads; ++head) {
    if (call.first_key + head >= call.keys) continue;
    // A score is infinite with either sign.
    const bool is_minus = in_k && special != Special::nan && head % 2 == 1;
    const uint16_t bits = bits_of(batch.problem.k_type, is_minus ? Special::minus : special);
    uint8_t *row = (in_k ? batch.k : batch.v)->data() + batch.row_place(in_k, 0, call.first_key + head, head);
    std::memcpy(row + size_t(column_of(head, columns)) * element, &bits, element);
  }
}

/// Rows that are wrong, of each kind.
struct Wrong {
  int hidden = 0;    // do not see the key, but show it
  int lost = 0;      // see it, but do not show it, or show something else
  int elsewhere = 0; // show it at the wrong place
  int lse = 0;
  bool operator==(const Wrong &) const = default;
};

Wrong compare(const Call &call, const Run &clean, const Run &run, bool in_k, Special special) {
  const calls::Problem &problem = run.batch.problem;
  const std::vector<uint16_t> before = clean.batch.output(0), after = run.batch.output(0);
  const std::vector<float> lse_before = clean.batch.lse_of(0), lse_after = run.batch.lse_of(0);
  const int32_t group = problem.q_heads / problem.kv_heads, columns = problem.head_dim_v;
  Wrong wrong;
  for (int32_t row = 0; row < call.rows; ++row)
    for (int32_t head = 0; head < problem.q_heads; ++head) {
      const int32_t kv_head = head / group, key = call.first_key + kv_head;
      const bool seen = key < call.keys && sees(call, row, key);
      const size_t at = size_t(row) * size_t(problem.q_heads) + size_t(head);
      const bool same_lse = std::memcmp(&lse_before[at], &lse_after[at], sizeof(float)) == 0;
      bool others = true, has_nan = true;
      for (int32_t e = 0; e < columns; ++e) {
        const size_t place = at * size_t(columns) + size_t(e);
        has_nan = has_nan && !is_finite(after[place], problem.o_type);
        if (in_k || e != column_of(kv_head, columns)) others = others && before[place] == after[place];
      }
      if (in_k) {
        if (!seen) wrong.hidden += !others || !same_lse;
        // Infinite elements give scores of either sign, and keys with a score of -infinity have no weight.
        if (seen && special == Special::nan) wrong.lost += !has_nan || !std::isnan(lse_after[at]);
        continue;
      }
      wrong.elsewhere += !others;
      wrong.lse += !same_lse;
      const size_t place = at * size_t(columns) + size_t(column_of(kv_head, columns));
      if (!seen) wrong.hidden += before[place] != after[place];
      if (seen)
        wrong.lost +=
            is_finite(after[place], problem.o_type) || special_of(after[place], problem.o_type) != special;
    }
  return wrong;
}

void check(const Call &call) {
  const calls::Problem problem = problem_of_call(call);
  const PlanHandle plan = plan_of(problem);
  INFO(describe(plan).kernel << ", keys from " << call.first_key << " of " << call.keys << ", " << call.rows
                             << " rows");
  REQUIRE(std::string(describe(plan).kernel).find(call.kernel) != std::string::npos);
  REQUIRE((describe(plan).workspace_bytes != 0) == call.in_parts);
  Run clean(call);
  clean.batch.run(plan);
  for (const bool in_k : {false, true})
    for (const Special special : {Special::nan, Special::plus, Special::minus}) {
      if (problem.k_type == SLUICE_E4M3FNUZ && special != Special::nan) continue; // it has no infinity
      if (in_k && special == Special::minus) continue;
      INFO((in_k ? "in K" : "in V") << ", kind " << int(special));
      Run run(call);
      place(run.batch, call, in_k, special);
      run.batch.run(plan);
      const Wrong wrong = compare(call, clean, run, in_k, special);
      INFO(wrong.hidden << " rows show what they do not see, " << wrong.lost << " do not show what they see, "
                        << wrong.elsewhere << " show it elsewhere, " << wrong.lse << " in LSE");
      CHECK(wrong == Wrong{});
    }
}

ProblemShape shape(uint32_t type, int32_t head_dim, int32_t kv_heads, int32_t group = 1,
                   uint32_t flags = calls::causal, uint32_t mode = calls::dense) {
  return {
      .mode = mode, .group = group, .kv_heads = kv_heads, .head_dim = head_dim, .type = type, .flags = flags};
}

} // namespace

TEST_CASE("at every offset of a diagonal tile, 32 rows a wave", "[non-finite]") {
  size_t item = 0;
  for (const uint32_t type : {SLUICE_F16, SLUICE_BF16})
    for (const int32_t head_dim : {64, 128}) {
      if (!takes(item++, 3)) continue; // F16 with d64, BF16 with d128
      const char *kernel = head_dim == 64 ? "_d64_q128_kv32_w4" : "_d128_q256_kv64_w8";
      // A ragged chunk of the newest rows, and the first rows with more keys.
      check({kernel, shape(type, head_dim, 64), 150, 171, 64});
      check({.kernel = kernel,
             .shape = shape(type, head_dim, 64),
             .rows = 150,
             .keys = 171,
             .first_key = 64,
             .alignment = SLUICE_TOP_LEFT});
    }
}

TEST_CASE("at every offset of a window's edge, beside first keys that stay visible", "[non-finite]") {
  // Row 9 sees keys from 0 on, row 136 from 127.
  for (const int32_t first : {0, 64})
    for (const uint32_t flags : {uint32_t(calls::causal), 0u})
      check({.kernel = "_q256_kv64_w8",
             .shape = shape(flags == 0 ? SLUICE_F16 : SLUICE_BF16, 128, 64, 1, flags),
             .rows = 150,
             .keys = 171,
             .first_key = first,
             .window_left = 30,
             .sink_tokens = 5});
}

TEST_CASE("hidden by mask bits and a bias of -infinity", "[non-finite]") {
  for (const uint32_t type : {SLUICE_F16, SLUICE_BF16}) {
    check({.kernel = "_d128_q128_kv32_w4",
           .shape = shape(type, 128, 64, 1, 0),
           .rows = 40,
           .keys = 131,
           .first_key = 64,
           .hiding = type == SLUICE_F16 ? Hiding::bits : Hiding::bias});
    for (const Hiding hiding : {Hiding::bits, Hiding::bias})
      check({.kernel = "_d80_q128_kv32_w4",
             .shape = shape(type, 80, 32, 2, 0),
             .rows = 13,
             .keys = 40,
             .first_key = 0,
             .hiding = hiding});
  }
}

TEST_CASE("in pages", "[non-finite]") {
  check({.kernel = "_q256_kv64_w8_paged",
         .shape = shape(SLUICE_F16, 128, 64, 1, calls::causal, calls::paged),
         .rows = 150,
         .keys = 171,
         .first_key = 64});
}

TEST_CASE("at every offset of a diagonal tile, in heads of all sizes", "[non-finite]") {
  struct Size {
    int32_t head_dim;
    std::string kernel, from_fp8; // parts of the names
  };
  const Size sizes[] = {
      {48, "_d64_q128_kv32_w4", "_d64_q128_kv32_w4"},    {80, "_d80_q128_kv32_w4", "_d80_q128_kv32_w4"},
      {96, "_d96_q128_kv32_w4", "_d96_q128_kv32_w4"},    {104, "_d128_q128_kv32_w4", "_d128_q256_kv64_w8"},
      {192, "_d192_q128_kv64_w4", "_d192_q128_kv64_w4"}, {256, "_d256_q128_kv64_w4", "_d256_q128_kv64_w4"},
      {64, "_d64_q128_kv32_w4", "_d64_q128_kv32_w4"}}; // a number that three does not divide
  size_t item = 0;
  for (const uint32_t type : {SLUICE_F16, SLUICE_BF16})
    for (const uint32_t k_type : {type, uint32_t(SLUICE_E4M3FNUZ)})
      for (const Size &size : sizes) {
        if (!takes(item++, 3)) continue;
        const std::string &kernel = k_type == type ? size.kernel : size.from_fp8, paged = kernel + "_paged";
        // More rows than a wave has, and the tokens of groups.
        check({.kernel = kernel.c_str(),
               .shape = shape(type, size.head_dim, 16),
               .rows = 40,
               .keys = 53,
               .first_key = 16,
               .k_type = k_type});
        check({.kernel = paged.c_str(),
               .shape = shape(type, size.head_dim, 16, 4, calls::causal, calls::paged),
               .rows = 9,
               .keys = 37,
               .first_key = 21,
               .k_type = k_type,
               .window_left = 9,
               .sink_tokens = 2});
      }
}

TEST_CASE("at every offset of a diagonal tile, 16 rows a wave", "[non-finite]") {
  size_t item = 0;
  for (const uint32_t type : {SLUICE_F16, SLUICE_BF16})
    for (const uint32_t k_type : {type, uint32_t(SLUICE_E4M3FNUZ)})
      for (const int32_t head_dim : {48, 80, 96, 104, 192, 256, 512}) {
        if (!takes(item++, 3)) continue;
        check({.kernel = "_w4_decode",
               .shape = shape(type, head_dim, 16, 2),
               .rows = 6,
               .keys = 37,
               .first_key = 21,
               .k_type = k_type});
      }
}

TEST_CASE("at every offset of a diagonal tile, with FP8 queries", "[non-finite]") {
  size_t item = 0;
  for (const uint32_t type : {SLUICE_F16, SLUICE_BF16})
    for (const int32_t head_dim : {48, 128, 192, 256})
      for (const Hiding hiding : {Hiding::none, type == SLUICE_F16 ? Hiding::bits : Hiding::bias}) {
        if (!takes(item++, 3)) continue;
        check({.kernel = "e4m3fnuz_to",
               .shape =
                   shape(type, head_dim, 32, 1, calls::causal, head_dim == 128 ? calls::paged : calls::dense),
               .rows = 40,
               .keys = 69,
               .first_key = 32,
               .k_type = SLUICE_E4M3FNUZ,
               .fp8_queries = true,
               .hiding = hiding});
      }
}

TEST_CASE("in the widest heads", "[non-finite]") {
  for (const uint32_t type : {SLUICE_F16, SLUICE_BF16})
    check({.kernel = "_d512_q128_kv32_w4",
           .shape = shape(type, 512, 16),
           .rows = 20,
           .keys = 25,
           .first_key = 8});
}

TEST_CASE("in parts of the keys", "[non-finite]") {
  check({.kernel = "_d128_q16_kv16_w4_decode",
         .shape = shape(SLUICE_F16, 128, 16, 8),
         .rows = 2,
         .keys = 2500,
         .first_key = 2484,
         .in_parts = true});
}
