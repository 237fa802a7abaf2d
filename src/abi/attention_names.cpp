//===- attention_names.cpp - what attention.h calls the members of the flat structs of src/calls ---===//
#include "abi/attention_values.h"

#include <algorithm>
#include <array>

namespace sluice::abi {
namespace {

constexpr Renamed problem_members[] = {
    {"q_type", "q.type"},
    {"k_type", "kv.k.type"},
    {"v_type", "kv.v.type"},
    {"o_type", "o.type"},
    {"kv_heads", "kv.kv_heads"},
    {"head_dim_qk", "kv.head_dim_qk"},
    {"head_dim_v", "kv.head_dim_v"},
    {"max_batch", "bounds.batch"},
    {"max_q_len", "bounds.q_len"},
    {"max_kv_len", "bounds.kv_len"},
    {"max_q_tokens", "bounds.q_rows"},
    {"max_prefixes", "bounds.groups"},
    {"max_prefix_len", "bounds.group_keys"},
    {"mask_alignment", "mask.alignment"},
    {"window_left", "mask.window_left"},
    {"window_right", "mask.window_right"},
    {"sink_tokens", "mask.sink_tokens"},
    {"soft_cap", "scores.soft_cap"},
    {"bias_type", "scores.bias_type"},
    {"q_scale_kind", "q.scale_kind"},
    {"k_scale_kind", "kv.k.scale_kind"},
    {"v_scale_kind", "kv.v.scale_kind"},
    {"o_scale_kind", "o.scale_kind"},
    {"scale_group", "kv.k.scale_group"},
    {"page_size", "kv.page_size"},
    {"page_table_kind", "kv.page_table"},
    {"k_pack", "kv.k.pack"},
    {"v_pack", "kv.v.pack"},
};

constexpr Renamed args_members[] = {
    {"q_len", "rows.max_len"},
    {"q_starts", "rows.starts"},
    {"q_lengths", "rows.lengths"},
    {"q_tokens", "rows.total"},
    {"k", "keys[0].kv.k"},
    {"v", "keys[0].kv.v"},
    {"kv_len", "keys[0].rows.max_len"},
    {"kv_starts", "keys[0].rows.starts"},
    {"kv_lengths", "keys[0].rows.lengths"},
    {"kv_tokens", "keys[0].rows.total"},
    {"k_scale", "keys[0].kv.scales.k.data"},
    {"v_scale", "keys[0].kv.scales.v.data"},
    {"k_scales", "keys[0].kv.scales.k"},
    {"v_scales", "keys[0].kv.scales.v"},
    {"k_zeros", "keys[0].kv.scales.k_zeros"},
    {"v_zeros", "keys[0].kv.scales.v_zeros"},
    {"page_count", "keys[0].kv.page_count"},
    {"page_table", "keys[0].pages.table"},
    {"page_starts", "keys[0].pages.starts"},
    {"page_table_stride", "keys[0].pages.stride"},
    {"page_table_head_stride", "keys[0].pages.head_stride"},
    {"prefix_count", "keys[1].groups"},
    {"prefix_q_starts", "keys[1].group_starts"},
    {"prefix_len", "keys[1].rows.max_len"},
    {"prefix_lengths", "keys[1].rows.lengths"},
    {"prefix_k", "keys[1].kv.k"},
    {"prefix_v", "keys[1].kv.v"},
    {"prefix_page_table", "keys[1].pages.table"},
    {"prefix_page_starts", "keys[1].pages.starts"},
    {"prefix_page_table_stride", "keys[1].pages.stride"},
    {"mask", "mask.bits"},
    {"spans", "mask.spans"},
    {"span_count", "mask.span_count"},
    {"diagonals", "mask.diagonals"},
    {"causal", "mask.causal"},
    {"bias", "scores.bias"},
    {"bias_scale", "scores.bias_scale"},
    {"bias_scale_batch_stride", "scores.bias_scale_stride"},
    {"alibi_slopes", "scores.alibi_slopes"},
    {"alibi_batch_stride", "scores.alibi_stride"},
    {"sink_logits", "scores.sinks"},
};

template <size_t a, size_t b> constexpr auto joined(const Renamed (&first)[a], const Renamed (&second)[b]) {
  std::array<Renamed, a + b> all;
  std::copy(std::begin(first), std::end(first), all.begin());
  std::copy(std::begin(second), std::end(second), all.begin() + a);
  return all;
}

// Messages about a call also name members of the problem.
constexpr auto all_members = joined(args_members, problem_members);

} // namespace

const Names problem_names = problem_members;
const Names args_names = all_members;

} // namespace sluice::abi
