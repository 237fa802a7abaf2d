//===- kernel_name.h - the grammar of kernel names ------------------------------------------------------===//
//
// A name contains everything on which the choice between kernels depends, in one fixed order, and is also the
// symbol in the code object:
//
//   name      = "attn_fwd_" types "_" heads "_q" number "_kv" number "_w" number [ "_" form ]
//             | "kv_append_" dtype "_" dtype          source, cache
//             | "kv_copy_" dtype "_" dtype            source, target
//             | "append_step_" dtype "_" dtype        as kv_append, with norms, tails and Q
//             | "merge_states_" dtype "_" dtype       parts, O
//   types     = wide [ "_" dtype ]              of Q and O; of K and V in memory, if different
//             | "e4m3fnuz_to_" wide             of Q, K and V; of O
//   wide      = "f16" | "bf16"
//   dtype     = a name of package/dtypes.h; of K and V, one of at most 8 bits
//   form      = "paged"                         prefill, as without a form, but with K and V in pages
//             | "decode"                        few rows: tokens and the query heads of a group; with or
//                                               without pages
//             | "mla"                           the same, and V is the first part of the rows of K
//             | "columns"                       the same, and V is by columns: tokens of a column are
//                                               neighbours
//   heads     = "d" number [ "v" number ]       QK head dim, then V's if it differs
//   number    = a positive decimal integer without leading zeros
//
// e.g. attn_fwd_f16_d128_q256_kv64_w8: 256 query rows per workgroup, 64 keys per iteration, 8 waves;
// attn_fwd_e4m3fnuz_to_bf16_d128_q16_kv32_w4_decode: Q, K and V of e4m3fnuz, O of bf16; and
// kv_append_bf16_e4m3fnuz: from bf16 into a cache of e4m3fnuz.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::package {

/// Rows that a wave processes at a time: of a prefill kernel, and of any other.
inline constexpr uint32_t prefill_rows_of_wave = 32, decode_rows_of_wave = 16;

struct KernelName {
  std::string operation; // "attention_forward", "kv_append", "kv_copy", "append_step" or "merge_states"
  std::string dtype;     // of Q, K, V and O (but see kv_dtype, o_dtype); for cache operations, of the input
  uint32_t head_dim_qk = 0;
  uint32_t head_dim_v = 0;
  uint32_t tile_q = 0;
  uint32_t tile_kv = 0;
  uint32_t waves = 0;
  std::string kv_dtype = {}; // of K and V in memory, if it is not `dtype`
  std::string o_dtype = {};  // of O, if it is not `dtype`
  std::string form = {};     // "paged", "decode", "mla", "columns" or nothing
  std::string to_dtype = {}; // only cache operations, which have no numbers: of the output

  /// Whether it computes attention, so that the numbers are valid.
  bool is_attention() const { return to_dtype.empty(); }
  /// Whether it is attention for many rows: its waves process twice as many of them at a time.
  bool is_prefill() const { return is_attention() && (form.empty() || form == "paged"); }
  /// Waves of a workgroup among which its keys are divided: those of a decode kernel that have no separate
  /// rows. If V is in K, such waves divide its columns.
  uint32_t waves_dividing_keys() const {
    return form == "decode" || form == "columns" ? std::max(1u, waves * decode_rows_of_wave / tile_q) : 1;
  }

  bool operator==(const KernelName &) const = default;
};

/// The name; the fields must be legal by the grammar.
std::string format_kernel_name(const KernelName &name);

/// Nothing if `text` is not a name by the grammar; `unread`, if given, is then the text after the part that
/// begins a name. format_kernel_name(*parse_kernel_name(text)) == text.
std::optional<KernelName> parse_kernel_name(std::string_view text, std::string_view *unread = nullptr);

} // namespace sluice::package
