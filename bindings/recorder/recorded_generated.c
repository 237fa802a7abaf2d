/* Written by bindings/generate/recorder.py from bindings/abi.json. DO NOT EDIT. */
/* clang-format off */
#include "recorder.h"

static const struct recorded_value values_sluice_dtype[] = {
  {"SLUICE_F16", SLUICE_F16},
  {"SLUICE_BF16", SLUICE_BF16},
  {"SLUICE_F32", SLUICE_F32},
  {"SLUICE_E4M3FNUZ", SLUICE_E4M3FNUZ},
  {"SLUICE_E4M3FN", SLUICE_E4M3FN},
  {"SLUICE_E5M2FNUZ", SLUICE_E5M2FNUZ},
  {"SLUICE_E5M2", SLUICE_E5M2},
  {"SLUICE_I8", SLUICE_I8},
  {"SLUICE_U4", SLUICE_U4},
  {"SLUICE_Q8_0", SLUICE_Q8_0},
  {"SLUICE_Q4_0", SLUICE_Q4_0},
};
static const struct recorded_names names_sluice_dtype = {values_sluice_dtype, 11, 0};

static const struct recorded_value values_sluice_dependency_kind[] = {
  {"SLUICE_DEPENDS_ON_EVENT", SLUICE_DEPENDS_ON_EVENT},
  {"SLUICE_DEPENDS_ON_STREAM", SLUICE_DEPENDS_ON_STREAM},
};
static const struct recorded_names names_sluice_dependency_kind = {values_sluice_dependency_kind, 2, 0};

static const struct recorded_value values_sluice_scale_kind[] = {
  {"SLUICE_SCALE_PER_TENSOR", SLUICE_SCALE_PER_TENSOR},
  {"SLUICE_SCALE_PER_HEAD", SLUICE_SCALE_PER_HEAD},
  {"SLUICE_SCALE_PER_TOKEN", SLUICE_SCALE_PER_TOKEN},
  {"SLUICE_SCALE_PER_PAGE", SLUICE_SCALE_PER_PAGE},
  {"SLUICE_SCALE_PER_GROUP", SLUICE_SCALE_PER_GROUP},
};
static const struct recorded_names names_sluice_scale_kind = {values_sluice_scale_kind, 5, 0};

static const struct recorded_value values_sluice_page_table_kind[] = {
  {"SLUICE_PAGE_TABLE_BLOCK", SLUICE_PAGE_TABLE_BLOCK},
  {"SLUICE_PAGE_TABLE_CSR", SLUICE_PAGE_TABLE_CSR},
};
static const struct recorded_names names_sluice_page_table_kind = {values_sluice_page_table_kind, 2, 0};

static const struct recorded_value values_sluice_kv_flag[] = {
  {"SLUICE_KV_V_IN_K", SLUICE_KV_V_IN_K},
  {"SLUICE_KV_PAGE_INDEX_64", SLUICE_KV_PAGE_INDEX_64},
};
static const struct recorded_names names_sluice_kv_flag = {values_sluice_kv_flag, 2, 1};

static const struct recorded_value values_sluice_mask_alignment[] = {
  {"SLUICE_TOP_LEFT", SLUICE_TOP_LEFT},
  {"SLUICE_GIVEN_DIAGONAL", SLUICE_GIVEN_DIAGONAL},
};
static const struct recorded_names names_sluice_mask_alignment = {values_sluice_mask_alignment, 2, 0};

static const struct recorded_value values_sluice_mask_flag[] = {
  {"SLUICE_MASK_CAUSAL", SLUICE_MASK_CAUSAL},
  {"SLUICE_MASK_CAUSAL_BY_SEQUENCE", SLUICE_MASK_CAUSAL_BY_SEQUENCE},
  {"SLUICE_MASK_WINDOW_LEFT", SLUICE_MASK_WINDOW_LEFT},
  {"SLUICE_MASK_WINDOW_RIGHT", SLUICE_MASK_WINDOW_RIGHT},
  {"SLUICE_MASK_BITS", SLUICE_MASK_BITS},
  {"SLUICE_MASK_BITS_OF_NEW", SLUICE_MASK_BITS_OF_NEW},
  {"SLUICE_MASK_SPANS", SLUICE_MASK_SPANS},
  {"SLUICE_MASK_MISSING_PAGES", SLUICE_MASK_MISSING_PAGES},
};
static const struct recorded_names names_sluice_mask_flag = {values_sluice_mask_flag, 8, 1};

static const struct recorded_value values_sluice_scores_flag[] = {
  {"SLUICE_SCORES_ALIBI", SLUICE_SCORES_ALIBI},
  {"SLUICE_SCORES_SINK", SLUICE_SCORES_SINK},
  {"SLUICE_SCORES_BIAS_SCALE", SLUICE_SCORES_BIAS_SCALE},
};
static const struct recorded_names names_sluice_scores_flag = {values_sluice_scores_flag, 3, 1};

static const struct recorded_value values_sluice_lse[] = {
  {"SLUICE_LSE_LN", SLUICE_LSE_LN},
  {"SLUICE_LSE_LOG2", SLUICE_LSE_LOG2},
};
static const struct recorded_names names_sluice_lse = {values_sluice_lse, 2, 0};

static const struct recorded_value values_sluice_attention_flag[] = {
  {"SLUICE_ATTENTION_RAGGED", SLUICE_ATTENTION_RAGGED},
  {"SLUICE_ATTENTION_PADDED_ROWS", SLUICE_ATTENTION_PADDED_ROWS},
  {"SLUICE_ATTENTION_PREFIXES", SLUICE_ATTENTION_PREFIXES},
  {"SLUICE_ATTENTION_BATCH_INVARIANT", SLUICE_ATTENTION_BATCH_INVARIANT},
};
static const struct recorded_names names_sluice_attention_flag = {values_sluice_attention_flag, 4, 1};

static const struct recorded_value values_sluice_rotary_style[] = {
  {"SLUICE_ROTARY_PAIRS", SLUICE_ROTARY_PAIRS},
};
static const struct recorded_names names_sluice_rotary_style = {values_sluice_rotary_style, 1, 0};

static const struct recorded_value values_sluice_merge_flag[] = {
  {"SLUICE_MERGE_INFINITY_IS_EMPTY", SLUICE_MERGE_INFINITY_IS_EMPTY},
};
static const struct recorded_names names_sluice_merge_flag = {values_sluice_merge_flag, 1, 1};

static const struct recorded_member members_sluice_format[] = {
  {.name = "type", .kind = UNSIGNED, .offset = offsetof(sluice_format, type), .size = sizeof(uint32_t), .elements = 1, .names = &names_sluice_dtype},
  {.name = "scale_kind", .kind = UNSIGNED, .offset = offsetof(sluice_format, scale_kind), .size = sizeof(uint32_t), .elements = 1, .names = &names_sluice_scale_kind},
  {.name = "scale_group", .kind = SIGNED, .offset = offsetof(sluice_format, scale_group), .size = sizeof(int32_t), .elements = 1},
  {.name = "zero_points", .kind = UNSIGNED, .offset = offsetof(sluice_format, zero_points), .size = sizeof(uint32_t), .elements = 1},
  {.name = "pack", .kind = SIGNED, .offset = offsetof(sluice_format, pack), .size = sizeof(int32_t), .elements = 1},
  {.name = "reserved", .kind = UNSIGNED, .offset = offsetof(sluice_format, reserved), .size = sizeof(uint32_t), .elements = 1},
};
static const struct recorded_struct struct_sluice_format = {"sluice_format", sizeof(sluice_format), 0, members_sluice_format, sizeof members_sluice_format / sizeof *members_sluice_format};

static const struct recorded_member members_sluice_kv_format[] = {
  {.name = "flags", .kind = UNSIGNED, .offset = offsetof(sluice_kv_format, flags), .size = sizeof(uint32_t), .elements = 1, .names = &names_sluice_kv_flag},
  {.name = "kv_heads", .kind = SIGNED, .offset = offsetof(sluice_kv_format, kv_heads), .size = sizeof(int32_t), .elements = 1},
  {.name = "head_dim_qk", .kind = SIGNED, .offset = offsetof(sluice_kv_format, head_dim_qk), .size = sizeof(int32_t), .elements = 1},
  {.name = "head_dim_v", .kind = SIGNED, .offset = offsetof(sluice_kv_format, head_dim_v), .size = sizeof(int32_t), .elements = 1},
  {.name = "page_size", .kind = SIGNED, .offset = offsetof(sluice_kv_format, page_size), .size = sizeof(int32_t), .elements = 1},
  {.name = "page_table", .kind = UNSIGNED, .offset = offsetof(sluice_kv_format, page_table), .size = sizeof(uint32_t), .elements = 1, .names = &names_sluice_page_table_kind},
  {.name = "reserved", .kind = UNSIGNED, .offset = offsetof(sluice_kv_format, reserved), .size = sizeof(uint32_t), .elements = 1},
  {.name = "k", .kind = STRUCT, .offset = offsetof(sluice_kv_format, k), .size = sizeof(sluice_format), .elements = 1, .of = &struct_sluice_format},
  {.name = "v", .kind = STRUCT, .offset = offsetof(sluice_kv_format, v), .size = sizeof(sluice_format), .elements = 1, .of = &struct_sluice_format},
};
static const struct recorded_struct struct_sluice_kv_format = {"sluice_kv_format", sizeof(sluice_kv_format), 1, members_sluice_kv_format, sizeof members_sluice_kv_format / sizeof *members_sluice_kv_format};

static const struct recorded_member members_sluice_mask[] = {
  {.name = "flags", .kind = UNSIGNED, .offset = offsetof(sluice_mask, flags), .size = sizeof(uint32_t), .elements = 1, .names = &names_sluice_mask_flag},
  {.name = "alignment", .kind = UNSIGNED, .offset = offsetof(sluice_mask, alignment), .size = sizeof(uint32_t), .elements = 1, .names = &names_sluice_mask_alignment},
  {.name = "window_left", .kind = SIGNED, .offset = offsetof(sluice_mask, window_left), .size = sizeof(int32_t), .elements = 1},
  {.name = "window_right", .kind = SIGNED, .offset = offsetof(sluice_mask, window_right), .size = sizeof(int32_t), .elements = 1},
  {.name = "sink_tokens", .kind = SIGNED, .offset = offsetof(sluice_mask, sink_tokens), .size = sizeof(int32_t), .elements = 1},
};
static const struct recorded_struct struct_sluice_mask = {"sluice_mask", sizeof(sluice_mask), 1, members_sluice_mask, sizeof members_sluice_mask / sizeof *members_sluice_mask};

static const struct recorded_member members_sluice_scores[] = {
  {.name = "flags", .kind = UNSIGNED, .offset = offsetof(sluice_scores, flags), .size = sizeof(uint32_t), .elements = 1, .names = &names_sluice_scores_flag},
  {.name = "soft_cap", .kind = FLOAT, .offset = offsetof(sluice_scores, soft_cap), .size = sizeof(float), .elements = 1},
  {.name = "bias_type", .kind = UNSIGNED, .offset = offsetof(sluice_scores, bias_type), .size = sizeof(uint32_t), .elements = 1, .names = &names_sluice_dtype},
};
static const struct recorded_struct struct_sluice_scores = {"sluice_scores", sizeof(sluice_scores), 1, members_sluice_scores, sizeof members_sluice_scores / sizeof *members_sluice_scores};

static const struct recorded_member members_sluice_bounds[] = {
  {.name = "batch", .kind = SIGNED, .offset = offsetof(sluice_bounds, batch), .size = sizeof(int32_t), .elements = 1},
  {.name = "q_len", .kind = SIGNED, .offset = offsetof(sluice_bounds, q_len), .size = sizeof(int32_t), .elements = 1},
  {.name = "kv_len", .kind = SIGNED, .offset = offsetof(sluice_bounds, kv_len), .size = sizeof(int32_t), .elements = 1},
  {.name = "groups", .kind = SIGNED, .offset = offsetof(sluice_bounds, groups), .size = sizeof(int32_t), .elements = 1},
  {.name = "group_keys", .kind = SIGNED, .offset = offsetof(sluice_bounds, group_keys), .size = sizeof(int32_t), .elements = 1},
  {.name = "reserved", .kind = UNSIGNED, .offset = offsetof(sluice_bounds, reserved), .size = sizeof(uint32_t), .elements = 1},
  {.name = "q_rows", .kind = SIGNED, .offset = offsetof(sluice_bounds, q_rows), .size = sizeof(int64_t), .elements = 1},
};
static const struct recorded_struct struct_sluice_bounds = {"sluice_bounds", sizeof(sluice_bounds), 0, members_sluice_bounds, sizeof members_sluice_bounds / sizeof *members_sluice_bounds};

static const struct recorded_member members_sluice_attention[] = {
  {.name = "flags", .kind = UNSIGNED, .offset = offsetof(sluice_attention, flags), .size = sizeof(uint32_t), .elements = 1, .names = &names_sluice_attention_flag},
  {.name = "q_heads", .kind = SIGNED, .offset = offsetof(sluice_attention, q_heads), .size = sizeof(int32_t), .elements = 1},
  {.name = "lse", .kind = UNSIGNED, .offset = offsetof(sluice_attention, lse), .size = sizeof(uint32_t), .elements = 1, .names = &names_sluice_lse},
  {.name = "q", .kind = STRUCT, .offset = offsetof(sluice_attention, q), .size = sizeof(sluice_format), .elements = 1, .of = &struct_sluice_format},
  {.name = "o", .kind = STRUCT, .offset = offsetof(sluice_attention, o), .size = sizeof(sluice_format), .elements = 1, .of = &struct_sluice_format},
  {.name = "kv", .kind = STRUCT, .offset = offsetof(sluice_attention, kv), .size = sizeof(sluice_kv_format), .elements = 1, .of = &struct_sluice_kv_format, .is_pointer = 1},
  {.name = "mask", .kind = STRUCT, .offset = offsetof(sluice_attention, mask), .size = sizeof(sluice_mask), .elements = 1, .of = &struct_sluice_mask, .is_pointer = 1},
  {.name = "scores", .kind = STRUCT, .offset = offsetof(sluice_attention, scores), .size = sizeof(sluice_scores), .elements = 1, .of = &struct_sluice_scores, .is_pointer = 1},
  {.name = "bounds", .kind = STRUCT, .offset = offsetof(sluice_attention, bounds), .size = sizeof(sluice_bounds), .elements = 1, .of = &struct_sluice_bounds},
  {.name = "workspace_ceiling_bytes", .kind = UNSIGNED, .offset = offsetof(sluice_attention, workspace_ceiling_bytes), .size = sizeof(uint64_t), .elements = 1},
};
static const struct recorded_struct struct_sluice_attention = {"sluice_attention", sizeof(sluice_attention), 1, members_sluice_attention, sizeof members_sluice_attention / sizeof *members_sluice_attention};

static const struct recorded_member members_sluice_tensor[] = {
  {.name = "data", .kind = ADDRESS, .offset = offsetof(sluice_tensor, data), .size = sizeof(void *), .elements = 1},
  {.name = "stride", .kind = SIGNED, .offset = offsetof(sluice_tensor, stride), .size = sizeof(int64_t), .elements = 4},
};
static const struct recorded_struct struct_sluice_tensor = {"sluice_tensor", sizeof(sluice_tensor), 0, members_sluice_tensor, sizeof members_sluice_tensor / sizeof *members_sluice_tensor};

static const struct recorded_member members_sluice_rows[] = {
  {.name = "max_len", .kind = SIGNED, .offset = offsetof(sluice_rows, max_len), .size = sizeof(int32_t), .elements = 1},
  {.name = "reserved", .kind = UNSIGNED, .offset = offsetof(sluice_rows, reserved), .size = sizeof(uint32_t), .elements = 1},
  {.name = "starts", .kind = ADDRESS, .offset = offsetof(sluice_rows, starts), .size = sizeof(void *), .elements = 1},
  {.name = "lengths", .kind = ADDRESS, .offset = offsetof(sluice_rows, lengths), .size = sizeof(void *), .elements = 1},
  {.name = "total", .kind = SIGNED, .offset = offsetof(sluice_rows, total), .size = sizeof(int64_t), .elements = 1},
};
static const struct recorded_struct struct_sluice_rows = {"sluice_rows", sizeof(sluice_rows), 0, members_sluice_rows, sizeof members_sluice_rows / sizeof *members_sluice_rows};

static const struct recorded_member members_sluice_kv_scales[] = {
  {.name = "reserved", .kind = UNSIGNED, .offset = offsetof(sluice_kv_scales, reserved), .size = sizeof(uint32_t), .elements = 1},
  {.name = "k", .kind = STRUCT, .offset = offsetof(sluice_kv_scales, k), .size = sizeof(sluice_tensor), .elements = 1, .of = &struct_sluice_tensor},
  {.name = "v", .kind = STRUCT, .offset = offsetof(sluice_kv_scales, v), .size = sizeof(sluice_tensor), .elements = 1, .of = &struct_sluice_tensor},
  {.name = "k_zeros", .kind = STRUCT, .offset = offsetof(sluice_kv_scales, k_zeros), .size = sizeof(sluice_tensor), .elements = 1, .of = &struct_sluice_tensor},
  {.name = "v_zeros", .kind = STRUCT, .offset = offsetof(sluice_kv_scales, v_zeros), .size = sizeof(sluice_tensor), .elements = 1, .of = &struct_sluice_tensor},
};
static const struct recorded_struct struct_sluice_kv_scales = {"sluice_kv_scales", sizeof(sluice_kv_scales), 1, members_sluice_kv_scales, sizeof members_sluice_kv_scales / sizeof *members_sluice_kv_scales};

static const struct recorded_member members_sluice_kv[] = {
  {.name = "reserved", .kind = UNSIGNED, .offset = offsetof(sluice_kv, reserved), .size = sizeof(uint32_t), .elements = 1},
  {.name = "format", .kind = STRUCT, .offset = offsetof(sluice_kv, format), .size = sizeof(sluice_kv_format), .elements = 1, .of = &struct_sluice_kv_format, .is_pointer = 1},
  {.name = "k", .kind = STRUCT, .offset = offsetof(sluice_kv, k), .size = sizeof(sluice_tensor), .elements = 1, .of = &struct_sluice_tensor},
  {.name = "v", .kind = STRUCT, .offset = offsetof(sluice_kv, v), .size = sizeof(sluice_tensor), .elements = 1, .of = &struct_sluice_tensor},
  {.name = "scales", .kind = STRUCT, .offset = offsetof(sluice_kv, scales), .size = sizeof(sluice_kv_scales), .elements = 1, .of = &struct_sluice_kv_scales, .is_pointer = 1},
  {.name = "page_count", .kind = SIGNED, .offset = offsetof(sluice_kv, page_count), .size = sizeof(int64_t), .elements = 1},
};
static const struct recorded_struct struct_sluice_kv = {"sluice_kv", sizeof(sluice_kv), 1, members_sluice_kv, sizeof members_sluice_kv / sizeof *members_sluice_kv};

static const struct recorded_member members_sluice_pages[] = {
  {.name = "table", .kind = ADDRESS, .offset = offsetof(sluice_pages, table), .size = sizeof(void *), .elements = 1},
  {.name = "starts", .kind = ADDRESS, .offset = offsetof(sluice_pages, starts), .size = sizeof(void *), .elements = 1},
  {.name = "stride", .kind = SIGNED, .offset = offsetof(sluice_pages, stride), .size = sizeof(int64_t), .elements = 1},
  {.name = "head_stride", .kind = SIGNED, .offset = offsetof(sluice_pages, head_stride), .size = sizeof(int64_t), .elements = 1},
};
static const struct recorded_struct struct_sluice_pages = {"sluice_pages", sizeof(sluice_pages), 0, members_sluice_pages, sizeof members_sluice_pages / sizeof *members_sluice_pages};

static const struct recorded_member members_sluice_keys[] = {
  {.name = "groups", .kind = SIGNED, .offset = offsetof(sluice_keys, groups), .size = sizeof(int32_t), .elements = 1},
  {.name = "group_starts", .kind = ADDRESS, .offset = offsetof(sluice_keys, group_starts), .size = sizeof(void *), .elements = 1},
  {.name = "kv", .kind = STRUCT, .offset = offsetof(sluice_keys, kv), .size = sizeof(sluice_kv), .elements = 1, .of = &struct_sluice_kv, .is_pointer = 1},
  {.name = "rows", .kind = STRUCT, .offset = offsetof(sluice_keys, rows), .size = sizeof(sluice_rows), .elements = 1, .of = &struct_sluice_rows},
  {.name = "pages", .kind = STRUCT, .offset = offsetof(sluice_keys, pages), .size = sizeof(sluice_pages), .elements = 1, .of = &struct_sluice_pages},
};
static const struct recorded_struct struct_sluice_keys = {"sluice_keys", sizeof(sluice_keys), 1, members_sluice_keys, sizeof members_sluice_keys / sizeof *members_sluice_keys};

static const struct recorded_member members_sluice_mask_args[] = {
  {.name = "reserved", .kind = UNSIGNED, .offset = offsetof(sluice_mask_args, reserved), .size = sizeof(uint32_t), .elements = 1},
  {.name = "bits", .kind = STRUCT, .offset = offsetof(sluice_mask_args, bits), .size = sizeof(sluice_tensor), .elements = 1, .of = &struct_sluice_tensor},
  {.name = "spans", .kind = ADDRESS, .offset = offsetof(sluice_mask_args, spans), .size = sizeof(void *), .elements = 1},
  {.name = "span_count", .kind = SIGNED, .offset = offsetof(sluice_mask_args, span_count), .size = sizeof(int64_t), .elements = 1},
  {.name = "diagonals", .kind = ADDRESS, .offset = offsetof(sluice_mask_args, diagonals), .size = sizeof(void *), .elements = 1},
  {.name = "causal", .kind = ADDRESS, .offset = offsetof(sluice_mask_args, causal), .size = sizeof(void *), .elements = 1},
};
static const struct recorded_struct struct_sluice_mask_args = {"sluice_mask_args", sizeof(sluice_mask_args), 1, members_sluice_mask_args, sizeof members_sluice_mask_args / sizeof *members_sluice_mask_args};

static const struct recorded_member members_sluice_scores_args[] = {
  {.name = "reserved", .kind = UNSIGNED, .offset = offsetof(sluice_scores_args, reserved), .size = sizeof(uint32_t), .elements = 1},
  {.name = "bias", .kind = STRUCT, .offset = offsetof(sluice_scores_args, bias), .size = sizeof(sluice_tensor), .elements = 1, .of = &struct_sluice_tensor},
  {.name = "bias_scale", .kind = ADDRESS, .offset = offsetof(sluice_scores_args, bias_scale), .size = sizeof(void *), .elements = 1},
  {.name = "bias_scale_stride", .kind = SIGNED, .offset = offsetof(sluice_scores_args, bias_scale_stride), .size = sizeof(int64_t), .elements = 1},
  {.name = "alibi_slopes", .kind = ADDRESS, .offset = offsetof(sluice_scores_args, alibi_slopes), .size = sizeof(void *), .elements = 1},
  {.name = "alibi_stride", .kind = SIGNED, .offset = offsetof(sluice_scores_args, alibi_stride), .size = sizeof(int64_t), .elements = 1},
  {.name = "sinks", .kind = ADDRESS, .offset = offsetof(sluice_scores_args, sinks), .size = sizeof(void *), .elements = 1},
};
static const struct recorded_struct struct_sluice_scores_args = {"sluice_scores_args", sizeof(sluice_scores_args), 1, members_sluice_scores_args, sizeof members_sluice_scores_args / sizeof *members_sluice_scores_args};

static const struct recorded_member members_sluice_attention_args[] = {
  {.name = "batch", .kind = SIGNED, .offset = offsetof(sluice_attention_args, batch), .size = sizeof(int32_t), .elements = 1},
  {.name = "q", .kind = STRUCT, .offset = offsetof(sluice_attention_args, q), .size = sizeof(sluice_tensor), .elements = 1, .of = &struct_sluice_tensor},
  {.name = "o", .kind = STRUCT, .offset = offsetof(sluice_attention_args, o), .size = sizeof(sluice_tensor), .elements = 1, .of = &struct_sluice_tensor},
  {.name = "rows", .kind = STRUCT, .offset = offsetof(sluice_attention_args, rows), .size = sizeof(sluice_rows), .elements = 1, .of = &struct_sluice_rows},
  {.name = "keys", .kind = STRUCT, .offset = offsetof(sluice_attention_args, keys), .size = sizeof(sluice_keys), .elements = 1, .of = &struct_sluice_keys, .is_pointer = 1, .count = offsetof(sluice_attention_args, key_sets), .is_list = 1},
  {.name = "key_sets", .kind = UNSIGNED, .offset = offsetof(sluice_attention_args, key_sets), .size = sizeof(uint32_t), .elements = 1},
  {.name = "reserved", .kind = UNSIGNED, .offset = offsetof(sluice_attention_args, reserved), .size = sizeof(uint32_t), .elements = 1},
  {.name = "scale", .kind = FLOAT, .offset = offsetof(sluice_attention_args, scale), .size = sizeof(float), .elements = 1, .is_pointer = 1},
  {.name = "lse", .kind = STRUCT, .offset = offsetof(sluice_attention_args, lse), .size = sizeof(sluice_tensor), .elements = 1, .of = &struct_sluice_tensor, .is_pointer = 1},
  {.name = "mask", .kind = STRUCT, .offset = offsetof(sluice_attention_args, mask), .size = sizeof(sluice_mask_args), .elements = 1, .of = &struct_sluice_mask_args, .is_pointer = 1},
  {.name = "scores", .kind = STRUCT, .offset = offsetof(sluice_attention_args, scores), .size = sizeof(sluice_scores_args), .elements = 1, .of = &struct_sluice_scores_args, .is_pointer = 1},
  {.name = "q_scale", .kind = ADDRESS, .offset = offsetof(sluice_attention_args, q_scale), .size = sizeof(void *), .elements = 1},
  {.name = "o_scale", .kind = ADDRESS, .offset = offsetof(sluice_attention_args, o_scale), .size = sizeof(void *), .elements = 1},
};
static const struct recorded_struct struct_sluice_attention_args = {"sluice_attention_args", sizeof(sluice_attention_args), 1, members_sluice_attention_args, sizeof members_sluice_attention_args / sizeof *members_sluice_attention_args};

static const struct recorded_member members_sluice_dependency[] = {
  {.name = "kind", .kind = UNSIGNED, .offset = offsetof(sluice_dependency, kind), .size = sizeof(uint32_t), .elements = 1, .names = &names_sluice_dependency_kind},
  {.name = "reserved", .kind = UNSIGNED, .offset = offsetof(sluice_dependency, reserved), .size = sizeof(uint32_t), .elements = 1},
  {.name = "event", .kind = ADDRESS, .offset = offsetof(sluice_dependency, event), .size = sizeof(void *), .elements = 1},
  {.name = "stream", .kind = ADDRESS, .offset = offsetof(sluice_dependency, stream), .size = sizeof(void *), .elements = 1},
};
static const struct recorded_struct struct_sluice_dependency = {"sluice_dependency", sizeof(sluice_dependency), 0, members_sluice_dependency, sizeof members_sluice_dependency / sizeof *members_sluice_dependency};

static const struct recorded_member members_sluice_launch[] = {
  {.name = "dependency_count", .kind = UNSIGNED, .offset = offsetof(sluice_launch, dependency_count), .size = sizeof(uint32_t), .elements = 1},
  {.name = "stream", .kind = ADDRESS, .offset = offsetof(sluice_launch, stream), .size = sizeof(void *), .elements = 1},
  {.name = "workspace", .kind = ADDRESS, .offset = offsetof(sluice_launch, workspace), .size = sizeof(void *), .elements = 1},
  {.name = "workspace_bytes", .kind = UNSIGNED, .offset = offsetof(sluice_launch, workspace_bytes), .size = sizeof(uint64_t), .elements = 1},
  {.name = "dependencies", .kind = STRUCT, .offset = offsetof(sluice_launch, dependencies), .size = sizeof(sluice_dependency), .elements = 1, .of = &struct_sluice_dependency, .is_pointer = 1, .count = offsetof(sluice_launch, dependency_count), .is_list = 1},
  {.name = "signal_event", .kind = ADDRESS, .offset = offsetof(sluice_launch, signal_event), .size = sizeof(void *), .elements = 1},
};
static const struct recorded_struct struct_sluice_launch = {"sluice_launch", sizeof(sluice_launch), 1, members_sluice_launch, sizeof members_sluice_launch / sizeof *members_sluice_launch};

static const struct recorded_member members_sluice_rotation[] = {
  {.name = "style", .kind = UNSIGNED, .offset = offsetof(sluice_rotation, style), .size = sizeof(uint32_t), .elements = 1, .names = &names_sluice_rotary_style},
  {.name = "type", .kind = UNSIGNED, .offset = offsetof(sluice_rotation, type), .size = sizeof(uint32_t), .elements = 1, .names = &names_sluice_dtype},
  {.name = "dim", .kind = SIGNED, .offset = offsetof(sluice_rotation, dim), .size = sizeof(int32_t), .elements = 1},
  {.name = "first", .kind = SIGNED, .offset = offsetof(sluice_rotation, first), .size = sizeof(int32_t), .elements = 1},
  {.name = "reserved", .kind = UNSIGNED, .offset = offsetof(sluice_rotation, reserved), .size = sizeof(uint32_t), .elements = 1},
  {.name = "cosines", .kind = ADDRESS, .offset = offsetof(sluice_rotation, cosines), .size = sizeof(void *), .elements = 1},
  {.name = "sines", .kind = ADDRESS, .offset = offsetof(sluice_rotation, sines), .size = sizeof(void *), .elements = 1},
  {.name = "stride", .kind = SIGNED, .offset = offsetof(sluice_rotation, stride), .size = sizeof(int64_t), .elements = 1},
};
static const struct recorded_struct struct_sluice_rotation = {"sluice_rotation", sizeof(sluice_rotation), 1, members_sluice_rotation, sizeof members_sluice_rotation / sizeof *members_sluice_rotation};

static const struct recorded_member members_sluice_norm[] = {
  {.name = "type", .kind = UNSIGNED, .offset = offsetof(sluice_norm, type), .size = sizeof(uint32_t), .elements = 1, .names = &names_sluice_dtype},
  {.name = "weights", .kind = ADDRESS, .offset = offsetof(sluice_norm, weights), .size = sizeof(void *), .elements = 1},
  {.name = "epsilon", .kind = FLOAT, .offset = offsetof(sluice_norm, epsilon), .size = sizeof(float), .elements = 1},
  {.name = "reserved", .kind = UNSIGNED, .offset = offsetof(sluice_norm, reserved), .size = sizeof(uint32_t), .elements = 1},
};
static const struct recorded_struct struct_sluice_norm = {"sluice_norm", sizeof(sluice_norm), 1, members_sluice_norm, sizeof members_sluice_norm / sizeof *members_sluice_norm};

static const struct recorded_member members_sluice_append_q[] = {
  {.name = "heads", .kind = SIGNED, .offset = offsetof(sluice_append_q, heads), .size = sizeof(int32_t), .elements = 1},
  {.name = "q", .kind = STRUCT, .offset = offsetof(sluice_append_q, q), .size = sizeof(sluice_tensor), .elements = 1, .of = &struct_sluice_tensor},
  {.name = "out", .kind = STRUCT, .offset = offsetof(sluice_append_q, out), .size = sizeof(sluice_tensor), .elements = 1, .of = &struct_sluice_tensor},
  {.name = "tail", .kind = STRUCT, .offset = offsetof(sluice_append_q, tail), .size = sizeof(sluice_tensor), .elements = 1, .of = &struct_sluice_tensor},
  {.name = "norm", .kind = STRUCT, .offset = offsetof(sluice_append_q, norm), .size = sizeof(sluice_norm), .elements = 1, .of = &struct_sluice_norm, .is_pointer = 1},
};
static const struct recorded_struct struct_sluice_append_q = {"sluice_append_q", sizeof(sluice_append_q), 1, members_sluice_append_q, sizeof members_sluice_append_q / sizeof *members_sluice_append_q};

static const struct recorded_member members_sluice_append_args[] = {
  {.name = "source_type", .kind = UNSIGNED, .offset = offsetof(sluice_append_args, source_type), .size = sizeof(uint32_t), .elements = 1, .names = &names_sluice_dtype},
  {.name = "tokens", .kind = SIGNED, .offset = offsetof(sluice_append_args, tokens), .size = sizeof(int32_t), .elements = 1},
  {.name = "tail_dim", .kind = SIGNED, .offset = offsetof(sluice_append_args, tail_dim), .size = sizeof(int32_t), .elements = 1},
  {.name = "k", .kind = STRUCT, .offset = offsetof(sluice_append_args, k), .size = sizeof(sluice_tensor), .elements = 1, .of = &struct_sluice_tensor},
  {.name = "v", .kind = STRUCT, .offset = offsetof(sluice_append_args, v), .size = sizeof(sluice_tensor), .elements = 1, .of = &struct_sluice_tensor},
  {.name = "k_tail", .kind = STRUCT, .offset = offsetof(sluice_append_args, k_tail), .size = sizeof(sluice_tensor), .elements = 1, .of = &struct_sluice_tensor},
  {.name = "kv", .kind = STRUCT, .offset = offsetof(sluice_append_args, kv), .size = sizeof(sluice_kv), .elements = 1, .of = &struct_sluice_kv, .is_pointer = 1},
  {.name = "slots", .kind = ADDRESS, .offset = offsetof(sluice_append_args, slots), .size = sizeof(void *), .elements = 1},
  {.name = "batch", .kind = SIGNED, .offset = offsetof(sluice_append_args, batch), .size = sizeof(int32_t), .elements = 1},
  {.name = "reserved", .kind = UNSIGNED, .offset = offsetof(sluice_append_args, reserved), .size = sizeof(uint32_t), .elements = 1},
  {.name = "starts", .kind = ADDRESS, .offset = offsetof(sluice_append_args, starts), .size = sizeof(void *), .elements = 1},
  {.name = "lengths", .kind = ADDRESS, .offset = offsetof(sluice_append_args, lengths), .size = sizeof(void *), .elements = 1},
  {.name = "pages", .kind = STRUCT, .offset = offsetof(sluice_append_args, pages), .size = sizeof(sluice_pages), .elements = 1, .of = &struct_sluice_pages},
  {.name = "positions", .kind = ADDRESS, .offset = offsetof(sluice_append_args, positions), .size = sizeof(void *), .elements = 1},
  {.name = "rotation", .kind = STRUCT, .offset = offsetof(sluice_append_args, rotation), .size = sizeof(sluice_rotation), .elements = 1, .of = &struct_sluice_rotation, .is_pointer = 1},
  {.name = "k_norm", .kind = STRUCT, .offset = offsetof(sluice_append_args, k_norm), .size = sizeof(sluice_norm), .elements = 1, .of = &struct_sluice_norm, .is_pointer = 1},
  {.name = "q", .kind = STRUCT, .offset = offsetof(sluice_append_args, q), .size = sizeof(sluice_append_q), .elements = 1, .of = &struct_sluice_append_q, .is_pointer = 1},
};
static const struct recorded_struct struct_sluice_append_args = {"sluice_append_args", sizeof(sluice_append_args), 1, members_sluice_append_args, sizeof members_sluice_append_args / sizeof *members_sluice_append_args};

static const struct recorded_member members_sluice_copy_args[] = {
  {.name = "pairs_64", .kind = UNSIGNED, .offset = offsetof(sluice_copy_args, pairs_64), .size = sizeof(uint32_t), .elements = 1},
  {.name = "source", .kind = STRUCT, .offset = offsetof(sluice_copy_args, source), .size = sizeof(sluice_kv), .elements = 1, .of = &struct_sluice_kv, .is_pointer = 1},
  {.name = "target", .kind = STRUCT, .offset = offsetof(sluice_copy_args, target), .size = sizeof(sluice_kv), .elements = 1, .of = &struct_sluice_kv, .is_pointer = 1},
  {.name = "pairs", .kind = ADDRESS, .offset = offsetof(sluice_copy_args, pairs), .size = sizeof(void *), .elements = 1},
  {.name = "pair_count", .kind = SIGNED, .offset = offsetof(sluice_copy_args, pair_count), .size = sizeof(int64_t), .elements = 1},
};
static const struct recorded_struct struct_sluice_copy_args = {"sluice_copy_args", sizeof(sluice_copy_args), 1, members_sluice_copy_args, sizeof members_sluice_copy_args / sizeof *members_sluice_copy_args};

static const struct recorded_member members_sluice_gather_args[] = {
  {.name = "batch", .kind = SIGNED, .offset = offsetof(sluice_gather_args, batch), .size = sizeof(int32_t), .elements = 1},
  {.name = "source", .kind = STRUCT, .offset = offsetof(sluice_gather_args, source), .size = sizeof(sluice_kv), .elements = 1, .of = &struct_sluice_kv, .is_pointer = 1},
  {.name = "pages", .kind = STRUCT, .offset = offsetof(sluice_gather_args, pages), .size = sizeof(sluice_pages), .elements = 1, .of = &struct_sluice_pages},
  {.name = "lengths", .kind = ADDRESS, .offset = offsetof(sluice_gather_args, lengths), .size = sizeof(void *), .elements = 1},
  {.name = "first_keys", .kind = ADDRESS, .offset = offsetof(sluice_gather_args, first_keys), .size = sizeof(void *), .elements = 1},
  {.name = "target", .kind = STRUCT, .offset = offsetof(sluice_gather_args, target), .size = sizeof(sluice_kv), .elements = 1, .of = &struct_sluice_kv, .is_pointer = 1},
  {.name = "starts", .kind = ADDRESS, .offset = offsetof(sluice_gather_args, starts), .size = sizeof(void *), .elements = 1},
  {.name = "tokens", .kind = SIGNED, .offset = offsetof(sluice_gather_args, tokens), .size = sizeof(int32_t), .elements = 1},
  {.name = "reserved", .kind = UNSIGNED, .offset = offsetof(sluice_gather_args, reserved), .size = sizeof(uint32_t), .elements = 1},
};
static const struct recorded_struct struct_sluice_gather_args = {"sluice_gather_args", sizeof(sluice_gather_args), 1, members_sluice_gather_args, sizeof members_sluice_gather_args / sizeof *members_sluice_gather_args};

static const struct recorded_member members_sluice_parts[] = {
  {.name = "type", .kind = UNSIGNED, .offset = offsetof(sluice_parts, type), .size = sizeof(uint32_t), .elements = 1, .names = &names_sluice_dtype},
  {.name = "count", .kind = SIGNED, .offset = offsetof(sluice_parts, count), .size = sizeof(int32_t), .elements = 1},
  {.name = "o", .kind = STRUCT, .offset = offsetof(sluice_parts, o), .size = sizeof(sluice_tensor), .elements = 1, .of = &struct_sluice_tensor},
  {.name = "lse", .kind = STRUCT, .offset = offsetof(sluice_parts, lse), .size = sizeof(sluice_tensor), .elements = 1, .of = &struct_sluice_tensor},
  {.name = "o_list", .kind = ADDRESS, .offset = offsetof(sluice_parts, o_list), .size = sizeof(void *), .elements = 1, .is_pointer = 1, .count = offsetof(sluice_parts, count), .is_list = 1},
  {.name = "lse_list", .kind = ADDRESS, .offset = offsetof(sluice_parts, lse_list), .size = sizeof(void *), .elements = 1, .is_pointer = 1, .count = offsetof(sluice_parts, count), .is_list = 1},
  {.name = "lse_sequence_stride", .kind = SIGNED, .offset = offsetof(sluice_parts, lse_sequence_stride), .size = sizeof(int64_t), .elements = 1},
};
static const struct recorded_struct struct_sluice_parts = {"sluice_parts", sizeof(sluice_parts), 0, members_sluice_parts, sizeof members_sluice_parts / sizeof *members_sluice_parts};

static const struct recorded_member members_sluice_merge_args[] = {
  {.name = "flags", .kind = UNSIGNED, .offset = offsetof(sluice_merge_args, flags), .size = sizeof(uint32_t), .elements = 1, .names = &names_sluice_merge_flag},
  {.name = "tokens", .kind = SIGNED, .offset = offsetof(sluice_merge_args, tokens), .size = sizeof(int32_t), .elements = 1},
  {.name = "heads", .kind = SIGNED, .offset = offsetof(sluice_merge_args, heads), .size = sizeof(int32_t), .elements = 1},
  {.name = "head_dim", .kind = SIGNED, .offset = offsetof(sluice_merge_args, head_dim), .size = sizeof(int32_t), .elements = 1},
  {.name = "lse_base", .kind = UNSIGNED, .offset = offsetof(sluice_merge_args, lse_base), .size = sizeof(uint32_t), .elements = 1, .names = &names_sluice_lse},
  {.name = "o_format", .kind = STRUCT, .offset = offsetof(sluice_merge_args, o_format), .size = sizeof(sluice_format), .elements = 1, .of = &struct_sluice_format},
  {.name = "parts", .kind = STRUCT, .offset = offsetof(sluice_merge_args, parts), .size = sizeof(sluice_parts), .elements = 1, .of = &struct_sluice_parts},
  {.name = "o", .kind = STRUCT, .offset = offsetof(sluice_merge_args, o), .size = sizeof(sluice_tensor), .elements = 1, .of = &struct_sluice_tensor},
  {.name = "lse", .kind = STRUCT, .offset = offsetof(sluice_merge_args, lse), .size = sizeof(sluice_tensor), .elements = 1, .of = &struct_sluice_tensor},
  {.name = "lse_sequence_stride", .kind = SIGNED, .offset = offsetof(sluice_merge_args, lse_sequence_stride), .size = sizeof(int64_t), .elements = 1},
  {.name = "sequence_tokens", .kind = SIGNED, .offset = offsetof(sluice_merge_args, sequence_tokens), .size = sizeof(int32_t), .elements = 1},
  {.name = "reserved", .kind = UNSIGNED, .offset = offsetof(sluice_merge_args, reserved), .size = sizeof(uint32_t), .elements = 1},
  {.name = "sinks", .kind = ADDRESS, .offset = offsetof(sluice_merge_args, sinks), .size = sizeof(void *), .elements = 1},
  {.name = "o_scale", .kind = ADDRESS, .offset = offsetof(sluice_merge_args, o_scale), .size = sizeof(void *), .elements = 1},
};
static const struct recorded_struct struct_sluice_merge_args = {"sluice_merge_args", sizeof(sluice_merge_args), 1, members_sluice_merge_args, sizeof members_sluice_merge_args / sizeof *members_sluice_merge_args};

sluice_status sluice_attention_support(const sluice_context *context, const sluice_attention *attention, sluice_support *support, sluice_error *error) {
  FILE *to = recording_begin("sluice_attention_support");
  recording_handle(to, "context", context, recorder_sluice_context);
  recording_struct(to, "attention", &struct_sluice_attention, attention);
  if (support != NULL) recorder_answer_sluice_support(support);
  (void)error;
  recording_end(to);
  return SLUICE_OK;
}

sluice_status sluice_attention_plan(sluice_context *context, const sluice_attention *attention, sluice_plan **out, sluice_error *error) {
  FILE *to = recording_begin("sluice_attention_plan");
  recording_handle(to, "context", context, recorder_sluice_context);
  recording_struct(to, "attention", &struct_sluice_attention, attention);
  *out = recorder_sluice_plan;
  (void)error;
  recording_end(to);
  return SLUICE_OK;
}

sluice_status sluice_attention_preload(sluice_context *context, const sluice_attention *attention, sluice_error *error) {
  FILE *to = recording_begin("sluice_attention_preload");
  recording_handle(to, "context", context, recorder_sluice_context);
  recording_struct(to, "attention", &struct_sluice_attention, attention);
  (void)error;
  recording_end(to);
  return SLUICE_OK;
}

sluice_status sluice_attention_run(const sluice_plan *plan, const sluice_attention_args *args, const sluice_launch *launch, sluice_error *error) {
  FILE *to = recording_begin("sluice_attention_run");
  recording_handle(to, "plan", plan, recorder_sluice_plan);
  recording_struct(to, "args", &struct_sluice_attention_args, args);
  recording_struct(to, "launch", &struct_sluice_launch, launch);
  (void)error;
  recording_end(to);
  return SLUICE_OK;
}

sluice_status sluice_attention_reference(const sluice_attention *attention, const sluice_attention_args *args, sluice_error *error) {
  FILE *to = recording_begin("sluice_attention_reference");
  recording_struct(to, "attention", &struct_sluice_attention, attention);
  recording_struct(to, "args", &struct_sluice_attention_args, args);
  (void)error;
  recording_end(to);
  return SLUICE_OK;
}

sluice_status sluice_cache_append(sluice_context *context, const sluice_append_args *args, const sluice_launch *launch, sluice_error *error) {
  FILE *to = recording_begin("sluice_cache_append");
  recording_handle(to, "context", context, recorder_sluice_context);
  recording_struct(to, "args", &struct_sluice_append_args, args);
  recording_struct(to, "launch", &struct_sluice_launch, launch);
  (void)error;
  recording_end(to);
  return SLUICE_OK;
}

sluice_status sluice_cache_append_reference(const sluice_append_args *args, sluice_error *error) {
  FILE *to = recording_begin("sluice_cache_append_reference");
  recording_struct(to, "args", &struct_sluice_append_args, args);
  (void)error;
  recording_end(to);
  return SLUICE_OK;
}

sluice_status sluice_cache_copy(sluice_context *context, const sluice_copy_args *args, const sluice_launch *launch, sluice_error *error) {
  FILE *to = recording_begin("sluice_cache_copy");
  recording_handle(to, "context", context, recorder_sluice_context);
  recording_struct(to, "args", &struct_sluice_copy_args, args);
  recording_struct(to, "launch", &struct_sluice_launch, launch);
  (void)error;
  recording_end(to);
  return SLUICE_OK;
}

sluice_status sluice_cache_copy_reference(const sluice_copy_args *args, sluice_error *error) {
  FILE *to = recording_begin("sluice_cache_copy_reference");
  recording_struct(to, "args", &struct_sluice_copy_args, args);
  (void)error;
  recording_end(to);
  return SLUICE_OK;
}

sluice_status sluice_cache_gather(sluice_context *context, const sluice_gather_args *args, const sluice_launch *launch, sluice_error *error) {
  FILE *to = recording_begin("sluice_cache_gather");
  recording_handle(to, "context", context, recorder_sluice_context);
  recording_struct(to, "args", &struct_sluice_gather_args, args);
  recording_struct(to, "launch", &struct_sluice_launch, launch);
  (void)error;
  recording_end(to);
  return SLUICE_OK;
}

sluice_status sluice_cache_gather_reference(const sluice_gather_args *args, sluice_error *error) {
  FILE *to = recording_begin("sluice_cache_gather_reference");
  recording_struct(to, "args", &struct_sluice_gather_args, args);
  (void)error;
  recording_end(to);
  return SLUICE_OK;
}

sluice_status sluice_attention_merge(sluice_context *context, const sluice_merge_args *args, const sluice_launch *launch, sluice_error *error) {
  FILE *to = recording_begin("sluice_attention_merge");
  recording_handle(to, "context", context, recorder_sluice_context);
  recording_struct(to, "args", &struct_sluice_merge_args, args);
  recording_struct(to, "launch", &struct_sluice_launch, launch);
  (void)error;
  recording_end(to);
  return SLUICE_OK;
}

sluice_status sluice_error_init(sluice_error *error, size_t size) {
  return recorder_init(error, size, sizeof *error);
}

sluice_status sluice_build_init(sluice_build *build, size_t size) {
  return recorder_init(build, size, sizeof *build);
}

sluice_status sluice_context_desc_init(sluice_context_desc *desc, size_t size) {
  return recorder_init(desc, size, sizeof *desc);
}

sluice_status sluice_device_info_init(sluice_device_info *info, size_t size) {
  return recorder_init(info, size, sizeof *info);
}

sluice_status sluice_launch_init(sluice_launch *launch, size_t size) {
  return recorder_init(launch, size, sizeof *launch);
}

sluice_status sluice_support_init(sluice_support *support, size_t size) {
  return recorder_init(support, size, sizeof *support);
}

sluice_status sluice_plan_info_init(sluice_plan_info *info, size_t size) {
  return recorder_init(info, size, sizeof *info);
}

sluice_status sluice_kernel_info_init(sluice_kernel_info *info, size_t size) {
  return recorder_init(info, size, sizeof *info);
}

sluice_status sluice_counters_init(sluice_counters *counters, size_t size) {
  return recorder_init(counters, size, sizeof *counters);
}
