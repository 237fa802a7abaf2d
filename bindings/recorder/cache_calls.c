/*===- cache_calls.c - cache operations and merges, as every binding calls them ------------------------===*/
#include "calls.h"

static void append_slots(void) {
  sluice_kv_format format = sluice_kv_pages(SLUICE_BF16, 2, 192, 16);
  format.head_dim_v = 128;
  sluice_kv kv =
      sluice_make_kv(&format, sluice_pages_nhd(at(1), 16, 2, 192), sluice_pages_nhd(at(2), 16, 2, 128));
  kv.page_count = 99;
  sluice_append_args args = sluice_make_append(&kv, SLUICE_BF16, 40, sluice_packed(at(3), 2, 128),
                                               sluice_packed(at(4), 2, 128), at(5));
  args.tail_dim = 64;
  args.k_tail = sluice_make_tensor(at(6), 0, 64, 0, 1); /* One for all heads. */
  args.positions = at(7);
  const sluice_rotation rotation = {.struct_size = sizeof rotation,
                                    .style = SLUICE_ROTARY_PAIRS,
                                    .type = SLUICE_F32,
                                    .dim = 64,
                                    .first = 128,
                                    .cosines = at(8),
                                    .sines = at(9),
                                    .stride = 32};
  const sluice_norm k_norm = {
      .struct_size = sizeof k_norm, .type = SLUICE_F32, .weights = at(10), .epsilon = 1e-6f};
  const sluice_norm q_norm = {
      .struct_size = sizeof q_norm, .type = SLUICE_BF16, .weights = at(11), .epsilon = 1e-6f};
  const sluice_append_q q = {.struct_size = sizeof q,
                             .heads = 8,
                             .q = sluice_packed(at(12), 8, 128),
                             .out = sluice_packed(at(13), 8, 192),
                             .tail = sluice_packed(at(14), 8, 64),
                             .norm = &q_norm};
  args.rotation = &rotation;
  args.k_norm = &k_norm;
  args.q = &q;
  const sluice_dependency dependencies[2] = {
      {.kind = SLUICE_DEPENDS_ON_EVENT, .event = at(901)},
      {.kind = SLUICE_DEPENDS_ON_STREAM, .event = at(902), .stream = at(903)}};
  sluice_launch launch = on_stream();
  launch.dependencies = dependencies;
  launch.dependency_count = 2;
  launch.signal_event = at(904);
  sluice_error error = {.struct_size = sizeof error};
  check(sluice_cache_append(context, &args, &launch, &error), &error);
}

static void append_starts(void) {
  sluice_kv_format format = sluice_kv_pages(SLUICE_E4M3FNUZ, 2, 128, 16);
  format.page_table = SLUICE_PAGE_TABLE_CSR;
  format.k.scale_kind = format.v.scale_kind = SLUICE_SCALE_PER_TOKEN;
  const sluice_kv_scales scales = {.struct_size = sizeof scales,
                                   .k = sluice_make_tensor(at(3), 32, 2, 1, 0),
                                   .v = sluice_make_tensor(at(4), 32, 2, 1, 0)};
  sluice_kv kv =
      sluice_make_kv(&format, sluice_pages_nhd(at(1), 16, 2, 128), sluice_pages_nhd(at(2), 16, 2, 128));
  kv.scales = &scales;
  kv.page_count = 98;
  sluice_keys keys = sluice_keys_of_pages(&kv, at(5), 0, at(6), 0);
  keys.pages.starts = at(7);
  sluice_append_args args = sluice_make_append_to_keys(&keys, SLUICE_F16, 17, sluice_packed(at(8), 2, 128),
                                                       sluice_packed(at(9), 2, 128), 3, at(10));
  const sluice_rotation rotation = {.struct_size = sizeof rotation,
                                    .style = SLUICE_ROTARY_HALVES,
                                    .type = SLUICE_F16,
                                    .dim = 128,
                                    .cosines = at(11),
                                    .stride = 128};
  args.rotation = &rotation;
  const sluice_launch launch = on_stream();
  sluice_error error = {.struct_size = sizeof error};
  check(sluice_cache_append(context, &args, &launch, &error), &error);
}

static void copy_pairs(void) {
  sluice_kv_format format = sluice_kv_pages(SLUICE_I8, 2, 64, 32);
  format.k.scale_kind = format.v.scale_kind = SLUICE_SCALE_PER_PAGE;
  const sluice_kv_scales scales[2] = {{.struct_size = sizeof scales[0],
                                       .k = sluice_make_tensor(at(5), 2, 0, 1, 0),
                                       .v = sluice_make_tensor(at(6), 2, 0, 1, 0)},
                                      {.struct_size = sizeof scales[1],
                                       .k = sluice_make_tensor(at(7), 2, 0, 1, 0),
                                       .v = sluice_make_tensor(at(8), 2, 0, 1, 0)}};
  sluice_kv source =
      sluice_make_kv(&format, sluice_pages_nhd(at(1), 32, 2, 64), sluice_pages_nhd(at(2), 32, 2, 64));
  source.scales = &scales[0];
  source.page_count = 50;
  sluice_kv target =
      sluice_make_kv(&format, sluice_pages_hnd(at(3), 32, 2, 64), sluice_pages_hnd(at(4), 32, 2, 64));
  target.scales = &scales[1];
  target.page_count = 50;
  const sluice_copy_args args = {.struct_size = sizeof args,
                                 .pairs_64 = 1,
                                 .source = &source,
                                 .target = &target,
                                 .pairs = at(9),
                                 .pair_count = 6};
  const sluice_launch launch = on_stream();
  sluice_error error = {.struct_size = sizeof error};
  check(sluice_cache_copy(context, &args, &launch, &error), &error);
}

static void gather(void) {
  sluice_kv_format pages = sluice_kv_pages(SLUICE_E4M3FNUZ, 2, 64, 16);
  pages.k.scale_kind = pages.v.scale_kind = SLUICE_SCALE_PER_TENSOR;
  const sluice_kv_format rows = sluice_kv_tensors(SLUICE_BF16, 2, 64);
  sluice_kv_scales scales = {.struct_size = sizeof scales};
  scales.k.data = at(5);
  scales.v.data = at(6);
  sluice_kv source =
      sluice_make_kv(&pages, sluice_pages_nhd(at(1), 16, 2, 64), sluice_pages_nhd(at(2), 16, 2, 64));
  source.scales = &scales;
  source.page_count = 51;
  const sluice_kv target = sluice_make_kv(&rows, sluice_packed(at(3), 2, 64), sluice_packed(at(4), 2, 64));
  const sluice_gather_args args = {.struct_size = sizeof args,
                                   .batch = 3,
                                   .source = &source,
                                   .pages = {.table = at(7), .stride = 9},
                                   .lengths = at(8),
                                   .first_keys = at(9),
                                   .target = &target,
                                   .starts = at(10),
                                   .tokens = 76};
  const sluice_launch launch = on_stream();
  sluice_error error = {.struct_size = sizeof error};
  check(sluice_cache_gather(context, &args, &launch, &error), &error);
}

/* LSEs are [sequence][head][token] in memory. */
static void merge_lists(void) {
  const void *o_list[3] = {at(1), at(2), at(3)};
  const void *lse_list[3] = {at(4), at(5), at(6)};
  sluice_merge_args args = {.struct_size = sizeof args,
                            .flags = SLUICE_MERGE_INFINITY_IS_EMPTY,
                            .tokens = 14,
                            .heads = 4,
                            .head_dim = 64,
                            .lse_base = SLUICE_LSE_LN};
  args.o_format.type = SLUICE_E4M3FNUZ;
  args.o_format.scale_kind = SLUICE_SCALE_PER_HEAD;
  args.parts.type = SLUICE_F32;
  args.parts.count = 3;
  args.parts.o = sluice_packed(NULL, 4, 64);
  args.parts.lse = sluice_make_tensor(NULL, 0, 1, 8, 0);
  args.parts.o_list = o_list;
  args.parts.lse_list = lse_list;
  args.parts.lse_sequence_stride = 33;
  args.o = sluice_packed(at(7), 4, 64);
  args.lse = sluice_make_tensor(at(8), 0, 1, 9, 0);
  args.lse_sequence_stride = 37;
  args.sequence_tokens = 7;
  args.sinks = at(9);
  args.o_scale = at(10);
  const sluice_launch launch = on_stream();
  sluice_error error = {.struct_size = sizeof error};
  check(sluice_attention_merge(context, &args, &launch, &error), &error);
}

static void merge_strides(void) {
  sluice_merge_args args = {
      .struct_size = sizeof args, .tokens = 12, .heads = 5, .head_dim = 96, .lse_base = SLUICE_LSE_LOG2};
  args.o_format.type = SLUICE_BF16;
  args.parts.type = SLUICE_BF16;
  args.parts.count = 2;
  args.parts.o = sluice_make_tensor(at(1), 5760, 480, 96, 1);
  args.parts.lse = sluice_make_tensor(at(2), 60, 5, 1, 0);
  args.o = sluice_packed(at(3), 5, 96);
  const sluice_launch launch = on_stream();
  sluice_error error = {.struct_size = sizeof error};
  check(sluice_attention_merge(context, &args, &launch, &error), &error);
}

/* Memory is the host's, which nothing reads here. */
static void cache_references(void) {
  const sluice_kv_format pages = sluice_kv_pages(SLUICE_F16, 1, 8, 4);
  const sluice_kv_format rows = sluice_kv_tensors(SLUICE_F16, 1, 8);
  sluice_kv source =
      sluice_make_kv(&pages, sluice_pages_nhd(at(1), 4, 1, 8), sluice_pages_nhd(at(2), 4, 1, 8));
  source.page_count = 6;
  sluice_kv target =
      sluice_make_kv(&pages, sluice_pages_nhd(at(3), 4, 1, 8), sluice_pages_nhd(at(4), 4, 1, 8));
  target.page_count = 6;
  const sluice_kv out = sluice_make_kv(&rows, sluice_packed(at(5), 1, 8), sluice_packed(at(6), 1, 8));
  const sluice_append_args append = sluice_make_append(&source, SLUICE_F16, 3, sluice_packed(at(7), 1, 8),
                                                       sluice_packed(at(8), 1, 8), at(9));
  const sluice_copy_args copy = {
      .struct_size = sizeof copy, .source = &source, .target = &target, .pairs = at(10), .pair_count = 2};
  const sluice_gather_args to_rows = {.struct_size = sizeof to_rows,
                                      .batch = 1,
                                      .source = &source,
                                      .pages = {.table = at(11), .stride = 5},
                                      .lengths = at(12),
                                      .target = &out,
                                      .starts = at(13),
                                      .tokens = 13};
  sluice_error error = {.struct_size = sizeof error};
  check(sluice_cache_append_reference(&append, &error), &error);
  check(sluice_cache_copy_reference(&copy, &error), &error);
  check(sluice_cache_gather_reference(&to_rows, &error), &error);
}

const struct call cache_calls[] = {
    {"append_slots", append_slots},
    {"append_starts", append_starts},
    {"copy_pairs", copy_pairs},
    {"gather", gather},
    {"merge_lists", merge_lists},
    {"merge_strides", merge_strides},
    {"cache_references", cache_references},
    {NULL, NULL},
};
