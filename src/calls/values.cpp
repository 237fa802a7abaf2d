//===- values.cpp - calls as the structs of the C ABI ---------------------------------------------------===//
#include "calls/values.h"

#include <initializer_list>
#include <utility>

namespace sluice::calls {
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

/// `call`: any struct of this folder with scale_group and flags.
template <typename Call>
sluice_format format_of(uint32_t type, uint32_t scale_kind, int32_t pack, const Call &call) {
  const bool has_groups = scale_kind == SLUICE_SCALE_PER_GROUP;
  return {.type = type,
          .scale_kind = scale_kind,
          .scale_group = has_groups ? call.scale_group : 0,
          .zero_points = has_groups && (call.flags & zero_points) ? 1u : 0u,
          .pack = pack,
          .reserved = 0};
}

sluice_tensor scales_of(uint32_t kind, const float *one, const sluice_tensor &each) {
  return kind == SLUICE_SCALE_PER_TENSOR || kind == SLUICE_SCALE_PER_HEAD
             ? sluice_tensor{const_cast<float *>(one), {}}
             : each;
}

/// What the formats of all these structs have alike.
template <typename Call> sluice_kv_format kv_format_of(const Call &call) {
  sluice_kv_format format = {};
  begin(format);
  format.flags = renamed(call.flags, {{v_in_k, SLUICE_KV_V_IN_K}, {page_index_64, SLUICE_KV_PAGE_INDEX_64}});
  format.kv_heads = call.kv_heads;
  format.head_dim_qk = call.head_dim_qk;
  format.head_dim_v = call.head_dim_v;
  format.page_size = call.page_size;
  return format;
}

template <typename Call> void set_scales(KvValues &out, const Call &call) {
  begin(out.scales);
  out.scales.k = scales_of(out.format.k.scale_kind, call.k_scale, call.k_scales);
  out.scales.k_zeros = call.k_zeros;
  if (!(call.flags & v_in_k)) {
    out.scales.v = scales_of(out.format.v.scale_kind, call.v_scale, call.v_scales);
    out.scales.v_zeros = call.v_zeros;
  }
  if (out.format.k.scale_kind != 0 || out.format.v.scale_kind != 0) out.kv.scales = &out.scales;
}

void set_kv(KvValues &out, const sluice_tensor &k, const sluice_tensor &v, int64_t page_count) {
  begin(out.kv);
  out.kv.format = &out.format;
  out.kv.k = k;
  out.kv.v = v;
  out.kv.page_count = page_count;
}

/// Here a stride of 0 is one table for all.
int64_t table_stride(uint32_t page_table_kind, int64_t stride, int32_t count) {
  const bool is_shared = page_table_kind == SLUICE_PAGE_TABLE_BLOCK && stride == 0 && count > 1;
  return is_shared ? int64_t{SLUICE_SHARED} : stride;
}

/// V in K has no format of its own. A cache of an append, copy or gather has no rows of V then.
template <typename Call> void set_format(KvValues &out, const Call &call, uint32_t type, bool is_scaled) {
  out.format = kv_format_of(call);
  const uint32_t k_kind = is_scaled ? call.k_scale_kind : 0, v_kind = is_scaled ? call.v_scale_kind : 0;
  out.format.k = format_of(type, k_kind, 0, call);
  if (call.flags & v_in_k) {
    out.format.head_dim_v = call.head_dim_qk;
  } else {
    out.format.v = format_of(type, v_kind, 0, call);
  }
}

bool is_of_keys(uint32_t kind) {
  return kind >= SLUICE_SCALE_PER_TOKEN;
}

/// The two sides of a copy or gather. Scales of keys are those of the source, and between equal types also
/// those of the target, which `target` has in the members of a call; a scale per tensor or head is the
/// target's if its numbers are divided by it.
template <typename Call>
void set_sides(KvValues &source, KvValues &target, const Call &call, uint32_t from, uint32_t to,
               const sluice_kv_scales &target_scales) {
  const bool is_same = from == to;
  const bool is_targets = !is_same && !is_of_keys(call.k_scale_kind) && !is_of_keys(call.v_scale_kind) &&
                          (from == SLUICE_F16 || from == SLUICE_BF16);
  set_format(source, call, from, !is_targets);
  set_format(target, call, to, is_same || is_targets);
  if (!is_targets) set_scales(source, call);
  if (is_targets) set_scales(target, call);
  if (!is_same || (call.k_scale_kind == 0 && call.v_scale_kind == 0)) return;
  target.scales = target_scales;
  begin(target.scales);
  target.kv.scales = &target.scales;
}

/// Without rows the arrays say nothing. A caller that gives them, and memory, has forgotten the length.
sluice_rows rows_of(const void *memory, int32_t max_len, const int32_t *starts, const int32_t *lengths,
                    int64_t total) {
  if (max_len == 0 && memory != nullptr) return {};
  return {max_len, 0, starts, lengths, total};
}

} // namespace

ProblemValues::ProblemValues(const Problem &problem) {
  begin(attention);
  attention.flags = renamed(problem.flags, {{padded_rows, SLUICE_ATTENTION_PADDED_ROWS},
                                            {prefixes, SLUICE_ATTENTION_PREFIXES},
                                            {batch_invariant, SLUICE_ATTENTION_BATCH_INVARIANT}});
  if (problem.mode == ragged) attention.flags |= SLUICE_ATTENTION_RAGGED;
  attention.q_heads = problem.q_heads;
  attention.q = {problem.q_type, problem.q_scale_kind, 0, 0, 0, 0};
  attention.o = {problem.o_type, problem.o_scale_kind, 0, 0, 0, 0};
  attention.bounds = {problem.max_batch,    problem.max_q_len,      problem.max_kv_len,
                      problem.max_prefixes, problem.max_prefix_len, 0,
                      problem.max_q_tokens};
  attention.workspace_ceiling_bytes = problem.workspace_ceiling_bytes;
  format = kv_format_of(problem);
  format.page_table = problem.page_table_kind;
  format.k = format_of(problem.k_type, problem.k_scale_kind, problem.k_pack, problem);
  if (!(problem.flags & v_in_k))
    format.v = format_of(problem.v_type, problem.v_scale_kind, problem.v_pack, problem);
  attention.kv = &format;
  set_features(problem);
  if (problem.flags & write_lse) attention.lse = problem.flags & lse_log2 ? SLUICE_LSE_LOG2 : SLUICE_LSE_LN;
}

void ProblemValues::set_features(const Problem &problem) {
  begin(mask);
  mask.flags = renamed(problem.flags, {{causal, SLUICE_MASK_CAUSAL},
                                       {causal_by_sequence, SLUICE_MASK_CAUSAL_BY_SEQUENCE},
                                       {window_left, SLUICE_MASK_WINDOW_LEFT},
                                       {window_right, SLUICE_MASK_WINDOW_RIGHT},
                                       {mask_bits, SLUICE_MASK_BITS},
                                       {mask_bits_of_new, SLUICE_MASK_BITS_OF_NEW},
                                       {spans, SLUICE_MASK_SPANS},
                                       {missing_pages, SLUICE_MASK_MISSING_PAGES}});
  mask.alignment = problem.mask_alignment;
  mask.window_left = problem.window_left;
  mask.window_right = problem.window_right;
  mask.sink_tokens = problem.sink_tokens;
  attention.mask = &mask;
  begin(scores);
  scores.flags = renamed(
      problem.flags,
      {{alibi, SLUICE_SCORES_ALIBI}, {sinks, SLUICE_SCORES_SINK}, {bias_scale, SLUICE_SCORES_BIAS_SCALE}});
  scores.soft_cap = problem.soft_cap;
  scores.bias_type = problem.bias_type;
  attention.scores = &scores;
}

ArgsValues::ArgsValues(const Problem &problem, const Args &call) {
  begin(args);
  args.batch = call.batch;
  args.q = call.q;
  args.o = call.o;
  args.rows = rows_of(call.q.data, call.q_len, call.q_starts, call.q_lengths, call.q_tokens);
  args.keys = keys;
  args.key_sets = 1;
  // The usual scale is in general no float.
  scale = float(call.scale);
  if (call.scale != usual_scale(problem)) args.scale = &scale;
  set_keys(problem, call);
  if (problem.flags & prefixes) set_prefixes(problem, call);
  set_features(problem, call);
}

void ArgsValues::set_keys(const Problem &problem, const Args &call) {
  cache.format = kv_format_of(problem);
  cache.format.page_table = problem.page_table_kind;
  cache.format.k = format_of(problem.k_type, problem.k_scale_kind, problem.k_pack, problem);
  if (!(problem.flags & v_in_k))
    cache.format.v = format_of(problem.v_type, problem.v_scale_kind, problem.v_pack, problem);
  set_kv(cache, call.k, call.v, call.page_count);
  begin(cache.scales);
  cache.scales.k = scales_of(problem.k_scale_kind, call.k_scale, call.k_scales);
  cache.scales.k_zeros = call.k_zeros;
  if (!(problem.flags & v_in_k)) {
    cache.scales.v = scales_of(problem.v_scale_kind, call.v_scale, call.v_scales);
    cache.scales.v_zeros = call.v_zeros;
  }
  if (problem.k_scale_kind != 0 || problem.v_scale_kind != 0) cache.kv.scales = &cache.scales;
  begin(keys[0]);
  keys[0].kv = &cache.kv;
  keys[0].rows = rows_of(call.k.data, call.kv_len, call.kv_starts, call.kv_lengths, call.kv_tokens);
  keys[0].pages = {call.page_table, call.page_starts,
                   table_stride(problem.page_table_kind, call.page_table_stride, call.batch),
                   call.page_table_head_stride};
}

void ArgsValues::set_prefixes(const Problem &problem, const Args &call) {
  args.key_sets = 2;
  prefix_kv = cache.kv;
  if (problem.mode != paged) {
    prefix_kv.k = call.prefix_k;
    prefix_kv.v = call.prefix_v;
  }
  begin(keys[1]);
  keys[1].kv = &prefix_kv;
  keys[1].groups = call.prefix_count;
  keys[1].group_starts = call.prefix_q_starts;
  keys[1].rows = rows_of(prefix_kv.k.data, call.prefix_len, nullptr, call.prefix_lengths, 0);
  keys[1].pages = {call.prefix_page_table, call.prefix_page_starts,
                   table_stride(problem.page_table_kind, call.prefix_page_table_stride, call.prefix_count),
                   0};
}

void ArgsValues::set_features(const Problem &problem, const Args &call) {
  begin(mask);
  mask.bits = call.mask;
  mask.spans = call.spans;
  mask.span_count = call.span_count;
  mask.diagonals = call.diagonals;
  mask.causal = call.causal;
  args.mask = &mask;
  begin(scores);
  scores.bias = call.bias;
  scores.bias_scale = call.bias_scale;
  scores.bias_scale_stride = call.bias_scale_batch_stride;
  scores.alibi_slopes = call.alibi_slopes;
  scores.alibi_stride = call.alibi_batch_stride;
  scores.sinks = call.sink_logits;
  args.scores = &scores;
  lse = call.lse;
  if (problem.flags & write_lse || lse.data != nullptr) args.lse = &lse;
  args.q_scale = call.q_scale;
  args.o_scale = call.o_scale;
}

AppendValues::AppendValues(const Append &append) {
  begin(args);
  args.source_type = append.source_type;
  args.tokens = append.tokens;
  args.tail_dim = append.tail_dim;
  args.k = append.k;
  args.v = append.v;
  args.k_tail = append.k_tail;
  set_format(cache, append, append.cache_type, true);
  cache.format.page_table = append.page_table_kind;
  cache.format.k.pack = append.k_pack;
  if (!(append.flags & v_in_k)) cache.format.v.pack = append.v_pack;
  set_kv(cache, append.k_cache, append.v_cache, append.page_count);
  set_scales(cache, append);
  if (append.page_table_kind == SLUICE_PAGE_TABLE_NONE) cache.format.page_table = SLUICE_PAGE_TABLE_BLOCK;
  args.kv = &cache.kv;
  args.slots = append.slots;
  args.batch = append.batch;
  args.starts = append.starts;
  args.lengths = append.kv_lengths;
  args.pages = {append.page_table, append.page_starts,
                table_stride(append.page_table_kind, append.page_table_stride, append.batch), 0};
  args.positions = append.positions;
  if (append.rotary_dim != 0) {
    rotation = {.struct_size = sizeof rotation,
                .style = append.rotary_style,
                .type = append.rotary_type,
                .dim = append.rotary_dim,
                .first = append.rotary_first,
                .reserved = 0,
                .cosines = append.rotary,
                .sines = append.rotary_sin,
                .stride = append.rotary_stride};
    args.rotation = &rotation;
  }
  const auto norm_of = [&](const void *weights) {
    const uint32_t type = append.norm_type != 0 ? append.norm_type : append.source_type;
    return sluice_norm{sizeof(sluice_norm), type, weights, append.norm_epsilon, 0};
  };
  k_norm = norm_of(append.k_norm);
  q_norm = norm_of(append.q_norm);
  if (append.k_norm != nullptr) args.k_norm = &k_norm;
  if (append.q_heads == 0) return;
  q = {sizeof q,     append.q_heads, append.q,
       append.q_out, append.q_tail,  append.q_norm != nullptr ? &q_norm : nullptr};
  args.q = &q;
}

CopyValues::CopyValues(const PageCopy &copy) {
  begin(args);
  args.pairs_64 = copy.flags & page_index_64 ? 1 : 0;
  args.pairs = copy.pairs;
  args.pair_count = copy.pair_count;
  set_kv(source, copy.k_source, copy.v_source, copy.page_count);
  set_kv(target, copy.k_target, copy.v_target, copy.page_count);
  set_sides(source, target, copy, copy.source_type, copy.target_type,
            {0, 0, copy.k_target_scales, copy.v_target_scales, copy.k_target_zeros, copy.v_target_zeros});
  for (KvValues *side : {&source, &target}) {
    side->format.page_table = SLUICE_PAGE_TABLE_BLOCK;
    side->format.flags &= ~uint32_t{SLUICE_KV_PAGE_INDEX_64}; // that of the pairs
  }
  source.format.k.pack = copy.source_k_pack;
  target.format.k.pack = copy.target_k_pack;
  args.source = &source.kv;
  args.target = &target.kv;
}

GatherValues::GatherValues(const Gather &gather) {
  begin(args);
  args.batch = gather.batch;
  args.tokens = gather.tokens;
  args.lengths = gather.kv_lengths;
  args.first_keys = gather.first_keys;
  args.starts = gather.out_starts;
  args.pages = {gather.page_table, gather.page_starts,
                table_stride(gather.page_table_kind, gather.page_table_stride, gather.batch), 0};
  set_kv(source, gather.k_cache, gather.v_cache, gather.page_count);
  set_kv(target, gather.k_out, gather.v_out, 0);
  set_sides(source, target, gather, gather.cache_type, gather.out_type,
            {0, 0, gather.k_out_scales, gather.v_out_scales, gather.k_out_zeros, gather.v_out_zeros});
  source.format.page_table = gather.page_table_kind;
  source.format.k.pack = gather.k_pack;
  target.format.page_size = 0;
  target.format.flags &= ~uint32_t{SLUICE_KV_PAGE_INDEX_64};
  args.source = &source.kv;
  args.target = &target.kv;
}

} // namespace sluice::calls
