//===- call.cpp - a case as the structs of the C ABI ----------------------------------------------------===//

#include "conformance/attention/call.h"

#include "conformance/attention/case_elements.h"
#include "conformance/attention/scores/scores.h"
#include "conformance/shared/c_types.h"

namespace sluice::conformance {

namespace {

uint32_t mask_flags(const Case &c) {
  uint32_t flags = 0;
  if (is_causal(c)) flags |= SLUICE_MASK_CAUSAL;
  if (c.window_left >= 0) flags |= SLUICE_MASK_WINDOW_LEFT;
  if (c.window_right >= 0) flags |= SLUICE_MASK_WINDOW_RIGHT;
  if (c.pages.missing) flags |= SLUICE_MASK_MISSING_PAGES;
  if (c.spans) flags |= SLUICE_MASK_SPANS;
  if (c.causal_by_sequence) flags |= SLUICE_MASK_CAUSAL_BY_SEQUENCE;
  return flags;
}

uint32_t attention_flags(const Case &c) {
  uint32_t flags = 0;
  if (c.mode == Mode::ragged) flags |= SLUICE_ATTENTION_RAGGED;
  if (c.head_size.qk % 8 != 0 || c.head_size.v % 8 != 0) flags |= SLUICE_ATTENTION_PADDED_ROWS;
  if (c.prefixes.count != 0) flags |= SLUICE_ATTENTION_PREFIXES;
  if (c.batch_invariant) flags |= SLUICE_ATTENTION_BATCH_INVARIANT;
  return flags;
}

/// Rows of K, or of V, with these scales and packs.
sluice_format format_of(const Case &c, Scale scale, int32_t pack) {
  sluice_format format = {};
  format.type = cache_type(c);
  format.scale_kind = scale_kind(scale);
  if (has_group_arrays(c)) {
    format.scale_kind = SLUICE_SCALE_PER_GROUP;
    format.scale_group = group_elements(c);
    format.zero_points = c.cache == Cache::u4_zeros;
  }
  format.pack = pack;
  return format;
}

void set_kv_format(const Case &c, sluice_kv_format &format) {
  if (c.v_in_k) format.flags |= SLUICE_KV_V_IN_K;
  if (c.pages.wide) format.flags |= SLUICE_KV_PAGE_INDEX_64;
  format.kv_heads = c.kv_heads;
  format.head_dim_qk = c.head_size.qk;
  format.head_dim_v = c.head_size.v;
  const bool in_pages = c.mode == Mode::paged;
  if (in_pages) {
    format.page_size = c.pages.size;
    format.page_table = c.pages.csr ? SLUICE_PAGE_TABLE_CSR : SLUICE_PAGE_TABLE_BLOCK;
  }
  format.k = format_of(c, c.k_scale, in_pages ? k_pack(c) : 0);
  const int32_t pack = c.v_columns == Columns::none    ? 0
                       : c.v_columns == Columns::whole ? int32_t(SLUICE_PACK_ALL)
                                                       : v_pack(c);
  if (!c.v_in_k) format.v = format_of(c, c.v_scale, pack);
}

void set_bounds(const Case &c, sluice_bounds &bounds) {
  const Sequences sequences(c);
  // With all bounds a plan takes the cheapest kernel at such small sizes, usually a decode kernel. Without
  // the bound of the batch, rules choose, and every kernel gets cases.
  if (c.batch_invariant || c.kv_len % 2 == 0) bounds.batch = c.batch;
  bounds.q_len = c.q_len;
  bounds.kv_len = c.kv_len;
  bounds.q_rows =
      sequences.q_starts.empty() ? int64_t{c.batch} * c.q_len : std::max(1, sequences.q_starts.back());
}

/// The bounds that a plan needs to split keys at fixed places, far from the case's extents.
void set_wide_bounds(const Case &c, sluice_bounds &bounds) {
  bounds.batch = 4 * c.batch + 3;
  bounds.q_len = 2 * c.q_len + 1;
  bounds.kv_len = c.kv_len + 5000;
}

/// Those that a plan must have: exactly these extents, or far from them.
void set_prefix_bounds(const Case &c, sluice_bounds &bounds) {
  const Sequences sequences(c);
  const int rows = sequences.q_starts.empty() ? c.batch * c.q_len : sequences.q_rows;
  bounds.groups = c.bounded ? c.prefixes.count : 3 * c.prefixes.count + 1;
  bounds.group_keys = c.bounded ? c.prefixes.keys : c.prefixes.keys + 5000;
  bounds.q_rows = c.bounded ? rows : 2 * rows + 5;
}

/// The memory of K and V, in the sequence's own rows and in prefixes.
void pass_keys(const Case &c, const Memory &memory, const CallMemory &call, CallStructs &out) {
  const bool by_sequence = c.mode != Mode::paged;
  const auto keys = [&](const Placement &p) {
    return call.tensor_at(p, cache_bytes(c, call.begin_of(p, by_sequence)));
  };
  set_kv_format(c, out.own.format);
  out.own.kv.k = keys(memory.k);
  if (!c.v_in_k) out.own.kv.v = keys(memory.v);
  sluice_kv_scales &scales = out.own.scales;
  const auto scales_of = [&](Scale scale, const Placement &each, int one) -> sluice_tensor {
    if (has_group_arrays(c) || is_per_key(scale))
      return call.tensor(each, has_group_arrays(c) ? 2 : 4, by_sequence);
    return {const_cast<float *>(call.array<float>(one)), {}};
  };
  scales.k = scales_of(c.k_scale, memory.k_scales, memory.k_scale);
  if (!c.v_in_k) scales.v = scales_of(c.v_scale, memory.v_scales, memory.v_scale);
  if (c.cache == Cache::u4_zeros) {
    scales.k_zeros = call.tensor(memory.k_zeros, 2, by_sequence);
    if (!c.v_in_k) scales.v_zeros = call.tensor(memory.v_zeros, 2, by_sequence);
  }
  out.own.point_to_scales();
}

void pass_sequences(const Case &c, const Memory &memory, const CallMemory &call, CallStructs &out) {
  out.args.rows = {c.q_len, 0, call.array<int32_t>(memory.q_starts, 1),
                   call.array<int32_t>(memory.q_lengths, 1), 0};
  sluice_keys &keys = out.keys[0];
  keys.rows = {c.kv_len, 0, call.array<int32_t>(memory.kv_starts, 1),
               call.array<int32_t>(memory.kv_lengths, 1), 0};
  keys.pages = {call.array<char>(memory.page_table, memory.page_table_stride * (c.pages.wide ? 8 : 4)),
                call.array<int32_t>(memory.page_starts, 1), memory.page_table_stride,
                memory.page_table_head_stride};
  out.mask.diagonals = call.array<int32_t>(memory.diagonals, 1);
  out.mask.causal = call.array<int32_t>(memory.causal, 1);
  if (c.spans) out.mask.span_count = spans_per_sequence;
  out.mask.spans = call.array<int32_t>(memory.spans, 2 * spans_per_sequence);
}

void pass_prefixes(const Case &c, const Memory &memory, const CallMemory &call, bool is_single,
                   CallStructs &out) {
  out.args.key_sets = 2;
  sluice_keys &keys = out.keys[1];
  keys.groups = c.prefixes.count;
  keys.group_starts = call.array<int32_t>(memory.prefix_q_starts);
  const bool differs = is_single && memory.q_starts < 0;
  if (differs) keys.group_starts += (call.first + 1) * (c.prefixes.count + 1);
  keys.rows = {c.prefixes.keys, 0, nullptr, call.array<int32_t>(memory.prefix_lengths), 0};
  keys.pages = {call.array<char>(memory.prefix_page_table), call.array<int32_t>(memory.prefix_page_starts),
                memory.prefix_page_table_stride, 0};
  if (c.mode == Mode::paged) {
    keys.kv = &out.own.kv;
    return;
  }
  out.prefixes.kv = out.own.kv;
  out.prefixes.kv.k = call.tensor(memory.prefix_k, cache_bytes(c), false);
  if (!c.v_in_k) out.prefixes.kv.v = call.tensor(memory.prefix_v, cache_bytes(c), false);
}

} // namespace

uint32_t cache_type(const Case &c) {
  if (c.cache == Cache::q8_0) return SLUICE_Q8_0;
  if (c.cache == Cache::q4_0) return SLUICE_Q4_0;
  return has_group_arrays(c) ? uint32_t(SLUICE_U4) : c_type(cache_element(c));
}

void make_problem(const Case &c, ProblemStructs &out) {
  sluice_attention &attention = out.attention;
  attention.flags = attention_flags(c);
  const uint32_t dtype = c.dtype == Dtype::f16 ? SLUICE_F16 : SLUICE_BF16;
  attention.q.type = has_fp8_queries(c) ? uint32_t(SLUICE_E4M3FNUZ) : dtype;
  attention.q.scale_kind = scale_kind(c.q_scale);
  attention.o.type = c.o_f32 ? uint32_t(SLUICE_F32) : c.o_fp8 ? uint32_t(SLUICE_E4M3FNUZ) : dtype;
  attention.o.scale_kind = scale_kind(c.o_scale);
  attention.q_heads = c.q_heads;
  if (c.lse) attention.lse = c.lse_base_2 ? SLUICE_LSE_LOG2 : SLUICE_LSE_LN;
  set_kv_format(c, out.kv);
  if (!c.kernel.empty()) {
    attention.bounds.batch = c.plan.batch;
    attention.bounds.q_len = c.plan.q_len;
    attention.bounds.kv_len = c.plan.kv_len;
  } else if (c.bounded) {
    set_bounds(c, attention.bounds);
  } else if (c.batch_invariant) {
    set_wide_bounds(c, attention.bounds);
  }
  if (c.prefixes.count != 0) set_prefix_bounds(c, attention.bounds);
  out.mask.flags = mask_flags(c);
  out.mask.alignment = is_top_left(c)     ? SLUICE_TOP_LEFT
                       : has_diagonals(c) ? SLUICE_GIVEN_DIAGONAL
                                          : SLUICE_BOTTOM_RIGHT;
  if (c.window_left >= 0) out.mask.window_left = c.window_left;
  if (c.window_right >= 0) out.mask.window_right = c.window_right;
  out.mask.sink_tokens = c.sink_tokens;
  for (const ScoreChange *change : score_changes)
    if (change->ask && change->is_in(c)) change->ask(c, out);
}

void make_call(const Case &c, const Memory &memory, const std::vector<void *> &bases, CallStructs &out,
               std::optional<int> only) {
  const CallMemory call{bases, only.value_or(0)};
  sluice_attention_args &args = out.args;
  args.batch = only ? 1 : c.batch;
  if (c.scale) {
    out.scale = float(*c.scale);
    args.scale = &out.scale;
  }
  args.q = call.tensor(memory.q, query_bytes(c));
  args.o = call.tensor(memory.o, output_bytes(c));
  if (c.lse) {
    out.lse = call.tensor(memory.lse, 4);
    args.lse = &out.lse;
  }
  pass_keys(c, memory, call, out);
  pass_sequences(c, memory, call, out);
  if (c.prefixes.count != 0) pass_prefixes(c, memory, call, only.has_value(), out);
  for (const ScoreChange *change : score_changes)
    if (change->pass && change->is_in(c)) change->pass(c, memory.changes[*change], call, out);
  args.q_scale = call.array<float>(memory.q_scale);
  args.o_scale = call.array<float>(memory.o_scale);
}

} // namespace sluice::conformance
