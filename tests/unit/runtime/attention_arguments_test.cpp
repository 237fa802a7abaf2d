//===- attention_arguments_test.cpp - the kernel arguments of problems and calls ------------------------===//
#include "calls/args.h"
#include "calls/problem.h"
#include "runtime/attention_arguments.h"

#include "package/attention_launch.h"
#include "runtime/problem.h"
#include "support/passed_members.h"

#include <catch2/catch.hpp>

#include <cstdint>

using namespace sluice;
using namespace sluice::runtime;

namespace {

package::KernelEntry kernel() {
  package::KernelEntry kernel;
  kernel.name = {"attention_forward", "f16", 128, 128, 128, 64, 4};
  return kernel;
}

calls::Problem plain() {
  calls::Problem problem = {};
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = 10;
  problem.kv_heads = 2;
  problem.head_dim_qk = 120;
  problem.head_dim_v = 104;
  return problem;
}

uint32_t flags_of(void (*change)(calls::Problem &)) {
  calls::Problem problem = plain();
  change(problem);
  return problem_arguments(kernel(), problem).score_flags;
}

/// Fills in the call's own keys, with results that are not split.
void fill(package::AttentionKernargs &args, const calls::Problem &problem, const calls::Args &call) {
  fill_own(args, problem, call, own_level(problem, call), final_results(problem, call));
}

template <typename Element> const Element *at(uint64_t address) {
  return reinterpret_cast<const Element *>(address);
}

} // namespace

TEST_CASE("each change of the scores has its flags, and no others", "[arguments]") {
  using namespace package;
  CHECK(flags_of([](calls::Problem &) {}) == 0);
  CHECK(flags_of([](calls::Problem &p) { p.mask_alignment = SLUICE_TOP_LEFT; }) == score_top_left);
  CHECK(flags_of([](calls::Problem &p) { p.soft_cap = 1; }) == score_changed);
  CHECK(flags_of([](calls::Problem &p) { p.flags = calls::alibi; }) == score_changed);
  CHECK(flags_of([](calls::Problem &p) { p.flags = calls::mask_bits; }) == score_changed);
  CHECK(flags_of([](calls::Problem &p) { p.flags = calls::sinks | calls::write_lse; }) == 0);
  CHECK(flags_of([](calls::Problem &p) { p.bias_type = SLUICE_F32; }) == score_changed);
  CHECK(flags_of([](calls::Problem &p) { p.bias_type = SLUICE_F16; }) == (score_changed | score_bias_f16));
  CHECK(flags_of([](calls::Problem &p) { p.bias_type = SLUICE_BF16; }) == (score_changed | score_bias_bf16));
  CHECK(flags_of([](calls::Problem &p) { p.q_scale_kind = SLUICE_SCALE_PER_HEAD; }) == score_q_scale_heads);
  CHECK(flags_of([](calls::Problem &p) { p.k_scale_kind = SLUICE_SCALE_PER_HEAD; }) == score_k_scale_heads);
  CHECK(flags_of([](calls::Problem &p) { p.v_scale_kind = SLUICE_SCALE_PER_HEAD; }) == score_v_scale_heads);
  CHECK(flags_of([](calls::Problem &p) {
          p.q_scale_kind = p.k_scale_kind = p.v_scale_kind = SLUICE_SCALE_PER_TENSOR;
        }) == 0);
  CHECK(flags_of([](calls::Problem &p) { p.flags = calls::page_index_64; }) == score_page_index_64);
  CHECK(flags_of([](calls::Problem &p) { p.flags = calls::missing_pages; }) == score_pages_hidden);
  CHECK(flags_of([](calls::Problem &p) { p.o_type = SLUICE_F32; }) == score_o_f32);
  CHECK(flags_of([](calls::Problem &p) { p.o_type = SLUICE_E4M3FNUZ; }) == score_o_fp8);
  CHECK(flags_of([](calls::Problem &p) {
          p.o_type = SLUICE_E4M3FNUZ;
          p.o_scale_kind = SLUICE_SCALE_PER_HEAD;
        }) == (score_o_fp8 | score_o_scale_heads));
  CHECK(flags_of([](calls::Problem &p) { p.k_scale_kind = SLUICE_SCALE_PER_TOKEN; }) == score_key_scales);
  CHECK(flags_of([](calls::Problem &p) { p.v_scale_kind = SLUICE_SCALE_PER_PAGE; }) == score_key_scales);
  CHECK(flags_of([](calls::Problem &p) { p.flags = calls::mask_bits | calls::mask_bits_of_new; }) ==
        (score_changed | score_mask_new_rows));
  CHECK(flags_of([](calls::Problem &p) { p.flags = calls::causal_by_sequence; }) == score_of_sequence);
  CHECK(flags_of([](calls::Problem &p) { p.mask_alignment = SLUICE_GIVEN_DIAGONAL; }) == score_of_sequence);
  CHECK(flags_of([](calls::Problem &p) { p.flags = calls::spans; }) == 0);
}

TEST_CASE("a problem's numbers are a kernel's", "[arguments]") {
  const package::AttentionKernargs none = problem_arguments(kernel(), plain());
  CHECK(none.head_dim_qk == 120);
  CHECK(none.head_dim_v == 104);
  CHECK(none.group == 5);
  CHECK(none.page_rows == INT32_MAX);
  CHECK(none.k_pack_log2 == 31);
  CHECK(none.window_left == package::kernarg_no_window);
  CHECK(none.window_right == package::kernarg_no_window);
  CHECK(none.sink_tokens == 0);
  CHECK(none.cap_log2e == 0);
  CHECK(none.two_per_cap == 0);
  CHECK(none.lse_per_log2 == Approx(0.693147f));

  calls::Problem problem = plain();
  problem.mode = calls::paged;
  problem.page_size = 48;
  problem.k_pack = 16;
  problem.flags = calls::window_left | calls::window_right;
  problem.window_left = 100;
  problem.window_right = 7;
  problem.sink_tokens = 3;
  problem.soft_cap = 30;
  problem.flags |= calls::lse_log2;
  const package::AttentionKernargs all = problem_arguments(kernel(), problem);
  CHECK(all.page_rows == 48);
  CHECK(all.k_pack_log2 == 4);
  CHECK(all.window_left == 100);
  CHECK(all.window_right == 7);
  CHECK(all.sink_tokens == 3);
  CHECK(all.cap_log2e == Approx(30 * 1.442695f));
  CHECK(all.two_per_cap == Approx(2.0f / 30));
  CHECK(all.lse_per_log2 == 1);

  // A window that covers all keys is not a window; the smallest cap is one.
  problem.window_left = problem.window_right = problem.sink_tokens = INT32_MAX;
  problem.soft_cap = 1;
  problem.k_pack = 1;
  const package::AttentionKernargs far = problem_arguments(kernel(), problem);
  CHECK(far.window_left == package::kernarg_no_window);
  CHECK(far.window_right == package::kernarg_no_window);
  CHECK(far.sink_tokens == package::kernarg_no_window);
  CHECK(far.cap_log2e == Approx(1.442695f));
  CHECK(far.k_pack_log2 == 0);
  problem.flags = calls::causal;
  CHECK(problem_arguments(kernel(), problem).window_right == 0);
  CHECK(problem_arguments(kernel(), problem).window_left == package::kernarg_no_window);
}

TEST_CASE("one pack of V is packs of one token to a kernel", "[arguments]") {
  struct Packs {
    int32_t page_size, v_pack;
    uint32_t log2;
    int64_t token_stride;
  };
  for (const Packs &packs : {Packs{0, SLUICE_PACK_ALL, 0, 1},
                             {16, SLUICE_PACK_ALL, 0, 1},
                             {16, 16, 0, 1},
                             {48, 16, 4, 640},
                             {16, 8, 3, 640}}) {
    calls::Problem problem = plain();
    problem.mode = packs.page_size != 0 ? calls::paged : calls::dense;
    problem.page_size = packs.page_size;
    problem.v_pack = packs.v_pack;
    calls::Args call = {};
    call.batch = 2;
    call.kv_len = 48;
    call.v.stride[1] = packs.v_pack == SLUICE_PACK_ALL ? 1 : 640;
    call.v.stride[3] = 24;
    package::AttentionKernargs args = problem_arguments(kernel(), problem);
    fill(args, problem, call);
    CHECK(args.v_pack_log2 == packs.log2);
    CHECK(args.v_token_stride == packs.token_stride);
    CHECK(args.v_column_stride == 24);
    problem.v_pack = 0;
    args = problem_arguments(kernel(), problem);
    fill(args, problem, call);
    CHECK(args.v_token_stride == call.v.stride[1]);
    CHECK(args.v_column_stride == 0);
  }
}

TEST_CASE("each member of a call reaches its own argument", "[arguments]") {
  calls::Problem problem = plain();
  problem.mode = calls::paged;
  problem.page_size = 16;
  problem.k_pack = 1;
  calls::Args call = {};
  call.batch = 2;
  call.q_len = 3;
  call.kv_len = 4;
  call.scale = 0.5f;
  call.k.stride[3] = 33;
  call.q_starts = at<int32_t>(0x100);
  call.kv_starts = at<int32_t>(0x200);
  call.q_lengths = at<int32_t>(0x300);
  call.kv_lengths = at<int32_t>(0x400);
  call.page_table = at<int32_t>(0x500);
  call.page_starts = at<int32_t>(0x600);
  call.page_table_stride = 77;
  call.bias = {const_cast<int32_t *>(at<int32_t>(0x700)), {11, 12, 13, 14}};
  call.mask = {const_cast<int32_t *>(at<int32_t>(0x800)), {21, 22, 23, 1}};
  call.alibi_slopes = at<float>(0x900);
  call.sink_logits = at<float>(0xa00);
  call.q_scale = at<float>(0xb00);
  call.k_scale = at<float>(0xc00);
  call.v_scale = at<float>(0xd00);
  static const test::Passed<calls::Args, package::AttentionKernargs> table[] = {
      PASSES(c.q_len, a.q_len),
      PASSES(c.kv_len, a.kv_len),
      PASSES(c.q_starts, a.q_starts),
      PASSES(c.kv_starts, a.kv_starts),
      PASSES(c.q_lengths, a.q_lengths),
      PASSES(c.kv_lengths, a.kv_lengths),
      PASSES(c.page_table, a.page_table),
      PASSES(c.page_starts, a.page_starts),
      PASSES(c.page_table_stride, a.page_table_stride),
      PASSES(c.k.stride[3], a.k_pack_stride),
      PASSES(c.bias.data, a.bias),
      PASSES(c.bias.stride[0], a.bias_batch_stride),
      PASSES(c.bias.stride[1], a.bias_head_stride),
      PASSES(c.bias.stride[2], a.bias_row_stride),
      PASSES(c.bias.stride[3], a.bias_key_stride),
      PASSES(c.mask.data, a.mask),
      PASSES(c.mask.stride[0], a.mask_batch_stride),
      PASSES(c.mask.stride[1], a.mask_head_stride),
      PASSES(c.mask.stride[2], a.mask_row_stride),
      PASSES(c.alibi_slopes, a.alibi_slopes),
      PASSES(c.sink_logits, a.sink_logits),
      PASSES(c.q_scale, a.q_scale),
      PASSES(c.k_scale, a.k_scale),
      PASSES(c.v_scale, a.v_scale)};
  package::AttentionKernargs args = problem_arguments(kernel(), problem);
  test::check_passed(table, {call}, [&](const calls::Args &one) {
    fill(args, problem, one);
    return args;
  });
  CHECK(args.scale_log2e == Approx(0.5f * 1.442695f));
  // Without packs the last stride is not an argument.
  problem.k_pack = 0;
  fill(args, problem, call);
  CHECK(args.k_pack_stride == 0);
}

TEST_CASE("tokens and pages are bounds if they are known", "[arguments]") {
  calls::Problem problem = plain();
  calls::Args call = {};
  package::AttentionKernargs args = {};
  fill(args, problem, call);
  CHECK(args.q_rows == INT32_MAX);
  CHECK(args.kv_rows == INT32_MAX);
  CHECK(args.last_page_low == 0); // no page is looked up
  CHECK(args.last_page_high == 0);
  call.q_tokens = 20;
  call.kv_tokens = 30;
  fill(args, problem, call);
  CHECK(args.q_rows == 20);
  CHECK(args.kv_rows == 30);
  problem.max_q_tokens = 19;
  fill(args, problem, call);
  CHECK(args.q_rows == 19);

  call.page_table = at<int32_t>(0x500);
  const auto last = [&](int64_t count, uint32_t flags) {
    call.page_count = count;
    problem.flags = flags;
    fill(args, problem, call);
    return std::pair{uint32_t(args.last_page_low), uint32_t(args.last_page_high)};
  };
  using Words = std::pair<uint32_t, uint32_t>;
  // A negative number is never a page.
  CHECK(last(0, 0) == Words{INT32_MAX, 0});
  CHECK(last(0, calls::page_index_64) == Words{UINT32_MAX, INT32_MAX});
  for (const uint32_t flags : {0u, uint32_t{calls::page_index_64}}) {
    CHECK(last(1, flags) == Words{0, 0});
    CHECK(last(2, flags) == Words{1, 0});
    CHECK(last(100, flags) == Words{99, 0});
  }
  CHECK(last(int64_t{1} << 32, 0) == Words{INT32_MAX, 0});
  CHECK(last(int64_t{1} << 32, calls::page_index_64) == Words{UINT32_MAX, 0});
}

TEST_CASE("V in K is read from K's addresses", "[arguments]") {
  calls::Problem problem = plain();
  calls::Args call = {};
  call.batch = call.kv_len = 2;
  call.k = {const_cast<int32_t *>(at<int32_t>(0x100)), {1, 2, 3, 1}};
  call.v = {const_cast<int32_t *>(at<int32_t>(0x200)), {4, 5, 6, 1}};
  package::AttentionKernargs args = {};
  fill(args, problem, call);
  CHECK(args.v == 0x200);
  CHECK(args.v_head_stride == 6);
  problem.flags = calls::v_in_k;
  fill(args, problem, call);
  CHECK(args.v == 0x100);
  CHECK(args.v_batch_stride == 1);
  CHECK(args.v_token_stride == 2);
  CHECK(args.v_head_stride == 3);
}

TEST_CASE("a prefix has keys and rows of its own, and no mask", "[arguments]") {
  calls::Problem problem = plain();
  problem.flags = calls::prefixes | calls::causal_by_sequence | calls::spans;
  problem.mode = calls::paged;
  problem.page_size = 16;
  calls::Args call = {};
  call.batch = 2;
  call.q_len = 1;
  call.kv_len = 4;
  call.q.stride[0] = 700;
  call.q.stride[1] = 7;
  call.k = {const_cast<int32_t *>(at<int32_t>(0x100)), {1, 2, 3, 1}};
  call.v = {const_cast<int32_t *>(at<int32_t>(0x200)), {4, 5, 6, 1}};
  call.kv_starts = at<int32_t>(0x300);
  call.kv_tokens = 30;
  call.kv_lengths = at<int32_t>(0x400);
  call.page_table_head_stride = 9;
  call.page_count = 50;
  call.causal = at<int32_t>(0x500);
  call.spans = at<int32_t>(0x600);
  call.span_count = 3;
  call.prefix_count = 5;
  call.prefix_len = 77;
  call.prefix_q_starts = at<int32_t>(0x700);
  call.prefix_lengths = at<int32_t>(0x800);
  call.prefix_page_table = at<int32_t>(0x900);
  call.prefix_page_table_stride = 6;
  call.prefix_page_starts = at<int32_t>(0xa00);
  call.prefix_k = {const_cast<int32_t *>(at<int32_t>(0xb00)), {11, 12, 13, 1}};
  call.prefix_v = {const_cast<int32_t *>(at<int32_t>(0xc00)), {14, 15, 16, 1}};
  const auto fill_all = [&](int32_t rows) {
    package::AttentionKernargs args = problem_arguments(kernel(), prefix_problem(problem));
    const Level level = prefix_level(problem, call, rows);
    CHECK(level.rows.count == 5);
    fill_prefixes(args, problem, call, level, final_results(problem, call));
    return args;
  };
  const package::AttentionKernargs pages = fill_all(20);
  CHECK(pages.q_starts == 0x700);
  CHECK(pages.q_lengths == 0);
  CHECK(pages.q_len == 20);
  CHECK(pages.q_rows == 20);
  CHECK(pages.q_batch_stride == 0);
  CHECK(pages.q_token_stride == 700); // a sequence is a row
  CHECK(pages.k == 0x100);
  CHECK(pages.v == 0x200);
  CHECK(pages.k_token_stride == 2);
  CHECK(pages.kv_starts == 0);
  CHECK(pages.kv_rows == INT32_MAX);
  CHECK(pages.kv_lengths == 0x800);
  CHECK(pages.kv_len == 77);
  CHECK(pages.page_table == 0x900);
  CHECK(pages.page_table_stride == 6);
  CHECK(pages.page_table_head_stride == 0);
  CHECK(pages.page_starts == 0xa00);
  CHECK(pages.last_page_low == 49);
  CHECK(pages.diagonals == 0);
  CHECK(pages.causal == 0);
  CHECK(pages.spans == 0);
  CHECK(pages.span_stride == 0);
  CHECK(pages.window_right == package::kernarg_no_window);
  CHECK(pages.score_flags == 0);

  // Rows between sequences are not read.
  call.q_starts = at<int32_t>(0xd00);
  call.q_lengths = at<int32_t>(0xe00);
  const package::AttentionKernargs started = fill_all(20);
  CHECK(started.q_token_stride == 7);
  CHECK(started.score_flags == package::score_rows_of_sequences);
  CHECK(started.diagonals == 0xd00);
  CHECK(started.causal == 0xe00);
  CHECK(started.span_stride == 2);
  CHECK(started.bias_row_stride == 1);
  CHECK(started.spans == 0);

  // Outside of pages.
  problem.mode = calls::ragged;
  problem.page_size = 0;
  const package::AttentionKernargs own = fill_all(1);
  CHECK(own.k == 0xb00);
  CHECK(own.k_batch_stride == 11);
  CHECK(own.v == 0xc00);
  CHECK(own.v_token_stride == 15);
  CHECK(own.kv_starts == 0);
  CHECK(own.kv_rows == INT32_MAX);
}
