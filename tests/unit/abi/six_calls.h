//===- six_calls.h - six calls as an engine makes them, in flat structs and in small ones ---------------===//
//
// The pointers point to nothing: nobody follows them.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/cache_ops.h"
#include "calls/problem.h"
#include "support/attention_call.h"

#include <sluice/make.h>

#include <cstdint>

namespace sluice::test {

/// A place in memory that is never read, a different one for each number.
template <typename Type = void> Type *somewhere(uintptr_t number) {
  return reinterpret_cast<Type *>(number << 20); // NOLINT(performance-no-int-to-ptr)
}

/// A problem and a call in flat structs.
struct FlatCall {
  calls::Problem problem;
  calls::Args args;
};

/// The same in small ones.
using ValueCall = AttentionCall;

// Two sequences of 64 rows and 128 keys.
inline void dense(FlatCall &call) {
  call.problem.q_type = call.problem.k_type = call.problem.v_type = call.problem.o_type = SLUICE_F16;
  call.problem.q_heads = 8;
  call.problem.kv_heads = 2;
  call.problem.head_dim_qk = call.problem.head_dim_v = 128;
  call.args.batch = 2;
  call.args.q_len = 64;
  call.args.kv_len = 128;
  call.args.q = {somewhere(1), {64 * 8 * 128, 8 * 128, 128, 1}};
  call.args.k = {somewhere(2), {128 * 2 * 128, 2 * 128, 128, 1}};
  call.args.v = {somewhere(3), {128 * 2 * 128, 2 * 128, 128, 1}};
  call.args.o = {somewhere(4), {64 * 8 * 128, 8 * 128, 128, 1}};
}

inline void dense(ValueCall &call) {
  call.format = sluice_kv_tensors(SLUICE_F16, 2, 128);
  call.attention = sluice_make_attention(SLUICE_F16, 8, &call.format);
  call.kv = sluice_make_kv(&call.format, sluice_bshd(somewhere(2), 128, 2, 128),
                           sluice_bshd(somewhere(3), 128, 2, 128));
  call.keys[0] = sluice_keys_of_equal(&call.kv, 128);
  call.args = sluice_make_call(2, 64, sluice_bshd(somewhere(1), 64, 8, 128),
                               sluice_bshd(somewhere(4), 64, 8, 128), call.keys);
}

// Prompts one after the other, causal.
inline void ragged(FlatCall &call) {
  call.problem.mode = calls::ragged;
  call.problem.flags = calls::causal;
  call.problem.q_type = call.problem.k_type = call.problem.v_type = call.problem.o_type = SLUICE_BF16;
  call.problem.q_heads = 32;
  call.problem.kv_heads = 8;
  call.problem.head_dim_qk = call.problem.head_dim_v = 128;
  call.problem.max_q_len = call.problem.max_kv_len = 4096;
  call.args.batch = 3;
  call.args.q_len = call.args.kv_len = 1000;
  call.args.q = {somewhere(1), {0, 32 * 128, 128, 1}};
  call.args.k = {somewhere(2), {0, 8 * 128, 128, 1}};
  call.args.v = {somewhere(3), {0, 8 * 128, 128, 1}};
  call.args.o = {somewhere(4), {0, 32 * 128, 128, 1}};
  call.args.q_starts = call.args.kv_starts = somewhere<int32_t>(5);
}

inline void ragged(ValueCall &call) {
  call.format = sluice_kv_tensors(SLUICE_BF16, 8, 128);
  call.mask = sluice_causal_mask();
  call.attention = sluice_make_attention(SLUICE_BF16, 32, &call.format);
  call.attention.flags = SLUICE_ATTENTION_RAGGED;
  call.attention.mask = &call.mask;
  call.attention.bounds.q_len = call.attention.bounds.kv_len = 4096;
  call.kv =
      sluice_make_kv(&call.format, sluice_packed(somewhere(2), 8, 128), sluice_packed(somewhere(3), 8, 128));
  call.keys[0] = sluice_keys_of_ragged(&call.kv, somewhere<int32_t>(5), 1000);
  call.args = sluice_make_call(3, 1000, sluice_packed(somewhere(1), 32, 128),
                               sluice_packed(somewhere(4), 32, 128), call.keys);
  call.args.rows.starts = somewhere<int32_t>(5);
}

// A step of decoding on a cache of FP8, with a scale for each head.
inline void decode(FlatCall &call) {
  call.problem.mode = calls::paged;
  call.problem.q_type = call.problem.o_type = SLUICE_BF16;
  call.problem.k_type = call.problem.v_type = SLUICE_E4M3FNUZ;
  call.problem.k_scale_kind = call.problem.v_scale_kind = SLUICE_SCALE_PER_HEAD;
  call.problem.q_heads = 32;
  call.problem.kv_heads = 8;
  call.problem.head_dim_qk = call.problem.head_dim_v = 128;
  call.problem.page_size = 16;
  call.problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
  call.problem.max_batch = 64;
  call.problem.max_q_len = 1;
  call.problem.max_kv_len = 8192;
  call.args.batch = 48;
  call.args.q_len = 1;
  call.args.kv_len = 8192; // the plan's bound
  call.args.q = {somewhere(1), {32 * 128, 32 * 128, 128, 1}};
  call.args.o = {somewhere(4), {32 * 128, 32 * 128, 128, 1}};
  call.args.k = {somewhere(2), {16 * 8 * 128, 8 * 128, 128, 1}};
  call.args.v = {somewhere(3), {16 * 8 * 128, 8 * 128, 128, 1}};
  call.args.k_scale = somewhere<float>(6);
  call.args.v_scale = somewhere<float>(7);
  call.args.kv_lengths = somewhere<int32_t>(8);
  call.args.page_table = somewhere(9);
  call.args.page_table_stride = 512;
  call.args.page_count = 10000;
}

inline void decode(ValueCall &call) {
  call.format = sluice_kv_pages(SLUICE_E4M3FNUZ, 8, 128, 16);
  call.format.k.scale_kind = call.format.v.scale_kind = SLUICE_SCALE_PER_HEAD;
  call.attention = sluice_make_attention(SLUICE_BF16, 32, &call.format);
  call.attention.bounds.batch = 64;
  call.attention.bounds.q_len = 1;
  call.attention.bounds.kv_len = 8192;
  call.scales.struct_size = sizeof call.scales;
  call.scales.k.data = somewhere(6);
  call.scales.v.data = somewhere(7);
  call.kv = sluice_make_kv(&call.format, sluice_pages_nhd(somewhere(2), 16, 8, 128),
                           sluice_pages_nhd(somewhere(3), 16, 8, 128));
  call.kv.scales = &call.scales;
  call.kv.page_count = 10000;
  call.keys[0] = sluice_keys_of_pages(&call.kv, somewhere(9), 512, somewhere<int32_t>(8), SLUICE_PLAN_BOUND);
  call.args = sluice_make_call(48, 1, sluice_bshd(somewhere(1), 1, 32, 128),
                               sluice_bshd(somewhere(4), 1, 32, 128), call.keys);
}

// The same in F16, after a prompt that groups of sequences share; with an LSE to base 2 and a scale.
inline void cascade(FlatCall &call) {
  decode(call);
  call.problem.q_type = call.problem.k_type = call.problem.v_type = call.problem.o_type = SLUICE_F16;
  call.problem.k_scale_kind = call.problem.v_scale_kind = SLUICE_SCALE_NONE;
  call.args.k_scale = call.args.v_scale = nullptr;
  call.problem.flags = calls::prefixes | calls::write_lse;
  call.problem.flags |= calls::lse_log2;
  call.problem.max_q_tokens = 64;
  call.problem.max_prefixes = 4;
  call.problem.max_prefix_len = 32768;
  call.args.scale = 0.125f;
  call.args.lse = {somewhere(10), {32, 32, 1, 0}};
  call.args.prefix_count = 2;
  call.args.prefix_len = 30000;
  call.args.prefix_q_starts = somewhere<int32_t>(11);
  call.args.prefix_lengths = somewhere<int32_t>(12);
  call.args.prefix_page_table = somewhere(13);
  call.args.prefix_page_table_stride = 2048;
}

inline void cascade(ValueCall &call) {
  decode(call);
  call.format = sluice_kv_pages(SLUICE_F16, 8, 128, 16);
  call.attention.q.type = call.attention.o.type = SLUICE_F16;
  call.kv.scales = nullptr;
  call.attention.flags = SLUICE_ATTENTION_PREFIXES;
  call.attention.lse = SLUICE_LSE_LOG2;
  call.attention.bounds.q_rows = 64;
  call.attention.bounds.groups = 4;
  call.attention.bounds.group_keys = 32768;
  call.lse = sluice_make_tensor(somewhere(10), 32, 32, 1, 0);
  call.args.lse = &call.lse;
  call.scale = 0.125f;
  call.args.scale = &call.scale;
  call.keys[1] = sluice_keys_of_pages(&call.kv, somewhere(13), 2048, somewhere<int32_t>(12), 30000);
  call.keys[1].groups = 2;
  call.keys[1].group_starts = somewhere<int32_t>(11);
  call.args.key_sets = 2;
}

// A step of decoding of multi-head latent attention.
inline void mla(FlatCall &call) {
  call.problem.mode = calls::paged;
  call.problem.flags = calls::v_in_k;
  call.problem.q_type = call.problem.k_type = call.problem.v_type = call.problem.o_type = SLUICE_BF16;
  call.problem.q_heads = 128;
  call.problem.kv_heads = 1;
  call.problem.head_dim_qk = 576;
  call.problem.head_dim_v = 512;
  call.problem.page_size = 64;
  call.problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
  call.args.batch = 16;
  call.args.q_len = 1;
  call.args.kv_len = 4096;
  call.args.q = {somewhere(1), {128 * 576, 128 * 576, 576, 1}};
  call.args.o = {somewhere(4), {128 * 512, 128 * 512, 512, 1}};
  call.args.k = {somewhere(2), {64 * 576, 576, 576, 1}};
  call.args.kv_lengths = somewhere<int32_t>(8);
  call.args.page_table = somewhere(9);
  call.args.page_table_stride = 64;
}

inline void mla(ValueCall &call) {
  call.format = sluice_kv_latent(SLUICE_BF16, 512, 64, 64);
  call.attention = sluice_make_attention(SLUICE_BF16, 128, &call.format);
  call.kv = sluice_make_kv(&call.format, sluice_pages_nhd(somewhere(2), 64, 1, 576), {});
  call.keys[0] = sluice_keys_of_pages(&call.kv, somewhere(9), 64, somewhere<int32_t>(8), 4096);
  call.args = sluice_make_call(16, 1, sluice_bshd(somewhere(1), 1, 128, 576),
                               sluice_bshd(somewhere(4), 1, 128, 512), call.keys);
}

/// A fused append: Q and K get a norm and a rotation, and the rows go to slots of a cache of FP8.
struct ValueAppend {
  sluice_kv_format format = {};
  sluice_kv_scales scales = {};
  sluice_kv kv = {};
  sluice_rotation rotation = {};
  sluice_norm q_norm = {}, k_norm = {};
  sluice_append_q q = {};
  sluice_append_args args = {};

  ValueAppend() = default;
  ValueAppend(const ValueAppend &) = delete;
  ValueAppend &operator=(const ValueAppend &) = delete;
};

inline void append(calls::Append &call) {
  call = {};
  call.source_type = SLUICE_BF16;
  call.cache_type = SLUICE_E4M3FNUZ;
  call.kv_heads = 8;
  call.head_dim_qk = call.head_dim_v = 128;
  call.page_size = 16;
  call.k_scale_kind = call.v_scale_kind = SLUICE_SCALE_PER_TENSOR;
  call.tokens = 48;
  call.rotary_dim = 128;
  call.rotary_type = SLUICE_BF16;
  call.k = {somewhere(1), {0, 8 * 128, 128, 1}};
  call.v = {somewhere(2), {0, 8 * 128, 128, 1}};
  call.k_cache = {somewhere(3), {16 * 8 * 128, 8 * 128, 128, 1}};
  call.v_cache = {somewhere(4), {16 * 8 * 128, 8 * 128, 128, 1}};
  call.slots = somewhere<int64_t>(5);
  call.k_scale = somewhere<float>(6);
  call.v_scale = somewhere<float>(7);
  call.rotary = somewhere<float>(8);
  call.rotary_stride = 128;
  call.positions = somewhere<int32_t>(9);
  call.page_count = 10000;
  call.q_heads = 32;
  call.q = {somewhere(10), {0, 32 * 128, 128, 1}};
  call.q_out = {somewhere(11), {0, 32 * 128, 128, 1}};
  call.q_norm = somewhere(12);
  call.k_norm = somewhere(13);
  call.norm_epsilon = 1e-6f;
  call.norm_type = SLUICE_BF16;
}

inline void append(ValueAppend &call) {
  call.format = sluice_kv_pages(SLUICE_E4M3FNUZ, 8, 128, 16);
  call.format.k.scale_kind = call.format.v.scale_kind = SLUICE_SCALE_PER_TENSOR;
  call.scales.struct_size = sizeof call.scales;
  call.scales.k.data = somewhere(6);
  call.scales.v.data = somewhere(7);
  call.kv = sluice_make_kv(&call.format, sluice_pages_nhd(somewhere(3), 16, 8, 128),
                           sluice_pages_nhd(somewhere(4), 16, 8, 128));
  call.kv.scales = &call.scales;
  call.kv.page_count = 10000;
  call.args = sluice_make_append(&call.kv, SLUICE_BF16, 48, sluice_packed(somewhere(1), 8, 128),
                                 sluice_packed(somewhere(2), 8, 128), somewhere<int64_t>(5));
  call.rotation.struct_size = sizeof call.rotation;
  call.rotation.type = SLUICE_BF16;
  call.rotation.dim = 128;
  call.rotation.cosines = somewhere(8);
  call.rotation.stride = 128;
  call.args.rotation = &call.rotation;
  call.args.positions = somewhere<int32_t>(9);
  call.q_norm.struct_size = call.k_norm.struct_size = sizeof call.q_norm;
  call.q_norm.type = call.k_norm.type = SLUICE_BF16;
  call.q_norm.epsilon = call.k_norm.epsilon = 1e-6f;
  call.q_norm.weights = somewhere(12);
  call.k_norm.weights = somewhere(13);
  call.args.k_norm = &call.k_norm;
  call.q.struct_size = sizeof call.q;
  call.q.heads = 32;
  call.q.q = sluice_packed(somewhere(10), 32, 128);
  call.q.out = sluice_packed(somewhere(11), 32, 128);
  call.q.norm = &call.q_norm;
  call.args.q = &call.q;
}

} // namespace sluice::test
