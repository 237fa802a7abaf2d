//===- kernargs.h - the kernel arguments of the attention kernels ---------------------------------------===//
//
// The only source of the kernarg layout. The generator declares its kernels' parameters from this table, the
// runtime fills the struct made from it, and both compare size and hash at load, so that a kernel and a
// library that disagree never meet on a device.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/kernel_name.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::package {

enum class KernargKind : uint8_t { pointer, i64, i32, f32 };

constexpr uint32_t kernarg_bytes(KernargKind kind) {
  return kind == KernargKind::pointer || kind == KernargKind::i64 ? 8 : 4;
}

// FIELD(C++ type, kind, name). Strides count elements. Eight-byte fields come first: no padding anywhere. A
// "_magic" and its "_shift" divide by a constant: see support/divisor.h.
//
//   q [batch, token, q_heads, d]   k, v [batch, token, kv_heads, d]   o like q   lse [batch, token, q_heads]
//                       with page_table, the batch stride of k and v is that between pages and their token
//                       stride that between the rows of a page
//   lse                 null: not written
//   q_rows, kv_rows     of q, o and lse, and of k and v, where there are starts; INT32_MAX if that is unknown
//   q_starts ... page_starts   of calls::Args, each may be null; without page_table, K and V are contiguous
//   bias, mask, alibi_slopes, sink_logits, q_scale, k_scale, v_scale, o_scale   the same
//   k_scales, v_scales  a scale for each key, or null; strides as those of k and v
//  k_groups, v_groups  the scales of 4-bit K and V for each group of 32 or 64 elements, in F16, and k_zeros
//  and
//                       v_zeros null or the numbers to subtract from elements; strides as k_scales, v_scales
//   bias_scale, diagonals, causal   of calls::Args, each may be null
//   spans               null, or span_stride / 2 pairs of keys for each sequence
//                       With score_rows_of_sequences the starts are those of prefixes, and the sequences
//                       whose rows these are have starts and lengths in diagonals and causal, each may be
//                       null; span_stride is their number and bias_row_stride, without starts, the rows of
//                       each
//   o_split_stride, lse_split_stride   between the results of splits of the keys
//   k_pack_stride       between packs of 2^k_pack_log2 elements of a row of k
//   v_pack_log2         in kernels of V by columns, the token stride of v is between packs of 2^v_pack_log2
//                       tokens, and v_column_stride between the columns of a pack
//   scale_log2e         scale * log2(e), finite, >= 0
//   cap_log2e           soft_cap * log2(e), 0 for none; two_per_cap is 2 / soft_cap
//   lse_per_log2        ln(2), or 1 for an LSE to base 2
//   window_left, window_right   of each row; sink_tokens first keys are visible for any window_left.
//                       No window is one of kernarg_no_window
//   group               query heads that share a KV head
//   splits              workgroups among which the keys of a row are split ...
//   split_tiles         ... with this many tiles each; 0: evenly, but not less than min_split_tiles
//   min_rows, max_rows  a sequence with fewer or more query rows is left to another kernel
//   page_rows           rows of a page
//   page_table_head_stride   between the entries of a sequence for its KV heads; 0: they share them
//   last_page_low, last_page_high   the halves of an entry of the page table are at most these, as unsigned
//                       numbers; the rows of any other entry are zeros
//   head_dim_qk, head_dim_v   of the tensors, if the kernel's are larger: whole groups of 8
//   kv_heads, grid_tiles, grid_batch   x of one split, y and z of the grid, without layers of upper
//                       halves; or kernarg_no_grid each
//   next_heads, next_tiles, next_batch   steps along x, y and z, with carries, from a workgroup to
//                       its probable successor on the compute unit; kernarg_no_grid along z: no successor
//   halved_tiles, halved_batch   such steps from lower halves of tiles to upper ones; 0: tiles are whole
//
// Grid, in workgroups: x = kv_heads * splits (splits of one head together), y = tiles of rows, z = batch. A
// row is a token and a query head of the group: row = token * group + head in the group.
//
// Only kernels for which kernel_has_rounds() holds use these steps (rounds.h). If the halved steps move a
// place out of the grid, its tile has only the first half of its rows. The workgroup at the new place, in a
// layer after grid_batch, has the others; further workgroups of these layers have nothing to do.
#define SLUICE_ATTENTION_SIDE_STRIDES(FIELD, side)                                                           \
  FIELD(int64_t, i64, side##_batch_stride)                                                                   \
  FIELD(int64_t, i64, side##_token_stride)                                                                   \
  FIELD(int64_t, i64, side##_head_stride)
#define SLUICE_ATTENTION_KERNARGS(FIELD)                                                                     \
  FIELD(uint64_t, pointer, q)                                                                                \
  FIELD(uint64_t, pointer, k)                                                                                \
  FIELD(uint64_t, pointer, v)                                                                                \
  FIELD(uint64_t, pointer, o)                                                                                \
  FIELD(uint64_t, pointer, lse)                                                                              \
  FIELD(uint64_t, pointer, q_starts)                                                                         \
  FIELD(uint64_t, pointer, kv_starts)                                                                        \
  FIELD(uint64_t, pointer, q_lengths)                                                                        \
  FIELD(uint64_t, pointer, kv_lengths)                                                                       \
  FIELD(uint64_t, pointer, page_table)                                                                       \
  FIELD(uint64_t, pointer, page_starts)                                                                      \
  FIELD(uint64_t, pointer, bias)                                                                             \
  FIELD(uint64_t, pointer, mask)                                                                             \
  FIELD(uint64_t, pointer, alibi_slopes)                                                                     \
  FIELD(uint64_t, pointer, sink_logits)                                                                      \
  FIELD(uint64_t, pointer, q_scale)                                                                          \
  FIELD(uint64_t, pointer, k_scale)                                                                          \
  FIELD(uint64_t, pointer, v_scale)                                                                          \
  FIELD(uint64_t, pointer, o_scale)                                                                          \
  FIELD(uint64_t, pointer, k_scales)                                                                         \
  FIELD(uint64_t, pointer, v_scales)                                                                         \
  FIELD(uint64_t, pointer, k_groups)                                                                         \
  FIELD(uint64_t, pointer, v_groups)                                                                         \
  FIELD(uint64_t, pointer, k_zeros)                                                                          \
  FIELD(uint64_t, pointer, v_zeros)                                                                          \
  FIELD(uint64_t, pointer, bias_scale)                                                                       \
  FIELD(uint64_t, pointer, diagonals)                                                                        \
  FIELD(uint64_t, pointer, causal)                                                                           \
  FIELD(uint64_t, pointer, spans)                                                                            \
  SLUICE_ATTENTION_SIDE_STRIDES(FIELD, q)                                                                    \
  SLUICE_ATTENTION_SIDE_STRIDES(FIELD, k)                                                                    \
  SLUICE_ATTENTION_SIDE_STRIDES(FIELD, v)                                                                    \
  SLUICE_ATTENTION_SIDE_STRIDES(FIELD, o)                                                                    \
  SLUICE_ATTENTION_SIDE_STRIDES(FIELD, lse)                                                                  \
  SLUICE_ATTENTION_SIDE_STRIDES(FIELD, k_scales)                                                             \
  SLUICE_ATTENTION_SIDE_STRIDES(FIELD, v_scales)                                                             \
  FIELD(int64_t, i64, o_split_stride)                                                                        \
  FIELD(int64_t, i64, lse_split_stride)                                                                      \
  FIELD(int64_t, i64, page_table_stride)                                                                     \
  FIELD(int64_t, i64, page_table_head_stride)                                                                \
  FIELD(int64_t, i64, k_pack_stride)                                                                         \
  FIELD(int64_t, i64, bias_batch_stride)                                                                     \
  FIELD(int64_t, i64, bias_head_stride)                                                                      \
  FIELD(int64_t, i64, bias_row_stride)                                                                       \
  FIELD(int64_t, i64, bias_key_stride)                                                                       \
  FIELD(int64_t, i64, mask_batch_stride)                                                                     \
  FIELD(int64_t, i64, mask_head_stride)                                                                      \
  FIELD(int64_t, i64, mask_row_stride)                                                                       \
  FIELD(int64_t, i64, alibi_batch_stride)                                                                    \
  FIELD(int64_t, i64, bias_scale_batch_stride)                                                               \
  FIELD(int64_t, i64, span_stride)                                                                           \
  FIELD(float, f32, scale_log2e)                                                                             \
  FIELD(float, f32, cap_log2e)                                                                               \
  FIELD(float, f32, two_per_cap)                                                                             \
  FIELD(float, f32, lse_per_log2)                                                                            \
  FIELD(int32_t, i32, q_len)                                                                                 \
  FIELD(int32_t, i32, kv_len)                                                                                \
  FIELD(int32_t, i32, window_left)                                                                           \
  FIELD(int32_t, i32, window_right)                                                                          \
  FIELD(int32_t, i32, sink_tokens)                                                                           \
  FIELD(int32_t, i32, min_rows)                                                                              \
  FIELD(int32_t, i32, max_rows)                                                                              \
  FIELD(int32_t, i32, head_dim_qk)                                                                           \
  FIELD(int32_t, i32, head_dim_v)                                                                            \
  FIELD(uint32_t, i32, group)                                                                                \
  FIELD(uint32_t, i32, group_magic)                                                                          \
  FIELD(uint32_t, i32, group_shift)                                                                          \
  FIELD(uint32_t, i32, splits)                                                                               \
  FIELD(uint32_t, i32, splits_magic)                                                                         \
  FIELD(uint32_t, i32, splits_shift)                                                                         \
  FIELD(uint32_t, i32, split_tiles)                                                                          \
  FIELD(uint32_t, i32, min_split_tiles)                                                                      \
  FIELD(uint32_t, i32, page_rows)                                                                            \
  FIELD(uint32_t, i32, page_magic)                                                                           \
  FIELD(uint32_t, i32, page_shift)                                                                           \
  FIELD(uint32_t, i32, k_pack_log2)                                                                          \
  FIELD(uint32_t, i32, v_pack_log2)                                                                          \
  FIELD(uint32_t, i32, v_column_stride)                                                                      \
  FIELD(uint32_t, i32, score_flags)                                                                          \
  FIELD(int32_t, i32, kv_heads)                                                                              \
  FIELD(int32_t, i32, next_heads)                                                                            \
  FIELD(int32_t, i32, next_tiles)                                                                            \
  FIELD(int32_t, i32, next_batch)                                                                            \
  FIELD(int32_t, i32, grid_tiles)                                                                            \
  FIELD(int32_t, i32, grid_batch)                                                                            \
  FIELD(int32_t, i32, halved_tiles)                                                                          \
  FIELD(int32_t, i32, halved_batch)                                                                          \
  FIELD(int32_t, i32, q_rows)                                                                                \
  FIELD(int32_t, i32, kv_rows)                                                                               \
  FIELD(uint32_t, i32, last_page_low)                                                                        \
  FIELD(uint32_t, i32, last_page_high)

// The changes of scores whose arguments these are, in the order in which kernels apply them, which is that of
// sluice.h. Each is a file of kernels/attention/scores.
#define SLUICE_SCORE_CHANGES(CHANGE)                                                                         \
  CHANGE(softCap)                                                                                            \
  CHANGE(bias)                                                                                               \
  CHANGE(alibi)                                                                                              \
  CHANGE(maskBits)                                                                                           \
  CHANGE(valueScales)

/// Bits of score_flags.
enum ScoreFlag : uint32_t {
  score_top_left = 1 << 0,      // row i is token i of the keys; else the last row is the last key
  score_changed = 1 << 1,       // there is a change of scores: see src/features
  score_bias_f16 = 1 << 2,      // type of bias; else F32
  score_bias_bf16 = 1 << 3,     //
  score_q_scale_heads = 1 << 4, // a scale for each head; else one
  score_k_scale_heads = 1 << 5, //
  score_v_scale_heads = 1 << 6, //
  score_partial = 1 << 7, // o is F32, and it and lse are [split, batch, token, q_heads, d] without starts
  score_page_index_64 = 1 << 8,      // page_table holds 64-bit numbers
  score_o_f32 = 1 << 9,              // o is F32
  score_o_fp8 = 1 << 10,             // o is E4M3FNUZ
  score_o_scale_heads = 1 << 11,     // a scale of o for each head; else one
  score_mask_new_rows = 1 << 12,     // mask has the newest keys only, as many as the sequence has rows
  score_groups_of_64 = 1 << 14,      // scales of 4-bit K and V are for 64 elements each, not 32
  score_of_sequence = 1 << 13,       // there are diagonals, or a mask that is causal for some sequences
  score_pages_hidden = 1 << 15,      // keys of entries that are not pages are hidden, not zeros
  score_key_scales = 1 << 19,        // K or V has a scale for each key
  score_rows_of_sequences = 1 << 20, // rows of prefixes, of which only those of sequences are read
};
/// From this bit on, three bits: how many of the last eight elements of a row of Q are not the row's.
inline constexpr uint32_t score_unused_shift = 16, score_unused_mask = 7;

/// Whether a workgroup has a compute unit to itself, so that it begins when another has ended: eight waves,
/// two for each SIMD, with 32 rows each. Half of its tile still has a wave for each SIMD.
constexpr bool kernel_has_rounds(uint32_t tile_q, uint32_t rows_of_wave) {
  return rows_of_wave == prefill_rows_of_wave && tile_q == 8 * rows_of_wave;
}

/// Whether a paged kernel can hide the keys of missing pages: those of few rows, whose tiles have a bit for
/// each key in a dword. The registers of the others are taken, and their loop computes scores before it knows
/// of the entries.
constexpr bool kernel_hides_missing_pages(uint32_t rows_of_wave, uint32_t tile_kv) {
  return rows_of_wave == decode_rows_of_wave && tile_kv <= 32;
}

/// Whether rows of Q may end inside eight elements: not where V is in K, whose rows leave no registers for
/// the rest, or by columns, which have no such end; nor in prefill kernels of large heads, which load Q into
/// AccVGPRs.
constexpr bool kernel_cuts_rows(uint32_t rows_of_wave, uint32_t head_dim_qk, bool v_has_rows) {
  return v_has_rows && (rows_of_wave == decode_rows_of_wave || head_dim_qk <= 128);
}

/// An extent that no grid has, and a step out of any grid.
inline constexpr int32_t kernarg_no_grid = 1 << 30;

/// A window that hides nothing. Kernels add lengths to it without overflow.
inline constexpr int32_t kernarg_no_window = INT32_MAX - 511;

/// The largest distance of a diagonal from the first key. Kernels add the numbers of rows to it.
inline constexpr int32_t kernarg_most_diagonal = 1 << 30;

struct AttentionKernargs {
#define SLUICE_FIELD(type, kind, name) type name;
  SLUICE_ATTENTION_KERNARGS(SLUICE_FIELD)
#undef SLUICE_FIELD
};

struct KernargField {
  std::string_view name;
  KernargKind kind;
  uint32_t offset;
};

inline constexpr std::array attention_kernarg_fields = {
#define SLUICE_FIELD(type, kind, name)                                                                       \
  KernargField{#name, KernargKind::kind, offsetof(AttentionKernargs, name)},
    SLUICE_ATTENTION_KERNARGS(SLUICE_FIELD)
#undef SLUICE_FIELD
};

/// FNV-1a over names, kinds and offsets: any change to a layout changes it.
constexpr uint64_t kernarg_hash(std::span<const KernargField> fields) {
  uint64_t hash = 0xcbf29ce484222325;
  auto mix = [&hash](uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3; };
  for (const KernargField &field : fields) {
    for (char c : field.name)
      mix(uint8_t(c));
    mix(uint8_t(field.kind));
    for (int shift = 0; shift < 32; shift += 8)
      mix(uint8_t(field.offset >> shift));
  }
  return hash;
}
/// Incremented whenever the same fields change their meaning, so that a pack with other meanings is refused
/// like one with other fields.
inline constexpr uint64_t attention_kernarg_meaning = 5;
constexpr uint64_t attention_kernarg_hash() {
  return kernarg_hash(attention_kernarg_fields) + attention_kernarg_meaning;
}

// The AMDGPU kernarg segment places each argument at its natural alignment; the struct must agree byte for
// byte.
constexpr bool kernargs_are_packed(std::span<const KernargField> fields, size_t struct_bytes) {
  uint32_t offset = 0;
  for (const KernargField &field : fields) {
    if (field.offset != offset) return false;
    offset += kernarg_bytes(field.kind);
  }
  return offset == struct_bytes;
}
static_assert(kernargs_are_packed(attention_kernarg_fields, sizeof(AttentionKernargs)));

} // namespace sluice::package
