//===- attention_values.cpp - the values of attention.h as one problem and one call ---------------------===//
#include "abi/attention_values.h"

#include "abi/kv_values.h"
#include "abi/sized.h"
#include "calls/args.h"
#include "calls/problem.h"
#include "runtime/call_rows.h"

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace sluice::abi {
namespace {

using support::text;

struct Bit {
  uint32_t from, to;
};

/// The flat problem's bits for those of a small struct.
template <size_t count> uint32_t flat_bits(std::string_view field, uint32_t flags, const Bit (&bits)[count]) {
  uint32_t flat = 0, known = 0;
  for (const Bit &bit : bits) {
    known |= bit.from;
    flat |= flags & bit.from ? bit.to : 0;
  }
  check_known_bits(field, flags, known);
  return flat;
}

constexpr Bit attention_bits[] = {{SLUICE_ATTENTION_RAGGED, 0}, // the mode
                                  {SLUICE_ATTENTION_PADDED_ROWS, calls::padded_rows},
                                  {SLUICE_ATTENTION_PREFIXES, calls::prefixes},
                                  {SLUICE_ATTENTION_BATCH_INVARIANT, calls::batch_invariant}};

constexpr Bit mask_bits[] = {{SLUICE_MASK_CAUSAL, calls::causal},
                             {SLUICE_MASK_CAUSAL_BY_SEQUENCE, calls::causal_by_sequence},
                             {SLUICE_MASK_WINDOW_LEFT, calls::window_left},
                             {SLUICE_MASK_WINDOW_RIGHT, calls::window_right},
                             {SLUICE_MASK_BITS, calls::mask_bits},
                             {SLUICE_MASK_BITS_OF_NEW, calls::mask_bits_of_new},
                             {SLUICE_MASK_SPANS, calls::spans},
                             {SLUICE_MASK_MISSING_PAGES, calls::missing_pages}};

constexpr Bit scores_bits[] = {{SLUICE_SCORES_ALIBI, calls::alibi},
                               {SLUICE_SCORES_SINK, calls::sinks},
                               {SLUICE_SCORES_BIAS_SCALE, calls::bias_scale}};

void add_formats(calls::Problem &flat, const sluice_attention &attention, const KvFormat &kv) {
  check_plain_format("q", attention.q);
  check_plain_format("o", attention.o);
  flat.flags |= kv.flags;
  flat.mode = kv.page_size != 0                           ? calls::paged
              : attention.flags & SLUICE_ATTENTION_RAGGED ? calls::ragged
                                                          : calls::dense;
  if (kv.page_size != 0 && attention.flags & SLUICE_ATTENTION_RAGGED)
    invalid("flags",
            "flags has SLUICE_ATTENTION_RAGGED, but kv.page_size is not 0: calls on a cache in pages "
            "may have starts of q without it");
  flat.q_type = attention.q.type;
  flat.o_type = attention.o.type;
  flat.q_scale_kind = attention.q.scale_kind;
  flat.o_scale_kind = attention.o.scale_kind;
  flat.k_type = kv.k_type;
  flat.v_type = kv.v_type;
  flat.k_scale_kind = kv.k_scale_kind;
  flat.v_scale_kind = kv.v_scale_kind;
  flat.scale_group = kv.scale_group;
  flat.kv_heads = kv.kv_heads;
  flat.head_dim_qk = kv.head_dim_qk;
  flat.head_dim_v = kv.head_dim_v;
  flat.page_size = kv.page_size;
  flat.page_table_kind = kv.page_table_kind;
  flat.k_pack = kv.k_pack;
  flat.v_pack = kv.v_pack;
}

void add_features(calls::Problem &flat, const sluice_attention &attention) {
  if (attention.mask != nullptr) {
    sluice_mask copy;
    const sluice_mask &mask = view(attention.mask, "mask", copy);
    flat.flags |= flat_bits("mask.flags", mask.flags, mask_bits);
    flat.mask_alignment = mask.alignment;
    flat.window_left = mask.window_left;
    flat.window_right = mask.window_right;
    flat.sink_tokens = mask.sink_tokens;
  }
  if (attention.scores != nullptr) {
    sluice_scores copy;
    const sluice_scores &scores = view(attention.scores, "scores", copy);
    flat.flags |= flat_bits("scores.flags", scores.flags, scores_bits);
    flat.soft_cap = scores.soft_cap;
    flat.bias_type = scores.bias_type;
  }
  check_known("lse", attention.lse, SLUICE_LSE_LOG2, "SLUICE_LSE_LOG2 (2)");
  if (attention.lse != SLUICE_LSE_NONE) flat.flags |= calls::write_lse;
  if (attention.lse == SLUICE_LSE_LOG2) flat.flags |= calls::lse_log2;
}

void add_bounds(calls::Problem &flat, const sluice_bounds &bounds) {
  check_zero_member("bounds", ".reserved", bounds.reserved, "it is reserved");
  flat.max_batch = bounds.batch;
  flat.max_q_len = bounds.q_len;
  flat.max_kv_len = bounds.kv_len;
  flat.max_q_tokens = bounds.q_rows;
  flat.max_prefixes = bounds.groups;
  flat.max_prefix_len = bounds.group_keys;
}

/// The length of a call: that of the plan, which has it in `bound_name`, for SLUICE_PLAN_BOUND. 0 is
/// forgotten if there are arrays that say more and memory of rows.
int32_t length_of(std::string_view path, const sluice_rows &rows, const void *memory,
                  std::string_view bound_name, int32_t bound) {
  check_zero_member(path, ".reserved", rows.reserved, "it is reserved");
  if (rows.max_len == SLUICE_PLAN_BOUND) {
    if (bound != 0) return bound;
    invalid(text(path, ".max_len"),
            text(path, ".max_len is SLUICE_PLAN_BOUND (-1), but the problem's bounds.", bound_name, " is 0"));
  }
  if (rows.max_len == 0 && memory != nullptr && (rows.starts != nullptr || rows.lengths != nullptr)) {
    invalid(text(path, ".max_len"),
            text(path, ".max_len is 0, but ", path, rows.starts != nullptr ? ".starts" : ".lengths",
                 " is given; it must be the length of the longest sequence, or "
                 "SLUICE_PLAN_BOUND (-1)"));
  }
  return rows.max_len;
}

void add_rows(calls::Args &out, const calls::Problem &problem, const sluice_attention_args &args) {
  out.batch = args.batch;
  out.q = args.q;
  out.o = args.o;
  out.q_len = length_of("rows", args.rows, args.q.data, "q_len", problem.max_q_len);
  out.q_starts = args.rows.starts;
  out.q_lengths = args.rows.lengths;
  out.q_tokens = args.rows.total;
}

/// The first set: the keys of each sequence.
KvMemory add_own_keys(calls::Args &out, const FlatAttention &plan, const sluice_keys &keys) {
  const calls::Problem &problem = plan.problem;
  check_zero_member("keys[0]", ".groups", keys.groups, "the first set has the keys of sequences");
  check_absent("keys[0].group_starts", keys.group_starts, "the first set has the keys of sequences");
  out.kv_starts = keys.rows.starts;
  out.kv_lengths = keys.rows.lengths;
  out.kv_tokens = keys.rows.total;
  const KvMemory kv =
      memory_of_format(keys.kv, plan.kv, {"keys[0].kv", "keys[0].kv.format", "keys[0].kv.scales"});
  out.kv_len = length_of("keys[0].rows", keys.rows, kv.k.data, "kv_len", problem.max_kv_len);
  out.k = kv.k;
  out.v = kv.v;
  out.k_scale = kv.k_scale;
  out.v_scale = kv.v_scale;
  out.k_scales = kv.k_scales;
  out.v_scales = kv.v_scales;
  out.k_zeros = kv.k_zeros;
  out.v_zeros = kv.v_zeros;
  out.page_count = kv.page_count;
  const KvPages pages = flat_pages(keys.pages, "keys[0].pages", problem.page_table_kind, out.batch);
  out.page_table = pages.table;
  out.page_starts = pages.starts;
  out.page_table_stride = pages.stride;
  out.page_table_head_stride = pages.head_stride;
  return kv;
}

/// The second set: the keys of groups of rows. `own` is the memory of the first: the flat call has other
/// tensors for prefixes that are not in pages, and nothing else of their own.
void add_group_keys(calls::Args &out, const FlatAttention &plan, const sluice_keys &keys, KvMemory own) {
  const calls::Problem &problem = plan.problem;
  constexpr std::string_view why = "each group has a sequence of its own";
  out.prefix_count = keys.groups;
  out.prefix_q_starts = keys.group_starts;
  check_absent("keys[1].rows.starts", keys.rows.starts, why);
  check_zero_member("keys[1].rows", ".total", keys.rows.total, why);
  out.prefix_lengths = keys.rows.lengths;
  const KvMemory kv =
      memory_of_format(keys.kv, plan.kv, {"keys[1].kv", "keys[1].kv.format", "keys[1].kv.scales"});
  out.prefix_len = length_of("keys[1].rows", keys.rows, kv.k.data, "group_keys", problem.max_prefix_len);
  const bool in_pages = problem.mode == calls::paged;
  if (!in_pages) {
    out.prefix_k = own.k = kv.k;
    out.prefix_v = own.v = kv.v;
  }
  static_assert(std::has_unique_object_representations_v<KvMemory>, "so that bytes can be compared");
  if (std::memcmp(&kv, &own, sizeof kv) != 0) {
    if (in_pages)
      unsupported("keys[1].kv", "keys[1].kv is not the cache of keys[0]; nearest supported: keys[0].kv");
    unsupported("keys[1].kv.scales",
                "keys[1].kv.scales are not those of keys[0]; nearest supported: the same");
  }
  const KvPages pages =
      flat_pages_of_all_heads(keys.pages, "keys[1].pages", problem.page_table_kind, keys.groups);
  out.prefix_page_table = pages.table;
  out.prefix_page_starts = pages.starts;
  out.prefix_page_table_stride = pages.stride;
}

void add_keys(calls::Args &out, const FlatAttention &plan, const sluice_attention_args &args) {
  const uint32_t wanted = plan.problem.flags & calls::prefixes ? 2 : 1;
  if (args.key_sets != wanted)
    invalid("key_sets",
            text("key_sets is ", args.key_sets, "; it must be ", wanted,
                 wanted == 2 ? " with SLUICE_ATTENTION_PREFIXES" : " without SLUICE_ATTENTION_PREFIXES"));
  sluice_keys copy;
  const sluice_keys &own = view(args.keys, "keys[0]", copy);
  const KvMemory memory = add_own_keys(out, plan, own);
  if (wanted == 1) return;
  const auto *second = reinterpret_cast<const sluice_keys *>(
      reinterpret_cast<const unsigned char *>(args.keys) + args.keys->struct_size);
  sluice_keys second_copy;
  add_group_keys(out, plan, view(second, "keys[1]", second_copy), memory);
}

void add_feature_args(calls::Args &out, const calls::Problem &problem, const sluice_attention_args &args) {
  if (args.mask != nullptr) {
    sluice_mask_args copy;
    const sluice_mask_args &mask = view(args.mask, "mask", copy);
    check_zero_member("mask", ".reserved", mask.reserved, "it is reserved");
    out.mask = mask.bits;
    out.spans = mask.spans;
    out.span_count = mask.span_count;
    out.diagonals = mask.diagonals;
    out.causal = mask.causal;
  }
  if (args.scores != nullptr) {
    sluice_scores_args copy;
    const sluice_scores_args &scores = view(args.scores, "scores", copy);
    check_zero_member("scores", ".reserved", scores.reserved, "it is reserved");
    out.bias = scores.bias;
    out.bias_scale = scores.bias_scale;
    out.bias_scale_batch_stride = scores.bias_scale_stride;
    out.alibi_slopes = scores.alibi_slopes;
    out.alibi_batch_stride = scores.alibi_stride;
    out.sink_logits = scores.sinks;
  }
  if (args.lse != nullptr) {
    out.lse = *args.lse;
  } else if (problem.flags & calls::write_lse && !runtime::has_no_rows(out)) {
    invalid("lse", text("lse is NULL, but the problem's lse is ",
                        problem.flags & calls::lse_log2 ? "SLUICE_LSE_LOG2 (2)" : "SLUICE_LSE_LN (1)"));
  }
  out.q_scale = args.q_scale;
  out.o_scale = args.o_scale;
}

} // namespace

FlatAttention flat_attention(const sluice_attention *given) {
  sluice_attention copy;
  const sluice_attention &attention = view(given, "attention", copy);
  calls::Problem flat = {};
  flat.flags = flat_bits("flags", attention.flags, attention_bits);
  flat.q_heads = attention.q_heads;
  const PlanFormat kv = plan_format(attention.kv, "kv");
  add_formats(flat, attention, kv.flat);
  add_features(flat, attention);
  add_bounds(flat, attention.bounds);
  flat.workspace_ceiling_bytes = attention.workspace_ceiling_bytes;
  return {flat, kv, calls::usual_scale(flat)};
}

void flat_args(const FlatAttention &plan, const sluice_attention_args *given, calls::Args &out) {
  const calls::Problem &problem = plan.problem;
  sluice_attention_args copy;
  const sluice_attention_args &args = view(given, "args", copy);
  check_zero_member("args", ".reserved", args.reserved, "it is reserved");
  out.scale = args.scale != nullptr ? double{*args.scale} : plan.usual_scale;
  add_rows(out, problem, args);
  add_keys(out, plan, args);
  add_feature_args(out, problem, args);
}

} // namespace sluice::abi
