//===- lse_layouts_test.cpp - LSEs in the layouts of other libraries, from a run into a merge -----------===//
//
// Attention over two parts of the keys, whose results are in buffers of their own, merged: it is attention
// over all of them.
//
//===----------------------------------------------------------------------------------------------------===//
#include "cache_ops/device.h"
#include "calls/values.h"
#include "conformance/shared/numbers.h"

#include <array>
#include <cmath>
#include <vector>

using namespace sluice::test;
namespace calls = sluice::calls;

namespace {

constexpr int32_t batch = 2, rows = 5, keys = 40, first_keys = 24, heads = 4, kv_heads = 2, dim = 64;
constexpr int32_t tokens = batch * rows;
constexpr size_t o_elements = size_t(tokens) * heads * dim, lse_elements = size_t(tokens) * heads;

/// Where LSE [sequence][row][head] is.
struct Layout {
  const char *name;
  int64_t sequence, row, head;
};
constexpr Layout layouts[] = {
    {"[token][head]", rows * heads, heads, 1},          // FlashInfer
    {"[head][token]", rows, 1, tokens},                 // FlashAttention's packed sequences
    {"[sequence][head][token]", rows * heads, 1, rows}, // FlashAttention's dense calls
};

std::vector<uint16_t> draw(size_t count, uint64_t seed) {
  Numbers numbers(seed);
  std::vector<uint16_t> out(count);
  for (uint16_t &bits : out)
    bits = sluice::conformance::encode(sluice::conformance::f16_format, numbers.between(-2, 2));
  return out;
}

calls::Problem make_problem() {
  calls::Problem problem;
  problem.flags = calls::write_lse;
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = heads;
  problem.kv_heads = kv_heads;
  problem.head_dim_qk = problem.head_dim_v = dim;
  return problem;
}

calls::Args make_args(uint16_t *q, uint16_t *k, uint16_t *v, int32_t begin, int32_t count, uint16_t *o,
                      float *lse, const Layout &layout) {
  constexpr int64_t q_token = heads * dim, k_token = kv_heads * dim;
  calls::Args args;
  args.scale = 1 / std::sqrt(double(dim));
  args.batch = batch;
  args.q_len = rows;
  args.kv_len = count;
  args.q = {q, {rows * q_token, q_token, dim, 1}};
  args.k = {k + begin * k_token, {keys * k_token, k_token, dim, 1}};
  args.v = {v + begin * k_token, {keys * k_token, k_token, dim, 1}};
  args.o = {o, {rows * q_token, q_token, dim, 1}};
  args.lse = {lse, {layout.sequence, layout.row, layout.head, 0}};
  return args;
}

void require_ok(sluice_status status, const sluice_error &error) {
  INFO(error.field << ": " << error.message);
  REQUIRE(status == SLUICE_OK);
}

} // namespace

TEST_CASE("a run writes LSEs in every layout, and a merge reads and writes them", "[merge]") {
  const calls::Problem problem = make_problem();
  Visible<uint16_t> q(draw(o_elements, 1)), k(draw(size_t(batch) * keys * kv_heads * dim, 2)),
      v(draw(size_t(batch) * keys * kv_heads * dim, 3));
  sluice_error error;
  sluice_error_init(&error, sizeof error);
  sluice_plan *plan = nullptr;
  require_ok(sluice_attention_plan(device(), calls::ProblemValues(problem), &plan, &error), error);
  for (const Layout &layout : layouts) {
    INFO(layout.name);
    std::vector<uint16_t> all_o(o_elements);
    std::vector<float> all_lse(lse_elements);
    const calls::Args all =
        make_args(q.data(), k.data(), v.data(), 0, keys, all_o.data(), all_lse.data(), layout);
    require_ok(
        sluice_attention_reference(calls::ProblemValues(problem), calls::ArgsValues(problem, all), &error),
        error);

    // The second part comes first in memory; one of them holds the merge's result.
    Visible<uint16_t> o(2 * o_elements, uint16_t{0x7e00});
    Visible<float> lse(2 * lse_elements, std::nanf(""));
    const std::array parts = {
        make_args(q.data(), k.data(), v.data(), 0, first_keys, o.data() + o_elements,
                  lse.data() + lse_elements, layout),
        make_args(q.data(), k.data(), v.data(), first_keys, keys - first_keys, o.data(), lse.data(), layout)};
    for (const calls::Args &part : parts)
      require_ok(sluice_attention_run(plan, calls::ArgsValues(problem, part), nullptr, &error), error);
    sluice_merge_args merge = {};
    merge.struct_size = sizeof merge;
    merge.lse_base = SLUICE_LSE_LN;
    merge.parts.type = merge.o_format.type = SLUICE_F16;
    merge.parts.count = 2;
    merge.tokens = tokens;
    merge.heads = heads;
    merge.head_dim = dim;
    merge.parts.o = {o.data() + o_elements, {-int64_t(o_elements), heads * dim, dim, 1}};
    merge.parts.lse = {lse.data() + lse_elements, {-int64_t(lse_elements), layout.row, layout.head, 0}};
    merge.o = {o.data(), {0, heads * dim, dim, 1}};
    merge.lse = {lse.data(), {0, layout.row, layout.head, 0}};
    if (layout.sequence != rows * layout.row) {
      merge.sequence_tokens = rows;
      merge.parts.lse_sequence_stride = merge.lse_sequence_stride = layout.sequence;
    }
    run_on_device(merge, sluice_attention_merge);

    // Results of F16 in F16: two roundings of numbers below 2, and sums of 40 terms in F32.
    int wrong = 0;
    for (size_t i = 0; i < o_elements; ++i) {
      const auto number = [](uint16_t bits) {
        return sluice::conformance::decode(sluice::conformance::f16_format, bits);
      };
      wrong += !(std::fabs(number(o[i]) - number(all_o[i])) <= 4e-3);
    }
    for (size_t i = 0; i < lse_elements; ++i)
      wrong += !(std::fabs(lse[i] - all_lse[i]) <= 1e-4);
    CHECK(wrong == 0);
  }
  sluice_plan_destroy(plan);
}
