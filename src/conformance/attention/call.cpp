//===- call.cpp - a case as the structs of the C ABI ----------------------------------------------------===//

#include "conformance/attention/call.h"

#include "conformance/attention/case_elements.h"
#include "conformance/attention/scores/scores.h"
#include "conformance/shared/c_types.h"

namespace sluice::conformance {

namespace {

uint32_t flags_of(const Case &c) {
  uint32_t flags = 0;
  if (is_causal(c)) flags |= SLUICE_CAUSAL;
  if (c.lse) flags |= SLUICE_WRITE_LSE;
  if (c.window_left >= 0) flags |= SLUICE_HAS_WINDOW_LEFT;
  if (c.window_right >= 0) flags |= SLUICE_HAS_WINDOW_RIGHT;
  if (c.pages.wide) flags |= SLUICE_PAGE_INDEX_64;
  if (c.pages.missing) flags |= SLUICE_MISSING_PAGES_HIDDEN;
  if (c.head_size.qk % 8 != 0 || c.head_size.v % 8 != 0) flags |= SLUICE_PADDED_ROWS;
  if (c.v_in_k) flags |= SLUICE_V_IN_K;
  if (c.spans) flags |= SLUICE_SPANS;
  if (c.causal_by_sequence) flags |= SLUICE_CAUSAL_BY_SEQUENCE;
  if (c.prefixes.count != 0) flags |= SLUICE_SHARED_PREFIX;
  if (c.cache == Cache::u4_zeros) flags |= SLUICE_ZERO_POINTS;
  return flags;
}

void set_bounds(const Case &c, sluice_problem &problem) {
  const Sequences sequences(c);
  // With all bounds a plan takes the cheapest kernel at such small sizes, usually a decode kernel. Without
  // the bound of the batch, rules choose, and every kernel gets cases.
  if (c.batch_invariant || c.kv_len % 2 == 0) problem.max_batch = c.batch;
  problem.max_q_len = c.q_len;
  problem.max_kv_len = c.kv_len;
  problem.max_q_tokens =
      sequences.q_starts.empty() ? int64_t{c.batch} * c.q_len : std::max(1, sequences.q_starts.back());
}

/// The bounds that a plan needs to split keys at fixed places, far from the case's extents.
void set_wide_bounds(const Case &c, sluice_problem &problem) {
  problem.max_batch = 4 * c.batch + 3;
  problem.max_q_len = 2 * c.q_len + 1;
  problem.max_kv_len = c.kv_len + 5000;
}

/// Those that a plan must have: exactly these extents, or far from them.
void set_prefix_bounds(const Case &c, sluice_problem &problem) {
  const Sequences sequences(c);
  const int rows = sequences.q_starts.empty() ? c.batch * c.q_len : sequences.q_rows;
  problem.max_prefixes = c.bounded ? c.prefixes.count : 3 * c.prefixes.count + 1;
  problem.max_prefix_len = c.bounded ? c.prefixes.keys : c.prefixes.keys + 5000;
  problem.max_q_tokens = c.bounded ? rows : 2 * rows + 5;
}

void pass_tensors(const Case &c, const Memory &memory, const CallMemory &call, sluice_args &args) {
  const bool by_sequence = c.mode != Mode::paged;
  const auto keys = [&](const Placement &p) {
    return call.tensor_at(p, cache_bytes(c, call.begin_of(p, by_sequence)));
  };
  args.q = call.tensor(memory.q, query_bytes(c));
  args.k = keys(memory.k);
  if (!c.v_in_k) args.v = keys(memory.v);
  const size_t scale_bytes = has_group_arrays(c) ? 2 : 4;
  if (has_group_arrays(c) || is_per_key(c.k_scale))
    args.k_scales = call.tensor(memory.k_scales, scale_bytes, by_sequence);
  if (has_group_arrays(c) || is_per_key(c.v_scale))
    args.v_scales = call.tensor(memory.v_scales, scale_bytes, by_sequence);
  if (c.cache == Cache::u4_zeros) {
    args.k_zeros = call.tensor(memory.k_zeros, 2, by_sequence);
    args.v_zeros = call.tensor(memory.v_zeros, 2, by_sequence);
  }
  args.o = call.tensor(memory.o, output_bytes(c));
  if (c.lse) args.lse = call.tensor(memory.lse, 4);
}

void pass_sequences(const Case &c, const Memory &memory, const CallMemory &call, sluice_args &args) {
  args.q_starts = call.array<int32_t>(memory.q_starts, 1);
  args.kv_starts = call.array<int32_t>(memory.kv_starts, 1);
  args.q_lengths = call.array<int32_t>(memory.q_lengths, 1);
  args.kv_lengths = call.array<int32_t>(memory.kv_lengths, 1);
  args.page_table = call.array<char>(memory.page_table, memory.page_table_stride * (c.pages.wide ? 8 : 4));
  args.page_table_stride = memory.page_table_stride;
  args.page_table_head_stride = memory.page_table_head_stride;
  args.page_starts = call.array<int32_t>(memory.page_starts, 1);
  args.diagonals = call.array<int32_t>(memory.diagonals, 1);
  args.causal = call.array<int32_t>(memory.causal, 1);
  if (c.spans) args.span_count = spans_per_sequence;
  args.spans = call.array<int32_t>(memory.spans, 2 * spans_per_sequence);
}

void pass_prefixes(const Case &c, const Memory &memory, const CallMemory &call, bool is_single,
                   sluice_args &args) {
  args.prefix_count = c.prefixes.count;
  args.prefix_len = c.prefixes.keys;
  args.prefix_q_starts = call.array<int32_t>(memory.prefix_q_starts);
  const bool differs = is_single && memory.q_starts < 0;
  if (differs) args.prefix_q_starts += (call.first + 1) * (c.prefixes.count + 1);
  args.prefix_lengths = call.array<int32_t>(memory.prefix_lengths);
  args.prefix_page_table = call.array<char>(memory.prefix_page_table);
  args.prefix_page_table_stride = memory.prefix_page_table_stride;
  args.prefix_page_starts = call.array<int32_t>(memory.prefix_page_starts);
  if (c.mode == Mode::paged) return;
  args.prefix_k = call.tensor(memory.prefix_k, cache_bytes(c), false);
  if (!c.v_in_k) args.prefix_v = call.tensor(memory.prefix_v, cache_bytes(c), false);
}

} // namespace

uint32_t cache_type(const Case &c) {
  if (c.cache == Cache::q8_0) return SLUICE_Q8_0;
  if (c.cache == Cache::q4_0) return SLUICE_Q4_0;
  return has_group_arrays(c) ? uint32_t(SLUICE_U4) : c_type(cache_element(c));
}

sluice_problem make_problem(const Case &c) {
  sluice_problem problem;
  sluice_problem_init(&problem, sizeof problem);
  problem.flags = flags_of(c);
  constexpr uint32_t modes[] = {SLUICE_MODE_DENSE, SLUICE_MODE_RAGGED, SLUICE_MODE_PAGED};
  problem.mode = modes[size_t(c.mode)];
  const uint32_t dtype = c.dtype == Dtype::f16 ? SLUICE_F16 : SLUICE_BF16;
  problem.q_type = has_fp8_queries(c) ? uint32_t(SLUICE_E4M3FNUZ) : dtype;
  problem.k_type = problem.v_type = cache_type(c);
  problem.o_type = c.o_f32 ? uint32_t(SLUICE_F32) : c.o_fp8 ? uint32_t(SLUICE_E4M3FNUZ) : dtype;
  problem.q_heads = c.q_heads;
  problem.kv_heads = c.kv_heads;
  problem.head_dim_qk = c.head_size.qk;
  problem.head_dim_v = c.head_size.v;
  if (!c.kernel.empty()) {
    problem.max_batch = c.plan.batch;
    problem.max_q_len = c.plan.q_len;
    problem.max_kv_len = c.plan.kv_len;
  } else if (c.bounded)
    set_bounds(c, problem);
  else if (c.batch_invariant)
    set_wide_bounds(c, problem);
  problem.mask_alignment = is_top_left(c)     ? SLUICE_TOP_LEFT
                           : has_diagonals(c) ? SLUICE_GIVEN_DIAGONAL
                                              : SLUICE_BOTTOM_RIGHT;
  if (c.window_left >= 0) problem.window_left = c.window_left;
  if (c.window_right >= 0) problem.window_right = c.window_right;
  problem.sink_tokens = c.sink_tokens;
  for (const ScoreChange *change : score_changes)
    if (change->ask && change->is_in(c)) change->ask(c, problem);
  problem.q_scale_kind = scale_kind(c.q_scale);
  problem.k_scale_kind = scale_kind(c.k_scale);
  problem.v_scale_kind = scale_kind(c.v_scale);
  problem.o_scale_kind = scale_kind(c.o_scale);
  if (has_group_arrays(c)) {
    problem.k_scale_kind = problem.v_scale_kind = SLUICE_SCALE_PER_GROUP;
    problem.scale_group = group_elements(c);
  }
  if (c.mode == Mode::paged) {
    problem.page_size = c.pages.size;
    problem.page_table_kind = c.pages.csr ? SLUICE_PAGE_TABLE_CSR : SLUICE_PAGE_TABLE_BLOCK;
    problem.k_pack = k_pack(c);
  }
  if (c.v_columns != Columns::none)
    problem.v_pack = c.v_columns == Columns::whole ? int32_t(SLUICE_V_PACK_ALL) : v_pack(c);
  if (c.prefixes.count != 0) set_prefix_bounds(c, problem);
  problem.lse_base = c.lse_base_2 ? SLUICE_LSE_BASE_2 : SLUICE_LSE_BASE_E;
  problem.determinism = c.batch_invariant ? SLUICE_DETERMINISM_BATCH_INVARIANT : SLUICE_DETERMINISM_FAST;
  return problem;
}

sluice_args make_args(const Case &c, const Memory &memory, const std::vector<void *> &bases,
                      std::optional<int> only) {
  const CallMemory call{bases, only.value_or(0)};
  sluice_args args;
  sluice_args_init(&args, sizeof args);
  args.batch = only ? 1 : c.batch;
  args.q_len = c.q_len;
  args.kv_len = c.kv_len;
  args.scale = float(c.scale.value_or(0));
  if (c.scale) args.flags |= SLUICE_EXACT_SCALE;
  pass_tensors(c, memory, call, args);
  pass_sequences(c, memory, call, args);
  if (c.prefixes.count != 0) pass_prefixes(c, memory, call, only.has_value(), args);
  for (const ScoreChange *change : score_changes)
    if (change->pass && change->is_in(c)) change->pass(c, memory.changes[*change], call, args);
  args.q_scale = call.array<float>(memory.q_scale);
  args.k_scale = call.array<float>(memory.k_scale);
  args.v_scale = call.array<float>(memory.v_scale);
  args.o_scale = call.array<float>(memory.o_scale);
  return args;
}

} // namespace sluice::conformance
