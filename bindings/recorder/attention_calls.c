/*===- attention_calls.c - attention, as every binding calls it ----------------------------------------===*/
#include "calls.h"

static void run_on(const sluice_attention *attention, const sluice_attention_args *args,
                   const sluice_launch *launch) {
  sluice_error error = {.struct_size = sizeof error};
  sluice_plan *plan = NULL;
  check(sluice_attention_plan(context, attention, &plan, &error), &error);
  check(sluice_attention_run(plan, args, launch, &error), &error);
  sluice_plan_destroy(plan);
}

static void run(const sluice_attention *attention, const sluice_attention_args *args) {
  const sluice_launch launch = on_stream();
  run_on(attention, args, &launch);
}

static void dense(void) {
  const float scale = 0.125f;
  const sluice_kv_format format = sluice_kv_tensors(SLUICE_F16, 2, 128);
  sluice_attention attention = sluice_make_attention(SLUICE_F16, 8, &format);
  attention.bounds = sluice_make_bounds(3, 96, 112);
  attention.workspace_ceiling_bytes = 1 << 20;
  const sluice_kv kv =
      sluice_make_kv(&format, sluice_bshd(at(3), 80, 2, 128), sluice_bhsd(at(4), 80, 2, 128));
  const sluice_keys keys = sluice_keys_of_equal(&kv, 80);
  sluice_attention_args args =
      sluice_make_call(3, 64, sluice_bshd(at(1), 64, 8, 128), sluice_bshd(at(2), 64, 8, 128), &keys);
  args.scale = &scale;
  sluice_launch launch = on_stream();
  launch.workspace = at(901);
  launch.workspace_bytes = 4096;
  sluice_error error = {.struct_size = sizeof error};
  sluice_support support = {.struct_size = sizeof support};
  check(sluice_attention_support(context, &attention, &support, &error), &error);
  check(sluice_attention_preload(context, &attention, &error), &error);
  run_on(&attention, &args, &launch);
}

static void ragged_causal_lse(void) {
  const sluice_kv_format format = sluice_kv_tensors(SLUICE_BF16, 2, 64);
  const sluice_mask mask = sluice_causal_mask();
  sluice_attention attention = sluice_make_attention(SLUICE_BF16, 4, &format);
  attention.flags = SLUICE_ATTENTION_RAGGED;
  attention.lse = SLUICE_LSE_LN;
  attention.mask = &mask;
  attention.bounds = sluice_make_bounds(5, 33, 47);
  const sluice_kv kv = sluice_make_kv(&format, sluice_packed(at(3), 2, 64), sluice_packed(at(4), 2, 64));
  sluice_keys keys = sluice_keys_of_ragged(&kv, at(5), 46);
  keys.rows.total = 157;
  sluice_attention_args args =
      sluice_make_call(5, 32, sluice_packed(at(1), 4, 64), sluice_packed(at(2), 4, 64), &keys);
  args.rows.starts = at(6);
  args.rows.total = 101;
  const sluice_tensor lse = sluice_make_tensor(at(7), 0, 4, 1, 0);
  args.lse = &lse;
  run(&attention, &args);
}

static void paged_fp8(void) {
  sluice_kv_format format = sluice_kv_pages(SLUICE_E4M3FNUZ, 2, 128, 16);
  format.k.scale_kind = format.v.scale_kind = SLUICE_SCALE_PER_HEAD;
  format.v.type = SLUICE_E5M2FNUZ;
  sluice_scores scores = {.struct_size = sizeof scores, .flags = SLUICE_SCORES_SINK};
  sluice_attention attention = sluice_make_attention(SLUICE_E4M3FNUZ, 16, &format);
  attention.q.scale_kind = SLUICE_SCALE_PER_TENSOR;
  attention.o.scale_kind = SLUICE_SCALE_PER_HEAD;
  attention.scores = &scores;
  attention.bounds = sluice_make_bounds(7, 1, 1024);
  sluice_kv_scales scales = {.struct_size = sizeof scales};
  scales.k.data = at(5);
  scales.v.data = at(6);
  sluice_kv kv =
      sluice_make_kv(&format, sluice_pages_nhd(at(3), 16, 2, 128), sluice_pages_hnd(at(4), 16, 2, 128));
  kv.scales = &scales;
  kv.page_count = 901;
  const sluice_keys keys = sluice_keys_of_pages(&kv, at(7), 64, at(8), 1000);
  sluice_attention_args args =
      sluice_make_call(7, 1, sluice_bshd(at(1), 1, 16, 128), sluice_bshd(at(2), 1, 16, 128), &keys);
  const sluice_scores_args scores_args = {.struct_size = sizeof scores_args, .sinks = at(9)};
  args.scores = &scores_args;
  args.q_scale = at(10);
  args.o_scale = at(11);
  run(&attention, &args);
}

static void cascade(void) {
  const sluice_kv_format format = sluice_kv_pages(SLUICE_BF16, 1, 128, 32);
  sluice_scores scores = {.struct_size = sizeof scores, .soft_cap = 30.5f};
  sluice_attention attention = sluice_make_attention(SLUICE_BF16, 4, &format);
  attention.flags = SLUICE_ATTENTION_RAGGED | SLUICE_ATTENTION_PREFIXES;
  attention.scores = &scores;
  attention.bounds = sluice_make_bounds(6, 9, 512);
  attention.bounds.groups = 2;
  attention.bounds.group_keys = 256;
  attention.bounds.q_rows = 54;
  sluice_kv kv =
      sluice_make_kv(&format, sluice_pages_nhd(at(3), 32, 1, 128), sluice_pages_nhd(at(4), 32, 1, 128));
  kv.page_count = 77;
  sluice_keys keys[2] = {sluice_keys_of_pages(&kv, at(5), 16, at(6), 500),
                         sluice_keys_of_pages(&kv, at(7), 8, at(8), 250)};
  keys[1].groups = 2;
  keys[1].group_starts = at(9);
  sluice_attention_args args =
      sluice_make_call(6, 9, sluice_packed(at(1), 4, 128), sluice_packed(at(2), 4, 128), keys);
  args.key_sets = 2;
  args.rows.starts = at(10);
  args.rows.total = 53;
  run(&attention, &args);
}

static void mla_decode(void) {
  sluice_kv_format format = sluice_kv_latent(SLUICE_BF16, 512, 64, 64);
  format.flags |= SLUICE_KV_PAGE_INDEX_64;
  format.page_table = SLUICE_PAGE_TABLE_CSR;
  sluice_attention attention = sluice_make_attention(SLUICE_BF16, 16, &format);
  attention.lse = SLUICE_LSE_LOG2;
  attention.bounds = sluice_make_bounds(4, 1, 2048);
  sluice_kv kv =
      sluice_make_kv(&format, sluice_pages_nhd(at(3), 64, 1, 576), sluice_make_tensor(NULL, 0, 0, 0, 0));
  kv.page_count = 333;
  sluice_keys keys = sluice_keys_of_pages(&kv, at(5), 0, at(6), 2000);
  keys.pages.starts = at(7);
  sluice_attention_args args =
      sluice_make_call(4, 1, sluice_bshd(at(1), 1, 16, 576), sluice_bshd(at(2), 1, 16, 512), &keys);
  const sluice_tensor lse = sluice_make_tensor(at(8), 16, 16, 1, 0);
  args.lse = &lse;
  run(&attention, &args);
}

static void windows(void) {
  const sluice_kv_format format = sluice_kv_pages(SLUICE_F16, 2, 64, 16);
  const sluice_mask mask = {.struct_size = sizeof mask,
                            .flags = SLUICE_MASK_WINDOW_LEFT | SLUICE_MASK_WINDOW_RIGHT |
                                     SLUICE_MASK_MISSING_PAGES,
                            .alignment = SLUICE_TOP_LEFT,
                            .window_left = 100,
                            .window_right = 7,
                            .sink_tokens = 4};
  sluice_attention attention = sluice_make_attention(SLUICE_F16, 4, &format);
  attention.flags = SLUICE_ATTENTION_BATCH_INVARIANT;
  attention.mask = &mask;
  attention.bounds = sluice_make_bounds(5, 40, 320);
  sluice_kv kv =
      sluice_make_kv(&format, sluice_pages_nhd(at(3), 16, 2, 64), sluice_pages_nhd(at(4), 16, 2, 64));
  kv.page_count = 210;
  sluice_keys keys = sluice_keys_of_pages(&kv, at(5), 40, at(6), 310);
  keys.pages.head_stride = 20;
  sluice_attention_args args =
      sluice_make_call(5, 33, sluice_bshd(at(1), 33, 4, 64), sluice_bshd(at(2), 33, 4, 64), &keys);
  args.rows.lengths = at(7);
  run(&attention, &args);
}

static void spans_and_bits(void) {
  const sluice_kv_format format = sluice_kv_tensors(SLUICE_F16, 1, 64);
  const sluice_mask mask = {.struct_size = sizeof mask,
                            .flags = SLUICE_MASK_CAUSAL_BY_SEQUENCE | SLUICE_MASK_BITS |
                                     SLUICE_MASK_BITS_OF_NEW | SLUICE_MASK_SPANS,
                            .alignment = SLUICE_GIVEN_DIAGONAL};
  sluice_attention attention = sluice_make_attention(SLUICE_F16, 2, &format);
  attention.mask = &mask;
  const sluice_kv kv = sluice_make_kv(&format, sluice_bshd(at(3), 48, 1, 64), sluice_bshd(at(4), 48, 1, 64));
  const sluice_keys keys = sluice_keys_of_equal(&kv, 48);
  sluice_attention_args args =
      sluice_make_call(3, 24, sluice_bshd(at(1), 24, 2, 64), sluice_bshd(at(2), 24, 2, 64), &keys);
  const sluice_mask_args mask_args = {.struct_size = sizeof mask_args,
                                      .bits = sluice_make_tensor(at(5), 72, 0, 3, 1),
                                      .spans = at(6),
                                      .span_count = 5,
                                      .diagonals = at(7),
                                      .causal = at(8)};
  args.mask = &mask_args;
  run(&attention, &args);
}

static void bias_and_alibi(void) {
  const sluice_kv_format format = sluice_kv_tensors(SLUICE_F16, 4, 100);
  const sluice_scores scores = {.struct_size = sizeof scores,
                                .flags = SLUICE_SCORES_ALIBI | SLUICE_SCORES_BIAS_SCALE,
                                .bias_type = SLUICE_F32};
  sluice_attention attention = sluice_make_attention(SLUICE_F16, 4, &format);
  attention.flags = SLUICE_ATTENTION_PADDED_ROWS;
  attention.scores = &scores;
  const sluice_kv kv =
      sluice_make_kv(&format, sluice_bshd(at(3), 20, 4, 104), sluice_bshd(at(4), 20, 4, 104));
  const sluice_keys keys = sluice_keys_of_equal(&kv, 20);
  sluice_attention_args args =
      sluice_make_call(2, 10, sluice_bshd(at(1), 10, 4, 104), sluice_bshd(at(2), 10, 4, 104), &keys);
  const sluice_scores_args scores_args = {.struct_size = sizeof scores_args,
                                          .bias = sluice_make_tensor(at(5), 800, 200, 20, 1),
                                          .bias_scale = at(6),
                                          .bias_scale_stride = 5,
                                          .alibi_slopes = at(7),
                                          .alibi_stride = 6};
  args.scores = &scores_args;
  run(&attention, &args);
}

static void u4_groups(void) {
  sluice_kv_format format = sluice_kv_pages(SLUICE_U4, 2, 128, 16);
  format.k.scale_kind = format.v.scale_kind = SLUICE_SCALE_PER_GROUP;
  format.k.scale_group = format.v.scale_group = 32;
  format.k.zero_points = format.v.zero_points = 1;
  sluice_attention attention = sluice_make_attention(SLUICE_F16, 8, &format);
  attention.o.type = SLUICE_BF16;
  const sluice_kv_scales scales = {.struct_size = sizeof scales,
                                   .k = sluice_pages_nhd(at(5), 16, 2, 4),
                                   .v = sluice_pages_nhd(at(6), 16, 2, 4),
                                   .k_zeros = sluice_pages_nhd(at(7), 16, 2, 4),
                                   .v_zeros = sluice_pages_nhd(at(8), 16, 2, 4)};
  sluice_kv kv =
      sluice_make_kv(&format, sluice_pages_nhd(at(3), 16, 2, 128), sluice_pages_nhd(at(4), 16, 2, 128));
  kv.scales = &scales;
  kv.page_count = 64;
  sluice_keys keys = sluice_keys_of_pages(&kv, at(9), SLUICE_SHARED, at(10), 200);
  const sluice_attention_args args =
      sluice_make_call(2, 1, sluice_bshd(at(1), 1, 8, 128), sluice_bshd(at(2), 1, 8, 128), &keys);
  run(&attention, &args);
}

static void packed_pages(void) {
  sluice_kv_format format = sluice_kv_pages(SLUICE_I8, 2, 128, 32);
  format.k.scale_kind = format.v.scale_kind = SLUICE_SCALE_PER_PAGE;
  format.k.pack = 16;
  format.v.pack = SLUICE_PACK_ALL;
  const sluice_attention attention = sluice_make_attention(SLUICE_BF16, 2, &format);
  const sluice_kv_scales scales = {.struct_size = sizeof scales,
                                   .k = sluice_make_tensor(at(5), 2, 0, 1, 0),
                                   .v = sluice_make_tensor(at(6), 2, 0, 1, 0)};
  sluice_kv kv = sluice_make_kv(&format, sluice_pages_x_packed(at(3), 32, 2, 128, 16),
                                sluice_make_tensor(at(4), 8192, 1, 4096, 32));
  kv.scales = &scales;
  kv.page_count = 65;
  const sluice_keys keys = sluice_keys_of_pages(&kv, at(7), 11, at(8), 333);
  const sluice_attention_args args =
      sluice_make_call(9, 1, sluice_bshd(at(1), 1, 2, 128), sluice_bshd(at(2), 1, 2, 128), &keys);
  run(&attention, &args);
}

/* The plan's structs and a call's together; memory is the host's, which nothing reads here. */
static void attention_reference(void) {
  const float scale = 0.0625f;
  const sluice_kv_format format = sluice_kv_tensors(SLUICE_F32, 1, 8);
  const sluice_attention attention = sluice_make_attention(SLUICE_F32, 3, &format);
  const sluice_kv kv = sluice_make_kv(&format, sluice_bshd(at(3), 5, 1, 8), sluice_bshd(at(4), 5, 1, 8));
  const sluice_keys keys = sluice_keys_of_equal(&kv, 5);
  sluice_attention_args args =
      sluice_make_call(2, 4, sluice_bshd(at(1), 4, 3, 8), sluice_bshd(at(2), 4, 3, 8), &keys);
  args.scale = &scale;
  sluice_error error = {.struct_size = sizeof error};
  check(sluice_attention_reference(&attention, &args, &error), &error);
}

const struct call attention_calls[] = {
    {"dense", dense},
    {"ragged_causal_lse", ragged_causal_lse},
    {"paged_fp8", paged_fp8},
    {"cascade", cascade},
    {"mla_decode", mla_decode},
    {"windows", windows},
    {"spans_and_bits", spans_and_bits},
    {"bias_and_alibi", bias_and_alibi},
    {"u4_groups", u4_groups},
    {"packed_pages", packed_pages},
    {"attention_reference", attention_reference},
    {NULL, NULL},
};
