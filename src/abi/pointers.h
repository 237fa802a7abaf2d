//===- pointers.h - the pointers of a call to device memory, by name ------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/cache_ops.h"

#include <sluice/merge.h>

#include <string_view>

namespace sluice::abi {

/// Calls `see(name, address)` for each pointer of a call to device memory, NULL ones too. Names are those of
/// the members.
template <typename See> void for_each_pointer(const calls::Args &call, See see) {
#define SLUICE_DATA(member) see(#member ".data", call.member.data)
#define SLUICE_ARRAY(member) see(#member, call.member)
  SLUICE_DATA(q), SLUICE_DATA(o), SLUICE_DATA(lse);
  SLUICE_ARRAY(q_starts), SLUICE_ARRAY(kv_starts), SLUICE_ARRAY(q_lengths), SLUICE_ARRAY(kv_lengths);
  SLUICE_ARRAY(page_table), SLUICE_ARRAY(page_starts);
  SLUICE_ARRAY(q_scale), SLUICE_ARRAY(k_scale), SLUICE_ARRAY(v_scale), SLUICE_ARRAY(o_scale);
  if (call.kv_len != 0) { // else these have no elements, and may be anywhere
    SLUICE_DATA(k), SLUICE_DATA(v), SLUICE_DATA(bias), SLUICE_DATA(mask);
    SLUICE_DATA(k_scales), SLUICE_DATA(v_scales), SLUICE_DATA(k_zeros), SLUICE_DATA(v_zeros);
  }
  SLUICE_ARRAY(bias_scale), SLUICE_ARRAY(alibi_slopes);
  SLUICE_ARRAY(sink_logits), SLUICE_ARRAY(diagonals), SLUICE_ARRAY(causal), SLUICE_ARRAY(spans);
  SLUICE_ARRAY(prefix_q_starts);
  if (call.prefix_count == 0) return;
  SLUICE_ARRAY(prefix_lengths), SLUICE_ARRAY(prefix_page_table), SLUICE_ARRAY(prefix_page_starts);
  if (call.prefix_len != 0) SLUICE_DATA(prefix_k), SLUICE_DATA(prefix_v);
}

template <typename See> void for_each_pointer(const calls::Append &call, See see) {
  SLUICE_DATA(k), SLUICE_DATA(v), SLUICE_DATA(k_tail), SLUICE_DATA(k_cache), SLUICE_DATA(v_cache);
  SLUICE_ARRAY(slots), SLUICE_ARRAY(starts), SLUICE_ARRAY(kv_lengths), SLUICE_ARRAY(page_table);
  SLUICE_ARRAY(page_starts), SLUICE_ARRAY(positions), SLUICE_ARRAY(k_scale), SLUICE_ARRAY(v_scale);
  SLUICE_DATA(k_scales), SLUICE_DATA(v_scales), SLUICE_DATA(k_zeros), SLUICE_DATA(v_zeros);
  SLUICE_ARRAY(rotary), SLUICE_ARRAY(rotary_sin), SLUICE_ARRAY(q_norm), SLUICE_ARRAY(k_norm);
  SLUICE_DATA(q), SLUICE_DATA(q_out), SLUICE_DATA(q_tail);
}

template <typename See> void for_each_pointer(const calls::PageCopy &call, See see) {
  SLUICE_DATA(k_source), SLUICE_DATA(v_source), SLUICE_DATA(k_target), SLUICE_DATA(v_target);
  SLUICE_ARRAY(pairs), SLUICE_ARRAY(k_scale), SLUICE_ARRAY(v_scale), SLUICE_DATA(k_scales);
  SLUICE_DATA(v_scales), SLUICE_DATA(k_zeros), SLUICE_DATA(v_zeros), SLUICE_DATA(k_target_scales);
  SLUICE_DATA(v_target_scales), SLUICE_DATA(k_target_zeros), SLUICE_DATA(v_target_zeros);
}

template <typename See> void for_each_pointer(const calls::Gather &call, See see) {
  SLUICE_DATA(k_cache), SLUICE_DATA(v_cache), SLUICE_DATA(k_out), SLUICE_DATA(v_out);
  SLUICE_ARRAY(out_starts), SLUICE_ARRAY(kv_lengths), SLUICE_ARRAY(first_keys), SLUICE_ARRAY(page_table);
  SLUICE_ARRAY(page_starts), SLUICE_ARRAY(k_scale), SLUICE_ARRAY(v_scale), SLUICE_DATA(k_scales);
  SLUICE_DATA(v_scales), SLUICE_DATA(k_zeros), SLUICE_DATA(v_zeros), SLUICE_DATA(k_out_scales);
  SLUICE_DATA(v_out_scales), SLUICE_DATA(k_out_zeros), SLUICE_DATA(v_out_zeros);
}

template <typename See> void for_each_pointer(const sluice_merge_args &call, See see) {
  SLUICE_DATA(parts.o), SLUICE_DATA(parts.lse), SLUICE_DATA(o), SLUICE_DATA(lse);
  SLUICE_ARRAY(sinks), SLUICE_ARRAY(o_scale);
#undef SLUICE_DATA
#undef SLUICE_ARRAY
}

} // namespace sluice::abi
