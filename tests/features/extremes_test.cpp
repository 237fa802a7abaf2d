//===- extremes_test.cpp - calls at the ends of what numbers and lengths can be -------------------------===//
//
// Sinks and scales that are huge or tiny, and calls without keys, on every kind of kernel.
//
//===----------------------------------------------------------------------------------------------------===//
#include "bounds/batch.h"
#include "cache_ops/fresh.h"
#include "calls/values.h"
#include "features/random_call.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

using namespace sluice::test;
namespace calls = sluice::calls;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// A kind of kernel: part of its name, and a problem that it serves.
struct Kind {
  std::string_view kernel;
  int32_t rows = 1, head_dim = 128;
  uint32_t type = SLUICE_F16, cache = 0, mode = calls::dense; // a cache of 0 is of the type of Q
  bool splits = false, in_k = false, columns = false;
};

constexpr Kind kinds[] = {
    {"_d128_q256_kv64_w8", 200},
    {"_d80_q128_kv32_w4", 70, 80},
    {"_d64_q128_kv32_w4", 70, 64, SLUICE_BF16},
    {"_q16_kv16_w4_decode"},
    {"_q16_kv16_w4_decode", 1, 96, SLUICE_BF16, 0, calls::ragged},
    {"_q128_kv64_w4", 130, 128, SLUICE_E4M3FNUZ},
    {"_q16_kv32_w4_decode", 1, 128, SLUICE_E4M3FNUZ},
    {"f16_e4m3fnuz_d128_q256_kv64_w8_paged", 200, 128, SLUICE_F16, SLUICE_E4M3FNUZ, calls::paged},
    {"bf16_i8_d128_q16_kv32_w4_decode", 1, 128, SLUICE_BF16, SLUICE_I8},
    {"f16_q8_0_d128", 1, 128, SLUICE_F16, SLUICE_Q8_0},
    {"bf16_q4_0_d128", 1, 128, SLUICE_BF16, SLUICE_Q4_0},
    {"f16_u4_d128", 1, 128, SLUICE_F16, SLUICE_U4},
    {"_d128_q16_kv16_w4_columns", 1, 128, SLUICE_BF16, 0, calls::dense, false, false, true},
    {"f16_e4m3fnuz_d128_q16_kv32_w4_columns", 1, 128, SLUICE_F16, SLUICE_E4M3FNUZ, calls::dense, false, false,
     true},
    {"_d576v512", 1, 576, SLUICE_F16, 0, calls::dense, false, true},
    {"_d512_q128_kv32_w4", 200, 512, SLUICE_BF16},
    {"_decode", 1, 128, SLUICE_F16, 0, calls::paged, true},
    {"_decode", 1, 64, SLUICE_F16, SLUICE_E4M3FNUZ, calls::dense, true},
};

calls::Problem problem_of_kind(const Kind &kind, uint32_t flags) {
  calls::Problem problem = problem_of({.mode = kind.mode,
                                       .group = kind.in_k ? 16 : 4,
                                       .head_dim = kind.head_dim,
                                       .type = kind.type,
                                       .flags = flags});
  if (kind.cache != 0) problem.k_type = problem.v_type = kind.cache;
  if (kind.type == SLUICE_E4M3FNUZ) problem.o_type = SLUICE_F16;
  if (kind.cache == SLUICE_U4) {
    problem.k_scale_kind = problem.v_scale_kind = SLUICE_SCALE_PER_GROUP;
    problem.scale_group = 32;
  }
  if (kind.in_k) {
    problem.flags |= calls::v_in_k;
    problem.head_dim_v = 512;
  }
  if (kind.columns) problem.v_pack = SLUICE_PACK_ALL;
  problem.max_q_len = kind.rows;
  if (kind.splits) {
    problem.max_batch = 2;
    problem.max_kv_len = 5000;
  }
  return problem;
}

void require_kernel(const calls::Problem &problem, const Kind &kind) {
  const std::string name = describe(plan_of(problem)).kernel;
  INFO(name);
  REQUIRE(name.find(kind.kernel) != std::string::npos);
}

/// Rows of Q, O and LSE of a call without keys, whose pointers to keys are null.
struct EmptyCall {
  explicit EmptyCall(const calls::Problem &of)
      : problem(of), rows(2 * problem.max_q_len), q(problem.q_type, elements(problem.head_dim_qk)),
        o(problem.o_type, elements(problem.head_dim_v)), lse(size_t(rows * problem.q_heads), 77.0f),
        starts(std::vector<int32_t>{0, problem.max_q_len, rows}), none(3, 0) {
    for (size_t n = 0; n < q.count(); ++n)
      q.set(n, 1);
    o.fill_with_bytes(untouched_byte);
    args.scale = calls::usual_scale(problem);
    args.batch = 2;
    args.q_len = problem.max_q_len;
    const bool has_starts = problem.mode == calls::ragged;
    const auto tensor = [&](void *data, int64_t dim) -> sluice_tensor {
      const int64_t row = dim * problem.q_heads;
      return {data, {has_starts ? 0 : row * args.q_len, row, dim, 1}};
    };
    args.q = tensor(q.data(), problem.head_dim_qk);
    args.o = tensor(o.data(), problem.head_dim_v);
    args.lse = tensor(lse.data(), 1);
    if (has_starts) {
      args.q_starts = starts.data();
      args.kv_starts = none.data();
    }
    if (problem.mode == calls::paged) args.kv_lengths = none.data();
  }
  size_t elements(int32_t head_dim) const { return size_t(rows * problem.q_heads * head_dim); }

  void run() { run_with_workspace(plan_of(problem), problem, args); }
  /// Checks that O is 0, and LSE the value of its head.
  void check(const std::function<float(int32_t head)> &expected) const {
    size_t wrong_o = 0, wrong_lse = 0;
    for (size_t n = 0; n < o.count(); ++n)
      wrong_o += o.get(n) != 0;
    for (size_t n = 0; n < lse.size(); ++n)
      wrong_lse += lse[n] != expected(int32_t(n) % problem.q_heads);
    CHECK(wrong_o == 0);
    CHECK(wrong_lse == 0);
  }

  const calls::Problem problem;
  const int32_t rows;
  Elements q, o;
  Visible<float> lse;
  Visible<int32_t> starts, none;
  calls::Args args;
};

} // namespace

TEST_CASE("a call without keys has an O of 0 and an LSE of -infinity or the sink", "[extremes]") {
  for (const Kind &kind : kinds)
    for (const bool sinks : {false, true}) {
      calls::Problem problem = problem_of_kind(kind, calls::causal);
      if (sinks) problem.flags |= calls::sinks;
      require_kernel(problem, kind);
      EmptyCall call(problem);
      Visible<float> logits(std::vector<float>(size_t(problem.q_heads), 0));
      for (size_t h = 0; h < logits.size(); ++h)
        logits[h] = h == 1 ? -3e38f : 0.75f * float(h);
      if (sinks) call.args.sink_logits = logits.data();
      call.run();
      call.check([&](int32_t head) { return sinks ? logits[size_t(head)] : -infinity; });
    }
}

TEST_CASE("a call without keys touches no memory of a bias, a mask or scales of keys", "[extremes]") {
  for (const Kind &kind : kinds) {
    if (kind.in_k || kind.columns) continue; // of these only few kernels change scores
    calls::Problem problem = problem_of_kind(kind, calls::mask_bits | calls::alibi);
    problem.bias_type = SLUICE_F32;
    problem.soft_cap = 5;
    if (kind.cache == SLUICE_E4M3FNUZ) problem.k_scale_kind = problem.v_scale_kind = SLUICE_SCALE_PER_TOKEN;
    INFO(kind.kernel);
    EmptyCall call(problem);
    Visible<float> slopes(size_t(problem.q_heads), 1);
    call.args.alibi_slopes = slopes.data();
    Fresh nothing(16);
    call.args.bias = {nothing.data() + 16, {0, 0, 0, 1}}; // past the end of the only memory there is
    call.args.mask = {nothing.data() + 16, {0, 0, 0, 1}};
    call.run();
    call.check([](int32_t) { return -infinity; });
  }
}

TEST_CASE("a cascade without prefixes, or with prefixes without keys", "[extremes]") {
  for (const int32_t rows : {1, 150})
    for (const int32_t prefixes : {0, 2}) {
      calls::Problem problem = problem_of({.group = 4, .flags = calls::causal | calls::prefixes});
      problem.max_q_len = rows;
      problem.max_q_tokens = 2 * rows;
      problem.max_prefixes = 2;
      problem.max_prefix_len = 100;
      Batch batch(problem, {{rows, 90, 1}, {rows, 40, 2}});
      Visible<int32_t> starts(std::vector<int32_t>{0, rows, 2 * rows});
      batch.args.prefix_count = prefixes;
      batch.args.prefix_q_starts = starts.data();
      batch.run();
      batch.compare_with_reference();
    }
}

TEST_CASE("sinks beyond the scores, and beyond F32 in units of exponents", "[extremes]") {
  // Of these, only 2.3e38 is finite to base 2.
  constexpr float large[] = {3e38f, 2.36e38f, 2.3e38f, std::numeric_limits<float>::max()};
  for (const Kind &kind : kinds) {
    if (kind.cache >= SLUICE_I8 || kind.columns || kind.in_k) continue; // a Batch has no such keys
    for (const uint32_t base : {0u, uint32_t{calls::lse_log2}})
      for (const float sign : {1.0f, -1.0f}) {
        calls::Problem problem = problem_of_kind(kind, calls::causal | calls::sinks);
        problem.flags |= base;
        INFO(kind.kernel << ", base " << base << ", sign " << sign);
        Batch batch(problem, {{kind.rows, kind.splits ? 4000 : 150, 1}, {kind.rows, 0, 2}});
        Visible<float> sinks(std::vector<float>(large, large + 4));
        for (size_t h = 0; h < sinks.size(); ++h)
          sinks[h] *= sign;
        sinks[1] = sign > 0 ? 0.5f : -infinity; // beside the others
        batch.args.sink_logits = sinks.data();
        batch.run();
        batch.compare_with_reference();
      }
  }
}

TEST_CASE("no key is lost from LSE for scales of V at both ends", "[extremes]") {
  for (const auto &[rows, keys] : {std::pair{1, 300}, {150, 300}, {1, 4000}}) {
    calls::Problem problem = problem_of({.group = 4, .flags = calls::causal});
    problem.k_type = problem.v_type = SLUICE_E4M3FNUZ;
    problem.v_scale_kind = SLUICE_SCALE_PER_TOKEN;
    problem.max_q_len = rows;
    problem.max_batch = 1;
    problem.max_kv_len = 4000;
    for (const int32_t period : {1, 2, 3, 64, 150}) {
      INFO(rows << " rows, " << keys << " keys, a scale for " << period);
      Batch batch(problem, {{rows, keys, 1}});
      Visible<float> scales(size_t(keys), 1);
      batch.args.v_scales = {scales.data(), {keys, 1, 1, 0}};
      batch.run();
      const std::vector<float> expected = batch.lse_of(0);
      for (int32_t key = 0; key < keys; ++key)
        scales[size_t(key)] = key / period % 2 == 0 ? 0x1p-60f : 0x1p40f;
      batch.run();
      const std::vector<float> got = batch.lse_of(0);
      double worst = 0;
      for (size_t n = 0; n < got.size(); ++n)
        worst = std::fmax(worst, std::isnan(got[n]) ? 1e9 : std::fabs(double{got[n]} - expected[n]));
      CHECK(worst <= 1e-4);
    }
  }
}

TEST_CASE("a scale of V that kernels do not serve is refused by its place", "[extremes]") {
  calls::Problem problem = problem_of({.kv_heads = 2});
  problem.k_type = problem.v_type = SLUICE_E4M3FNUZ;
  problem.v_scale_kind = SLUICE_SCALE_PER_TOKEN;
  Batch batch(problem, {{1, 20, 1}});
  for (const float wrong : {0x1.000002p40f, -1.0f, infinity, std::nanf("")}) {
    Visible<float> scales(40, 1);
    scales[2 * 7 + 1] = wrong;
    batch.args.v_scales = {scales.data(), {40, 2, 1, 0}};
    sluice_error error;
    sluice_error_init(&error, sizeof error);
    CHECK(sluice_attention_reference(calls::ProblemValues(problem), calls::ArgsValues(problem, batch.args),
                                     &error) == SLUICE_INVALID_ARGUMENT);
    CHECK(std::string(error.field) == "keys[0].kv.scales.v[0][7][1]");
  }
}

TEST_CASE("O of FP8 is divided by any scale", "[extremes]") {
  for (const int32_t rows : {1, 70, 200}) {
    calls::Problem problem = problem_of({.group = 4, .type = SLUICE_BF16});
    problem.o_type = SLUICE_E4M3FNUZ;
    problem.o_scale_kind = problem.v_scale_kind = SLUICE_SCALE_PER_TENSOR;
    problem.max_q_len = rows;
    Batch batch(problem, {{rows, 200, 1}});
    Visible<float> o_scale(1, 1.0f), v_scale(1, 1.0f);
    batch.args.o_scale = o_scale.data();
    batch.args.v_scale = v_scale.data();
    batch.run();
    const std::vector<uint16_t> expected = batch.o->copy();
    // With equal scales of V and O the results are those without either.
    for (const float scale : {0x1p-100f, 0x1p-60f, 0x1p100f, 0x1p126f, 0x1p127f}) {
      INFO(rows << " rows, a scale of " << scale);
      o_scale[0] = v_scale[0] = scale;
      batch.run();
      CHECK(batch.o->copy() == expected);
    }
    // A product of the two factors would be infinite, and 0 times that NaN, which is 0x80.
    o_scale[0] = 0x1.8p-126f;
    v_scale[0] = 1000;
    std::fill_n(batch.v->data(), batch.v->size(), uint8_t(0));
    batch.run();
    const std::vector<uint16_t> zeros = batch.output(0);
    const auto *const bytes = reinterpret_cast<const uint8_t *>(zeros.data());
    CHECK(std::all_of(bytes, bytes + rows * problem.q_heads * problem.head_dim_v,
                      [](uint8_t byte) { return byte == 0; }));
  }
}
