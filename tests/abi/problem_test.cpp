//===- problem_test.cpp - questions, and every problem that is refused ----------------------------------===//
#include "fixture.h"

#include <functional>
#include <limits>
#include <set>

using namespace sluice::test;

namespace {

using Call = AttentionCall;

struct Refusal {
  std::function<void(Call &)> change;
  sluice_status status;
  const char *field;
  const char *message;
};

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

#define SLUICE_SET(member, value) [](Call &c) { c.member = value; }
#define SLUICE_FLAG(member, flag) [](Call &c) { c.member |= flag; }
#define SLUICE_PAGED(...)                                                                                    \
  [](Call &c) {                                                                                              \
    make_paged(c);                                                                                           \
    __VA_ARGS__;                                                                                             \
  }
#define SLUICE_V_IN_K(...)                                                                                   \
  [](Call &c) {                                                                                              \
    c.format.flags |= SLUICE_KV_V_IN_K;                                                                      \
    c.format.v = {};                                                                                         \
    __VA_ARGS__;                                                                                             \
  }

const Refusal refusals[] = {
    {SLUICE_FLAG(attention.flags, 1u << 20), SLUICE_NEWER_STRUCT, "flags",
     "flags has unknown bits 0x100000: the library is older"},
    {SLUICE_FLAG(attention.flags, 1u << 31), SLUICE_NEWER_STRUCT, "flags", "bits 0x80000000"},
    {SLUICE_FLAG(mask.flags, 1u << 20), SLUICE_NEWER_STRUCT, "mask.flags",
     "mask.flags has unknown bits 0x100000: the library is older"},
    {SLUICE_FLAG(scores.flags, 1u << 20), SLUICE_NEWER_STRUCT, "scores.flags",
     "scores.flags has unknown bits 0x100000"},
    {SLUICE_FLAG(format.flags, 1u << 20), SLUICE_NEWER_STRUCT, "kv.flags",
     "kv.flags has unknown bits 0x100000"},
    {SLUICE_SET(attention.kv, nullptr), SLUICE_INVALID_ARGUMENT, "kv", "kv is NULL"},
    {SLUICE_FLAG(attention.flags, SLUICE_ATTENTION_RAGGED), SLUICE_UNSUPPORTED, "flags",
     "flags has SLUICE_ATTENTION_RAGGED; nearest supported: without it"},
    {SLUICE_PAGED(), SLUICE_UNSUPPORTED, "kv.page_size",
     "kv.page_size is 16; nearest supported: 0 (not in pages)"},
    {SLUICE_PAGED(c.attention.flags = SLUICE_ATTENTION_RAGGED), SLUICE_INVALID_ARGUMENT, "flags",
     "flags has SLUICE_ATTENTION_RAGGED, but kv.page_size is not 0"},
    {SLUICE_SET(attention.q.type, 0), SLUICE_INVALID_ARGUMENT, "q.type", "q.type is missing"},
    {SLUICE_SET(format.k.type, 0), SLUICE_INVALID_ARGUMENT, "kv.k.type", "kv.k.type is missing"},
    {SLUICE_SET(format.v.type, 0), SLUICE_INVALID_ARGUMENT, "kv.v.type", "kv.v.type is missing"},
    {SLUICE_SET(attention.o.type, 0), SLUICE_INVALID_ARGUMENT, "o.type", "o.type is missing"},
    {SLUICE_SET(attention.q.type, 99), SLUICE_NEWER_STRUCT, "q.type",
     "q.type is 99; the last value that this version knows is SLUICE_Q4_0 (11)"},
    {SLUICE_SET(attention.q.type, SLUICE_F32), SLUICE_UNSUPPORTED, "q.type",
     "q.type is f32; nearest supported:"},
    {SLUICE_SET(attention.q.type, SLUICE_E4M3FNUZ), SLUICE_UNSUPPORTED, "q.type",
     "q.type is e4m3fnuz; nearest supported:"},
    {SLUICE_SET(format.k.type, SLUICE_E4M3FN), SLUICE_UNSUPPORTED, "kv.k.type",
     "kv.k.type is e4m3fn; nearest supported: f16"},
    {SLUICE_SET(format.v.type, SLUICE_BF16), SLUICE_UNSUPPORTED, "kv.v.type",
     "kv.v.type is bf16; nearest supported: f16"},
    {SLUICE_SET(attention.o.type, SLUICE_BF16), SLUICE_UNSUPPORTED, "o.type",
     "o.type is bf16; nearest supported: f16"},
    {SLUICE_SET(attention.o.type, SLUICE_E4M3FN), SLUICE_UNSUPPORTED, "o.type",
     "o.type is e4m3fn; nearest supported: f16"},
    {SLUICE_SET(attention.o.type, SLUICE_Q8_0), SLUICE_UNSUPPORTED, "o.type",
     "o.type is q8_0; nearest supported: f16"},
    {SLUICE_SET(attention.q.type, SLUICE_Q8_0), SLUICE_UNSUPPORTED, "q.type",
     "q.type is q8_0, which only K and V can have; nearest supported: f16"},
    {SLUICE_SET(format.k.type, SLUICE_Q8_0), SLUICE_UNSUPPORTED, "kv.k.type",
     "kv.k.type is q8_0; nearest supported: f16"},
    {[](Call &c) {
       c.format.k.type = c.format.v.type = SLUICE_Q4_0;
       c.format.head_dim_qk = 80;
     },
     SLUICE_INVALID_ARGUMENT, "kv.head_dim_qk", "kv.head_dim_qk is 80; it must be a multiple of 32 for q4_0"},
    {[](Call &c) {
       c.format.v.type = SLUICE_U4;
       c.format.v.scale_kind = SLUICE_SCALE_PER_GROUP;
     },
     SLUICE_INVALID_ARGUMENT, "kv.v.scale_group", "kv.v.scale_group is 0; it must be 32 or 64"},
    {SLUICE_SET(attention.q_heads, 0), SLUICE_INVALID_ARGUMENT, "q_heads",
     "q_heads is 0; it must be at least 1"},
    {SLUICE_SET(attention.q_heads, -8), SLUICE_INVALID_ARGUMENT, "q_heads", "q_heads is -8"},
    {SLUICE_SET(format.kv_heads, 0), SLUICE_INVALID_ARGUMENT, "kv.kv_heads", "kv.kv_heads is 0"},
    {SLUICE_SET(format.kv_heads, -2), SLUICE_INVALID_ARGUMENT, "kv.kv_heads", "kv.kv_heads is -2"},
    {SLUICE_SET(format.kv_heads, 3), SLUICE_INVALID_ARGUMENT, "q_heads",
     "q_heads is 8; it must be a multiple of kv.kv_heads, which is 3"},
    {SLUICE_SET(format.kv_heads, 16), SLUICE_INVALID_ARGUMENT, "q_heads",
     "multiple of kv.kv_heads, which is 16"},
    {SLUICE_SET(attention.q_heads, 32770), SLUICE_UNSUPPORTED, "q_heads",
     "q_heads is 32770; nearest supported: 32768"},
    {SLUICE_SET(format.head_dim_qk, 0), SLUICE_INVALID_ARGUMENT, "kv.head_dim_qk", "kv.head_dim_qk is 0"},
    {SLUICE_SET(format.head_dim_v, -1), SLUICE_INVALID_ARGUMENT, "kv.head_dim_v", "kv.head_dim_v is -1"},
    {SLUICE_SET(format.head_dim_qk, 83), SLUICE_UNSUPPORTED, "kv.head_dim_qk",
     "kv.head_dim_qk is 83 without SLUICE_ATTENTION_PADDED_ROWS; nearest supported: 88"},
    {SLUICE_SET(format.head_dim_qk, 192), SLUICE_UNSUPPORTED, "kv.head_dim_qk",
     "kv.head_dim_qk is 192; nearest supported: 128"},
    {SLUICE_SET(format.head_dim_v, 61), SLUICE_UNSUPPORTED, "kv.head_dim_v",
     "kv.head_dim_v is 61 without SLUICE_ATTENTION_PADDED_ROWS; nearest supported: 64"},
    {SLUICE_SET(format.head_dim_v, 192), SLUICE_UNSUPPORTED, "kv.head_dim_v",
     "kv.head_dim_v is 192; nearest supported: 128"},
    {SLUICE_SET(attention.bounds.batch, -1), SLUICE_INVALID_ARGUMENT, "bounds.batch", "bounds.batch is -1"},
    {SLUICE_SET(attention.bounds.q_len, -1), SLUICE_INVALID_ARGUMENT, "bounds.q_len", "bounds.q_len is -1"},
    {SLUICE_SET(attention.bounds.kv_len, -1), SLUICE_INVALID_ARGUMENT, "bounds.kv_len",
     "bounds.kv_len is -1"},
    {SLUICE_SET(attention.bounds.q_rows, -1), SLUICE_INVALID_ARGUMENT, "bounds.q_rows",
     "bounds.q_rows is -1"},
    {SLUICE_SET(mask.alignment, 2), SLUICE_UNSUPPORTED, "mask.alignment",
     "nearest supported: SLUICE_TOP_LEFT"},
    {SLUICE_SET(mask.window_left, 5), SLUICE_INVALID_ARGUMENT, "mask.window_left",
     "mask.window_left is 5, but mask.flags lacks SLUICE_MASK_WINDOW_LEFT"},
    {SLUICE_SET(mask.window_right, -1), SLUICE_INVALID_ARGUMENT, "mask.window_right",
     "mask.window_right is -1, but mask.flags lacks SLUICE_MASK_WINDOW_RIGHT"},
    {SLUICE_FLAG(mask.flags, SLUICE_MASK_WINDOW_LEFT), SLUICE_UNSUPPORTED, "mask.flags",
     "SLUICE_MASK_WINDOW_LEFT (mask.window_left 0); nearest supported: no window"},
    {[](Call &c) {
       c.mask.flags = SLUICE_MASK_WINDOW_RIGHT;
       c.mask.window_right = 3;
     },
     SLUICE_UNSUPPORTED, "mask.flags",
     "SLUICE_MASK_WINDOW_RIGHT (mask.window_right 3); nearest supported: no window"},
    {SLUICE_FLAG(mask.flags, SLUICE_MASK_WINDOW_RIGHT), SLUICE_INVALID_ARGUMENT, "mask.flags",
     "mask.flags has SLUICE_MASK_CAUSAL and SLUICE_MASK_WINDOW_RIGHT"},
    {[](Call &c) {
       c.mask.flags = SLUICE_MASK_WINDOW_RIGHT;
       c.mask.window_right = -1;
     },
     SLUICE_INVALID_ARGUMENT, "mask.window_right", "mask.window_right is -1; it must be at least 0"},
    {[](Call &c) {
       c.mask.flags |= SLUICE_MASK_WINDOW_LEFT;
       c.mask.window_left = -1;
     },
     SLUICE_INVALID_ARGUMENT, "mask.window_left", "mask.window_left is -1; it must be at least 0"},
    {SLUICE_SET(mask.sink_tokens, 4), SLUICE_INVALID_ARGUMENT, "mask.sink_tokens",
     "mask.sink_tokens is 4, but mask.flags lacks SLUICE_MASK_WINDOW_LEFT"},
    {[](Call &c) {
       c.mask.flags |= SLUICE_MASK_WINDOW_LEFT;
       c.mask.sink_tokens = -1;
     },
     SLUICE_INVALID_ARGUMENT, "mask.sink_tokens", "mask.sink_tokens is -1"},
    {SLUICE_SET(scores.soft_cap, 30), SLUICE_UNSUPPORTED, "scores.soft_cap",
     "scores.soft_cap is 30; nearest supported: 0"},
    {SLUICE_SET(scores.soft_cap, -1), SLUICE_INVALID_ARGUMENT, "scores.soft_cap", "scores.soft_cap is -1"},
    {SLUICE_SET(scores.soft_cap, not_a_number), SLUICE_INVALID_ARGUMENT, "scores.soft_cap",
     "scores.soft_cap is nan"},
    {SLUICE_FLAG(scores.flags, SLUICE_SCORES_ALIBI), SLUICE_UNSUPPORTED, "scores.flags",
     "scores.flags has SLUICE_SCORES_ALIBI"},
    {SLUICE_FLAG(scores.flags, SLUICE_SCORES_SINK), SLUICE_UNSUPPORTED, "scores.flags",
     "scores.flags has SLUICE_SCORES_SINK"},
    {SLUICE_SET(scores.bias_type, SLUICE_F32), SLUICE_UNSUPPORTED, "scores.bias_type",
     "nearest supported: 0 (no bias)"},
    {SLUICE_SET(scores.bias_type, SLUICE_E4M3FN), SLUICE_INVALID_ARGUMENT, "scores.bias_type",
     "scores.bias_type is e4m3fn; it must be f32, f16 or bf16"},
    {SLUICE_SET(scores.bias_type, 12), SLUICE_NEWER_STRUCT, "scores.bias_type",
     "scores.bias_type is 12; the last value"},
    {SLUICE_FLAG(mask.flags, SLUICE_MASK_BITS), SLUICE_UNSUPPORTED, "mask.flags",
     "mask.flags has SLUICE_MASK_BITS"},
    {SLUICE_SET(attention.q.scale_kind, SLUICE_SCALE_PER_TENSOR), SLUICE_UNSUPPORTED, "q.scale_kind",
     "q.scale_kind is 1; nearest supported: SLUICE_SCALE_NONE (0)"},
    {SLUICE_SET(format.v.scale_kind, SLUICE_SCALE_PER_HEAD), SLUICE_UNSUPPORTED, "kv.v.scale_kind",
     "kv.v.scale_kind is 2; nearest supported: SLUICE_SCALE_NONE (0)"},
    {SLUICE_SET(attention.q.scale_kind, SLUICE_SCALE_PER_TOKEN), SLUICE_UNSUPPORTED, "q.scale_kind",
     "q.scale_kind is 3; nearest supported: SLUICE_SCALE_PER_HEAD (2)"},
    {SLUICE_SET(format.k.scale_kind, SLUICE_SCALE_PER_TOKEN), SLUICE_UNSUPPORTED, "kv.k.scale_kind",
     "kv.k.scale_kind is 3; nearest supported: SLUICE_SCALE_PER_HEAD (2)"},
    {SLUICE_SET(format.k.scale_kind, SLUICE_SCALE_PER_PAGE), SLUICE_INVALID_ARGUMENT, "kv.k.scale_kind",
     "kv.k.scale_kind is SLUICE_SCALE_PER_PAGE (4), but kv.page_size is 0"},
    {SLUICE_SET(attention.o.scale_kind, SLUICE_SCALE_PER_TENSOR), SLUICE_INVALID_ARGUMENT, "o.scale_kind",
     "o.scale_kind is 1; it must be SLUICE_SCALE_NONE (0) unless o.type is e4m3fnuz"},
    {[](Call &c) {
       c.attention.o.type = SLUICE_E4M3FNUZ;
       c.attention.o.scale_kind = SLUICE_SCALE_PER_TOKEN;
     },
     SLUICE_UNSUPPORTED, "o.scale_kind", "o.scale_kind is 3; nearest supported: SLUICE_SCALE_PER_HEAD (2)"},
    {SLUICE_SET(format.k.scale_group, 32), SLUICE_INVALID_ARGUMENT, "kv.k.scale_group",
     "kv.k.scale_group is 32; it must be 0: only scales per group have groups"},
    {SLUICE_SET(format.v.zero_points, 1), SLUICE_INVALID_ARGUMENT, "kv.v.zero_points",
     "kv.v.zero_points is 1; it must be 0: only scales per group have zero points"},
    {SLUICE_SET(format.k.zero_points, 2), SLUICE_INVALID_ARGUMENT, "kv.k.zero_points",
     "kv.k.zero_points is 2; it must be 0 or 1"},
    {[](Call &c) {
       c.format.k = c.format.v = {SLUICE_U4, SLUICE_SCALE_PER_GROUP, 32, 0, 0, 0};
       c.format.v.scale_group = 64;
     },
     SLUICE_UNSUPPORTED, "kv.v.scale_group", "kv.v.scale_group is 64; nearest supported: that of K, 32"},
    {[](Call &c) {
       c.format.k = c.format.v = {SLUICE_U4, SLUICE_SCALE_PER_GROUP, 32, 0, 0, 0};
       c.format.v.zero_points = 1;
     },
     SLUICE_UNSUPPORTED, "kv.v.zero_points", "kv.v.zero_points is 1; nearest supported: that of K, 0"},
    {SLUICE_SET(format.k.type, SLUICE_U4), SLUICE_INVALID_ARGUMENT, "kv.k.scale_kind",
     "kv.k.scale_kind is 0; it must be SLUICE_SCALE_PER_GROUP (5) for u4"},
    {[](Call &c) {
       c.format.v.scale_kind = SLUICE_SCALE_PER_GROUP;
       c.format.v.scale_group = 32;
     },
     SLUICE_INVALID_ARGUMENT, "kv.v.scale_kind",
     "kv.v.scale_kind is 5; it must not be SLUICE_SCALE_PER_GROUP (5) unless the type is u4"},
    {SLUICE_SET(mask.alignment, SLUICE_GIVEN_DIAGONAL), SLUICE_UNSUPPORTED, "mask.alignment",
     "mask.alignment is 2; nearest supported: SLUICE_TOP_LEFT (1)"},
    {SLUICE_FLAG(mask.flags, SLUICE_MASK_CAUSAL_BY_SEQUENCE), SLUICE_INVALID_ARGUMENT, "mask.flags",
     "mask.flags has SLUICE_MASK_CAUSAL and SLUICE_MASK_CAUSAL_BY_SEQUENCE"},
    {SLUICE_SET(mask.flags, SLUICE_MASK_CAUSAL_BY_SEQUENCE), SLUICE_UNSUPPORTED, "mask.flags",
     "mask.flags has SLUICE_MASK_CAUSAL_BY_SEQUENCE"},
    {SLUICE_FLAG(mask.flags, SLUICE_MASK_BITS_OF_NEW), SLUICE_INVALID_ARGUMENT, "mask.flags",
     "mask.flags has SLUICE_MASK_BITS_OF_NEW, but lacks SLUICE_MASK_BITS"},
    {SLUICE_FLAG(mask.flags, SLUICE_MASK_SPANS), SLUICE_UNSUPPORTED, "mask.flags",
     "mask.flags has SLUICE_MASK_SPANS"},
    {SLUICE_FLAG(scores.flags, SLUICE_SCORES_BIAS_SCALE), SLUICE_INVALID_ARGUMENT, "scores.flags",
     "scores.flags has SLUICE_SCORES_BIAS_SCALE, but scores.bias_type is 0"},
    {SLUICE_SET(format.v.scale_kind, 6), SLUICE_NEWER_STRUCT, "kv.v.scale_kind",
     "kv.v.scale_kind is 6; the last value that this version knows is SLUICE_SCALE_PER_GROUP (5)"},
    {SLUICE_SET(format.page_size, 16), SLUICE_INVALID_ARGUMENT, "kv.page_table",
     "kv.page_table is missing; with a kv.page_size it must be SLUICE_PAGE_TABLE_BLOCK (1) or "
     "SLUICE_PAGE_TABLE_CSR (2)"},
    {SLUICE_SET(format.page_table, SLUICE_PAGE_TABLE_CSR), SLUICE_INVALID_ARGUMENT, "kv.page_table",
     "kv.page_table is 2, but kv.page_size is 0"},
    {SLUICE_SET(format.k.pack, 8), SLUICE_INVALID_ARGUMENT, "kv.k.pack",
     "kv.k.pack is 8, but kv.page_size is 0"},
    {SLUICE_FLAG(format.flags, SLUICE_KV_PAGE_INDEX_64), SLUICE_INVALID_ARGUMENT, "kv.flags",
     "kv.flags has SLUICE_KV_PAGE_INDEX_64, but kv.page_size is 0"},
    {SLUICE_FLAG(mask.flags, SLUICE_MASK_MISSING_PAGES), SLUICE_INVALID_ARGUMENT, "mask.flags",
     "mask.flags has SLUICE_MASK_MISSING_PAGES, but kv.page_size is 0"},
    {SLUICE_PAGED(c.format.page_size = 0), SLUICE_INVALID_ARGUMENT, "kv.page_table",
     "kv.page_table is 1, but kv.page_size is 0"},
    {SLUICE_PAGED(c.format.page_size = -16), SLUICE_INVALID_ARGUMENT, "kv.page_size", "kv.page_size is -16"},
    {SLUICE_PAGED(c.format.page_table = 0), SLUICE_INVALID_ARGUMENT, "kv.page_table",
     "kv.page_table is missing"},
    {SLUICE_PAGED(c.format.page_table = 3), SLUICE_NEWER_STRUCT, "kv.page_table",
     "kv.page_table is 3; the last value"},
    {SLUICE_PAGED(c.format.k.pack = -8), SLUICE_INVALID_ARGUMENT, "kv.k.pack", "kv.k.pack is -8"},
    {SLUICE_PAGED(c.format.k.pack = 24), SLUICE_INVALID_ARGUMENT, "kv.k.pack",
     "kv.k.pack is 24; it must divide kv.head_dim_qk, which is 128"},
    {SLUICE_V_IN_K(), SLUICE_UNSUPPORTED, "kv.flags",
     "kv.flags has SLUICE_KV_V_IN_K; nearest supported: without it"},
    {SLUICE_FLAG(format.flags, SLUICE_KV_V_IN_K), SLUICE_INVALID_ARGUMENT, "kv.v.type",
     "kv.v.type is 1; it must be 0: V is in K (SLUICE_KV_V_IN_K)"},
    {SLUICE_V_IN_K(c.format.v.scale_kind = SLUICE_SCALE_PER_HEAD), SLUICE_INVALID_ARGUMENT, "kv.v.scale_kind",
     "kv.v.scale_kind is 2; it must be 0: V is in K (SLUICE_KV_V_IN_K)"},
    {SLUICE_V_IN_K(c.format.v.pack = 8), SLUICE_INVALID_ARGUMENT, "kv.v.pack",
     "kv.v.pack is 8; it must be 0: V is in K (SLUICE_KV_V_IN_K)"},
    {SLUICE_V_IN_K(c.format.head_dim_v = 136), SLUICE_INVALID_ARGUMENT, "kv.head_dim_v",
     "kv.head_dim_v is 136; with SLUICE_KV_V_IN_K it must be at most kv.head_dim_qk, which is 128"},
    {SLUICE_SET(format.v.pack, 8), SLUICE_INVALID_ARGUMENT, "kv.v.pack",
     "kv.v.pack is 8; it must be SLUICE_PACK_ALL (2^30) outside of pages, or 0 for rows"},
    {SLUICE_PAGED(c.format.v.pack = 12), SLUICE_INVALID_ARGUMENT, "kv.v.pack",
     "kv.v.pack is 12; it must be a power of two from 8 on that divides kv.page_size, which is 16, "
     "SLUICE_PACK_ALL (2^30), or 0 for rows"},
    {[](Call &c) {
       c.attention.flags = SLUICE_ATTENTION_RAGGED;
       c.format.v.pack = SLUICE_PACK_ALL;
     },
     SLUICE_INVALID_ARGUMENT, "kv.v.pack",
     "kv.v.pack is 1073741824; it must be 0 with SLUICE_ATTENTION_RAGGED"},
    // Q and O have nothing but a type and scales.
    {SLUICE_SET(attention.q.scale_group, 32), SLUICE_INVALID_ARGUMENT, "q.scale_group",
     "q.scale_group is 32; it must be 0: only K and V have groups"},
    {SLUICE_SET(attention.o.zero_points, 1), SLUICE_INVALID_ARGUMENT, "o.zero_points",
     "o.zero_points is 1; it must be 0: only K and V have zero points"},
    {SLUICE_SET(attention.o.pack, 8), SLUICE_INVALID_ARGUMENT, "o.pack",
     "o.pack is 8; it must be 0: only K and V have packs"},
    // What is reserved.
    {SLUICE_SET(attention.q.reserved, 1), SLUICE_INVALID_ARGUMENT, "q.reserved",
     "q.reserved is 1; it must be 0: it is reserved"},
    {SLUICE_SET(attention.o.reserved, 1), SLUICE_INVALID_ARGUMENT, "o.reserved",
     "it must be 0: it is reserved"},
    {SLUICE_SET(format.reserved, 1), SLUICE_INVALID_ARGUMENT, "kv.reserved", "it must be 0: it is reserved"},
    {SLUICE_SET(format.k.reserved, 1), SLUICE_INVALID_ARGUMENT, "kv.k.reserved",
     "it must be 0: it is reserved"},
    {SLUICE_SET(format.v.reserved, 1), SLUICE_INVALID_ARGUMENT, "kv.v.reserved",
     "it must be 0: it is reserved"},
    {SLUICE_SET(attention.bounds.reserved, 1), SLUICE_INVALID_ARGUMENT, "bounds.reserved",
     "it must be 0: it is reserved"},
    {SLUICE_SET(attention.lse, SLUICE_LSE_LOG2), SLUICE_UNSUPPORTED, "lse",
     "lse is 2; nearest supported: SLUICE_LSE_LN (1)"},
    {SLUICE_SET(attention.lse, 3), SLUICE_NEWER_STRUCT, "lse",
     "lse is 3; the last value that this version knows is SLUICE_LSE_LOG2 (2)"},
    {[](Call &c) {
       c.attention.flags = SLUICE_ATTENTION_BATCH_INVARIANT;
       c.attention.bounds.kv_len = 100;
     },
     SLUICE_INVALID_ARGUMENT, "bounds.batch",
     "bounds.batch is 0 (unbounded); it must be at least 1 with SLUICE_ATTENTION_BATCH_INVARIANT"},
    {[](Call &c) {
       c.attention.flags = SLUICE_ATTENTION_BATCH_INVARIANT;
       c.attention.bounds.batch = 1;
     },
     SLUICE_INVALID_ARGUMENT, "bounds.kv_len",
     "bounds.kv_len is 0 (unbounded); it must be at least 1 with SLUICE_ATTENTION_BATCH_INVARIANT"},
};

} // namespace

TEST_CASE("every problem that cannot be computed is refused by name", "[problem]") {
  const ContextHandle context = target_context();
  for (const Refusal &refusal : refusals) {
    Call call = good_call();
    refusal.change(call);
    Error error;
    check_refusal(query(context, call, &error), error, refusal.status, refusal.field, refusal.message);
    // Sizing, planning and the host reference answer the same.
    sluice_support support;
    sluice_support_init(&support, sizeof support);
    support.workspace_bytes = 12345;
    CHECK(sluice_attention_support(context.get(), &call.attention, &support, nullptr) == refusal.status);
    CHECK(support.workspace_bytes == 12345);
    sluice_plan *plan = reinterpret_cast<sluice_plan *>(device_memory);
    CHECK(sluice_attention_plan(context.get(), &call.attention, &plan, nullptr) == refusal.status);
    CHECK(plan == nullptr);
    if (refusal.status == SLUICE_UNSUPPORTED) continue; // by these kernels
    check_refusal(sluice_attention_reference(&call.attention, &call.args, &error), error, refusal.status,
                  refusal.field, refusal.message);
  }
}

TEST_CASE("problems that the header calls supported are supported", "[problem]") {
  const ContextHandle context = target_context();
  const auto check = [&](const Call &call) {
    Error error;
    sluice_support support;
    sluice_support_init(&support, sizeof support);
    const sluice_status status = sluice_attention_support(context.get(), &call.attention, &support, &error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    const std::string prefix = std::string("attn_fwd_") +
                               (call.attention.q.type == SLUICE_F16 ? "f16" : "bf16") + "_d" +
                               std::to_string(call.format.head_dim_qk) + "_";
    CHECK_THAT(support.kernel, Catch::StartsWith(prefix));
    CHECK(support.pointer_alignment == 16);
    CHECK(support.stride_multiple == 8);
    CHECK(support.workspace_alignment == 256);
    CHECK(support.workspace_bytes == 0);
  };
  for (const uint32_t type : {SLUICE_F16, SLUICE_BF16}) {
    for (const int32_t head_dim : {64, 128}) {
      for (const uint32_t flags : {0, int(SLUICE_MASK_CAUSAL)}) {
        for (const uint32_t lse : {SLUICE_LSE_NONE, SLUICE_LSE_LN}) {
          for (const uint32_t alignment : {SLUICE_BOTTOM_RIGHT, SLUICE_TOP_LEFT}) {
            for (const int32_t kv_heads : {1, 2, 4, 8}) {
              Call call = good_call();
              call.attention.q.type = call.attention.o.type = type;
              call.format.k.type = call.format.v.type = type;
              call.format.head_dim_qk = call.format.head_dim_v = head_dim;
              call.format.kv_heads = kv_heads;
              call.mask.flags = flags;
              call.mask.alignment = alignment;
              call.attention.lse = lse;
              check(call);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("short and small problems get low query tiles, and the plan says why", "[problem]") {
  const ContextHandle context = target_context(); // 304 compute units
  struct Case {
    int32_t batch, q_len;
    uint32_t flags;
    uint32_t tile_q;
    const char *reason;
  };
  constexpr uint32_t invariant = SLUICE_ATTENTION_BATCH_INVARIANT;
  const Case cases[] = {
      {0, 0, 0, 256, "the bounds do not require a lower one"},
      {1, 1, 0, 128, "bounds.q_len 1 fits a query tile of 128"},
      {0, 32, 0, 128, "bounds.q_len 32 fits a query tile of 128"},
      {0, 33, 0, 256, "the bounds do not require"},
      {1, 8192, 0, 128,
       "query tiles of 256 would make 256 workgroups for 304 compute units; tiles of 128 make 512"},
      {2, 8192, 0, 256, "the bounds do not require"},
      {1, 256, 0, 128, "would make 8 workgroups"},
      {1, 8192, invariant, 256, "the bounds do not require"},
      {1, 32, invariant, 128, "fits a query tile of 128"},
  };
  for (const Case &one : cases) {
    Call call = good_call();
    call.attention.bounds.batch = one.batch;
    call.attention.bounds.q_len = one.q_len;
    call.attention.flags = one.flags;
    if (one.flags & invariant) call.attention.bounds.kv_len = 1000;
    const PlanHandle plan = make_plan(context, call);
    sluice_plan_info info;
    sluice_plan_info_init(&info, sizeof info);
    REQUIRE(sluice_plan_describe(plan.get(), &info, nullptr) == SLUICE_OK);
    INFO("batch " << one.batch << ", q_len " << one.q_len << ": " << info.reason);
    CHECK(info.tile_q == one.tile_q);
    CHECK(info.tile_kv == 64);
    CHECK(info.waves == one.tile_q / 32);
    CHECK(info.block[0] == one.tile_q * 2);
    CHECK(info.block[1] == 1);
    CHECK(info.block[2] == 1);
    CHECK(info.max_grid[0] == 2); // KV heads, of 4 query heads each
    CHECK(info.max_grid[1] == (uint32_t(one.q_len) * 4 + one.tile_q - 1) / one.tile_q);
    CHECK(info.max_grid[2] == uint32_t(one.batch));
    CHECK(info.lds_bytes == 65536);
    CHECK_THAT(info.kernel, Catch::Contains("_q" + std::to_string(one.tile_q) + "_"));
    CHECK_THAT(info.reason, Catch::Contains(one.reason));
  }
}

TEST_CASE("the kernels are listed by index, in the order of their names", "[problem]") {
  const ContextHandle context = target_context();
  uint32_t count = 0;
  REQUIRE(sluice_list_kernels(context.get(), 0, nullptr, &count, nullptr) == SLUICE_OK);
  CHECK(count == 8);
  std::string previous;
  for (uint32_t i = 0; i < count; ++i) {
    sluice_kernel_info info;
    sluice_kernel_info_init(&info, sizeof info);
    REQUIRE(sluice_list_kernels(context.get(), i, &info, nullptr, nullptr) == SLUICE_OK);
    CHECK(info.name > previous);
    previous = info.name;
    CHECK(std::string(info.operation) == "attention_forward");
    CHECK(std::string(info.features) == "causal,lse");
    CHECK(std::string(info.chips) == "gfx942");
    CHECK(info.kernarg_bytes == sizeof(sluice::package::AttentionKernargs));
    CHECK(std::string(info.p_rounding) == "centred_cut");
  }
  CHECK(previous == "attn_fwd_f16_d64_q256_kv64_w8");
  sluice_kernel_info info;
  sluice_kernel_info_init(&info, sizeof info);
  Error error;
  check_refusal(sluice_list_kernels(context.get(), count, &info, nullptr, &error), error,
                SLUICE_INVALID_ARGUMENT, "index", "index is 8; there are 8 kernels");
}

TEST_CASE("null arguments of questions and plans are refused by name", "[problem]") {
  const ContextHandle context = target_context();
  const Call call = good_call();
  sluice_plan *plan = nullptr;
  Error error;
  const auto is_null = [&](sluice_status status, const std::string &argument) {
    check_refusal(status, error, SLUICE_INVALID_ARGUMENT, argument, argument + " is NULL");
  };
  is_null(sluice_attention_support(nullptr, &call.attention, nullptr, &error), "context");
  is_null(sluice_attention_support(context.get(), nullptr, nullptr, &error), "attention");
  is_null(sluice_list_kernels(nullptr, 0, nullptr, nullptr, &error), "context");
  is_null(sluice_attention_plan(nullptr, &call.attention, &plan, &error), "context");
  is_null(sluice_attention_plan(context.get(), nullptr, &plan, &error), "attention");
  is_null(sluice_attention_plan(context.get(), &call.attention, nullptr, &error), "out");
  is_null(sluice_plan_describe(nullptr, nullptr, &error), "plan");
  is_null(sluice_attention_preload(nullptr, nullptr, &error), "context");
  is_null(sluice_attention_run(nullptr, &call.args, nullptr, &error), "plan");
  is_null(sluice_attention_run(make_plan(context, call).get(), nullptr, nullptr, &error), "args");
  is_null(sluice_attention_reference(nullptr, &call.args, &error), "attention");
  is_null(sluice_attention_reference(&call.attention, nullptr, &error), "args");
  sluice_plan_destroy(nullptr);
}
