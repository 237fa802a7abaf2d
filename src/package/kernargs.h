//===- kernargs.h - the kernel arguments of the attention kernels ---------------------------------------===//
//
// The one source of the kernarg layout. The generator declares its kernels' parameters from this table, the
// runtime fills the struct made from it, and both compare size and hash at load, so that a kernel and a
// library that disagree never meet on a device.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

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

// FIELD(C++ type, kind, name). Strides count elements. Eight-byte fields come first: no padding anywhere.
//
//   q [batch, q_len, q_heads, d]   k, v [batch, kv_len, kv_heads, d]   o like q   lse [batch, q_heads, q_len]
//   lse may be null: then it is not written.
//   scale_log2e         scale * log2(e), finite, >= 0
//   scale               natural-log factor of the scores, for LSE
//   causal_shift        key j is visible to query row i iff j <= i + causal_shift and j < kv_len;
//                       without a causal mask it is kv_len
//   kv_head_magic       kv_head = (q_head * kv_head_magic) >> 31, = ceil(2^31 / (q_heads / kv_heads))
//
// Grid, in workgroups: x = q_heads, y = ceil(q_len / tile_q), z = batch.
#define SLUICE_ATTENTION_KERNARGS(FIELD)                                                                     \
  FIELD(uint64_t, pointer, q)                                                                                \
  FIELD(uint64_t, pointer, k)                                                                                \
  FIELD(uint64_t, pointer, v)                                                                                \
  FIELD(uint64_t, pointer, o)                                                                                \
  FIELD(uint64_t, pointer, lse)                                                                              \
  FIELD(int64_t, i64, q_batch_stride)                                                                        \
  FIELD(int64_t, i64, q_token_stride)                                                                        \
  FIELD(int64_t, i64, q_head_stride)                                                                         \
  FIELD(int64_t, i64, k_batch_stride)                                                                        \
  FIELD(int64_t, i64, k_token_stride)                                                                        \
  FIELD(int64_t, i64, k_head_stride)                                                                         \
  FIELD(int64_t, i64, v_batch_stride)                                                                        \
  FIELD(int64_t, i64, v_token_stride)                                                                        \
  FIELD(int64_t, i64, v_head_stride)                                                                         \
  FIELD(int64_t, i64, o_batch_stride)                                                                        \
  FIELD(int64_t, i64, o_token_stride)                                                                        \
  FIELD(int64_t, i64, o_head_stride)                                                                         \
  FIELD(int64_t, i64, lse_batch_stride)                                                                      \
  FIELD(int64_t, i64, lse_token_stride)                                                                      \
  FIELD(int64_t, i64, lse_head_stride)                                                                       \
  FIELD(float, f32, scale_log2e)                                                                             \
  FIELD(float, f32, scale)                                                                                   \
  FIELD(int32_t, i32, q_len)                                                                                 \
  FIELD(int32_t, i32, kv_len)                                                                                \
  FIELD(int32_t, i32, causal_shift)                                                                          \
  FIELD(uint32_t, i32, kv_head_magic)

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
constexpr uint64_t attention_kernarg_hash() {
  return kernarg_hash(attention_kernarg_fields);
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
