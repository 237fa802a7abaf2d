//===- call_values.cpp - a flat problem and call as the small structs of attention.h --------------------===//
#include "support/call_values.h"

#include <utility>

namespace sluice::test {
namespace {

template <typename Struct> void begin(Struct &one) {
  one.struct_size = sizeof one;
}

using Bits = std::initializer_list<std::pair<uint32_t, uint32_t>>;

uint32_t renamed(uint32_t flags, Bits bits) {
  uint32_t result = 0;
  for (const auto &[from, to] : bits)
    if (flags & from) result |= to;
  return result;
}

sluice_format format_of(uint32_t type, uint32_t scale_kind, const sluice_problem &problem, int32_t pack) {
  const bool has_groups = scale_kind == SLUICE_SCALE_PER_GROUP;
  return {.type = type,
          .scale_kind = scale_kind,
          .scale_group = has_groups ? problem.scale_group : 0,
          .zero_points = has_groups && (problem.flags & SLUICE_ZERO_POINTS) ? 1u : 0u,
          .pack = pack,
          .reserved = 0};
}

bool is_one(uint32_t scale_kind) {
  return scale_kind == SLUICE_SCALE_PER_TENSOR || scale_kind == SLUICE_SCALE_PER_HEAD;
}

sluice_tensor scales_of(uint32_t kind, const float *one, const sluice_tensor &each) {
  return is_one(kind) ? sluice_tensor{const_cast<float *>(one), {}} : each;
}

int32_t length(int32_t given, const sluice_args &call) {
  return given == 0 && !(call.flags & SLUICE_EXACT_LENGTHS) ? int32_t{SLUICE_PLAN_BOUND} : given;
}

/// A flat stride of 0 is one table for all.
int64_t table_stride(int64_t stride, int32_t count) {
  return stride == 0 && count > 1 ? int64_t{SLUICE_SHARED} : stride;
}

} // namespace

bool CallValues::can_say(const sluice_problem &problem, const sluice_args &call) {
  if (problem.flags & SLUICE_V_IN_K &&
      (problem.v_scale_kind != problem.k_scale_kind || call.v_scale != call.k_scale ||
       call.v_scales.data != call.k_scales.data))
    return false;
  const auto has_arrays = [&](int32_t len, const int32_t *starts, const int32_t *lengths) {
    return len == 0 && call.flags & SLUICE_EXACT_LENGTHS && (starts != nullptr || lengths != nullptr);
  };
  return !has_arrays(call.q_len, call.q_starts, call.q_lengths) &&
         !has_arrays(call.kv_len, call.kv_starts, call.kv_lengths) &&
         !has_arrays(call.prefix_len, nullptr, call.prefix_lengths);
}

CallValues::CallValues(const sluice_problem &problem, const sluice_args &call) {
  begin(attention);
  attention.flags = renamed(problem.flags, {{SLUICE_PADDED_ROWS, SLUICE_ATTENTION_PADDED_ROWS},
                                            {SLUICE_SHARED_PREFIX, SLUICE_ATTENTION_PREFIXES}});
  if (problem.mode == SLUICE_MODE_RAGGED) attention.flags |= SLUICE_ATTENTION_RAGGED;
  if (problem.determinism != 0) attention.flags |= SLUICE_ATTENTION_BATCH_INVARIANT;
  attention.q_heads = problem.q_heads;
  attention.q = {problem.q_type, problem.q_scale_kind, 0, 0, 0, 0};
  attention.o = {problem.o_type, problem.o_scale_kind, 0, 0, 0, 0};
  attention.bounds = {problem.max_batch,    problem.max_q_len,      problem.max_kv_len,
                      problem.max_prefixes, problem.max_prefix_len, 0,
                      problem.max_q_tokens};
  attention.workspace_ceiling_bytes = problem.workspace_ceiling_bytes;
  set_format(problem);
  set_features(problem);

  begin(args);
  args.batch = call.batch;
  args.q = call.q;
  args.o = call.o;
  args.rows = {length(call.q_len, call), 0, call.q_starts, call.q_lengths, call.q_tokens};
  args.keys = keys;
  args.key_sets = 1;
  if (call.scale != 0 || call.flags & SLUICE_EXACT_SCALE) {
    scale = call.scale;
    args.scale = &scale;
  }
  set_keys(problem, call);
  if (problem.flags & SLUICE_SHARED_PREFIX) set_prefixes(problem, call);
  set_feature_args(problem, call);
}

void CallValues::set_format(const sluice_problem &problem) {
  begin(format);
  format.flags = renamed(
      problem.flags, {{SLUICE_V_IN_K, SLUICE_KV_V_IN_K}, {SLUICE_PAGE_INDEX_64, SLUICE_KV_PAGE_INDEX_64}});
  format.kv_heads = problem.kv_heads;
  format.head_dim_qk = problem.head_dim_qk;
  format.head_dim_v = problem.head_dim_v;
  format.page_size = problem.page_size;
  format.page_table = problem.page_table_kind;
  format.k = format_of(problem.k_type, problem.k_scale_kind, problem, problem.k_pack);
  if (!(problem.flags & SLUICE_V_IN_K))
    format.v = format_of(problem.v_type, problem.v_scale_kind, problem, problem.v_pack);
  attention.kv = &format;
}

void CallValues::set_features(const sluice_problem &problem) {
  begin(mask);
  mask.flags = renamed(problem.flags, {{SLUICE_CAUSAL, SLUICE_MASK_CAUSAL},
                                       {SLUICE_CAUSAL_BY_SEQUENCE, SLUICE_MASK_CAUSAL_BY_SEQUENCE},
                                       {SLUICE_HAS_WINDOW_LEFT, SLUICE_MASK_WINDOW_LEFT},
                                       {SLUICE_HAS_WINDOW_RIGHT, SLUICE_MASK_WINDOW_RIGHT},
                                       {SLUICE_BOOL_MASK, SLUICE_MASK_BITS},
                                       {SLUICE_MASK_NEW_ROWS, SLUICE_MASK_BITS_OF_NEW},
                                       {SLUICE_SPANS, SLUICE_MASK_SPANS},
                                       {SLUICE_MISSING_PAGES_HIDDEN, SLUICE_MASK_MISSING_PAGES}});
  mask.alignment = problem.mask_alignment;
  mask.window_left = problem.window_left;
  mask.window_right = problem.window_right;
  mask.sink_tokens = problem.sink_tokens;
  if (mask.flags != 0 || mask.alignment != 0) attention.mask = &mask;
  begin(score_changes);
  score_changes.flags = renamed(problem.flags, {{SLUICE_ALIBI, SLUICE_SCORES_ALIBI},
                                                {SLUICE_SINK_LOGITS, SLUICE_SCORES_SINK},
                                                {SLUICE_BIAS_SCALE, SLUICE_SCORES_BIAS_SCALE}});
  score_changes.soft_cap = problem.soft_cap;
  score_changes.bias_type = problem.bias_type;
  if (score_changes.flags != 0 || problem.soft_cap != 0 || problem.bias_type != 0)
    attention.scores = &score_changes;
  if (problem.flags & SLUICE_WRITE_LSE)
    attention.lse = problem.lse_base == SLUICE_LSE_BASE_2 ? SLUICE_LSE_LOG2 : SLUICE_LSE_LN;
}

void CallValues::set_keys(const sluice_problem &problem, const sluice_args &call) {
  begin(scales);
  scales.k = scales_of(problem.k_scale_kind, call.k_scale, call.k_scales);
  scales.k_zeros = call.k_zeros;
  if (!(problem.flags & SLUICE_V_IN_K)) {
    scales.v = scales_of(problem.v_scale_kind, call.v_scale, call.v_scales);
    scales.v_zeros = call.v_zeros;
  }
  begin(kv);
  kv.format = &format;
  kv.k = call.k;
  kv.v = call.v;
  kv.page_count = call.page_count;
  if (problem.k_scale_kind != 0 || problem.v_scale_kind != 0) kv.scales = &scales;
  begin(keys[0]);
  keys[0].kv = &kv;
  keys[0].rows = {length(call.kv_len, call), 0, call.kv_starts, call.kv_lengths, call.kv_tokens};
  keys[0].pages = {call.page_table, call.page_starts, call.page_table_stride, call.page_table_head_stride};
  if (problem.page_table_kind == SLUICE_PAGE_TABLE_BLOCK)
    keys[0].pages.stride = table_stride(call.page_table_stride, call.batch);
}

void CallValues::set_prefixes(const sluice_problem &problem, const sluice_args &call) {
  args.key_sets = 2;
  prefix_kv = kv;
  if (problem.mode != SLUICE_MODE_PAGED) {
    prefix_kv.k = call.prefix_k;
    prefix_kv.v = call.prefix_v;
  }
  begin(keys[1]);
  keys[1].kv = &prefix_kv;
  keys[1].groups = call.prefix_count;
  keys[1].group_starts = call.prefix_q_starts;
  keys[1].rows = {length(call.prefix_len, call), 0, nullptr, call.prefix_lengths, 0};
  keys[1].pages = {call.prefix_page_table, call.prefix_page_starts, call.prefix_page_table_stride, 0};
  if (problem.page_table_kind == SLUICE_PAGE_TABLE_BLOCK)
    keys[1].pages.stride = table_stride(call.prefix_page_table_stride, call.prefix_count);
}

void CallValues::set_feature_args(const sluice_problem &problem, const sluice_args &call) {
  begin(mask_args);
  mask_args.bits = call.mask;
  mask_args.spans = call.spans;
  mask_args.span_count = call.span_count;
  mask_args.diagonals = call.diagonals;
  mask_args.causal = call.causal;
  if (attention.mask != nullptr) args.mask = &mask_args;
  begin(scores_args);
  scores_args.bias = call.bias;
  scores_args.bias_scale = call.bias_scale;
  scores_args.bias_scale_stride = call.bias_scale_batch_stride;
  scores_args.alibi_slopes = call.alibi_slopes;
  scores_args.alibi_stride = call.alibi_batch_stride;
  scores_args.sinks = call.sink_logits;
  if (attention.scores != nullptr) args.scores = &scores_args;
  lse = call.lse;
  if (problem.flags & SLUICE_WRITE_LSE) args.lse = &lse;
  args.q_scale = call.q_scale;
  args.o_scale = call.o_scale;
}

} // namespace sluice::test
